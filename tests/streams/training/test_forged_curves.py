"""Snapshots of curves that no fit wrote are refused, or end where numbers do."""

import numpy as np
import pytest

from rankstream.wire.envelope import (
    CURVE,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
    features_hash,
)
from rankstream.wire.models.curves import curve_weights
from streams.training.curves.known_curve import published_curve

NAN, INF = np.nan, np.inf


def forged(alpha, beta=(), *, n_ranks=0):
    """Of intervals that are there."""
    numbers = np.array(alpha)
    offsets = np.array(beta) if len(beta) else np.zeros(len(numbers))
    rows = [numbers, 0.9 * numbers, 1.1 * numbers, offsets, offsets, offsets]
    n_ranks = n_ranks or len(numbers)
    return Snapshot(
        "eyes", 0, 5, 0, 1_000, CURVE, [], "none", n_ranks, features_hash(n_ranks),
        [(0, 5)], 1, curve_weights(rows), "eyes@0.5", groups=[2],
    )  # fmt: skip


@pytest.mark.parametrize(
    "alpha",
    [[1.0], [NAN, 0.5], [1.0, NAN, 0.5], [1.0, INF], [INF, 1.0], [1.0, -0.5], [1.0, 0]],
)
def test_what_is_known_at_one_rank_corrects_nothing(alpha):
    """A training under it would leave out the clicks of all other ranks."""
    with pytest.raises(SnapshotError, match=r"at 2 ranks or more; got [01]"):
        published_curve(forged(alpha))


@pytest.mark.parametrize(
    ("alpha", "beta", "told"),
    [
        ([1.0, 0.5], [0.0, NAN], "beta must be a number"),
        ([1.0, 0.5], [0.0, INF], "beta must be a number"),
        ([0.9, 1.5], (), r"examination must lie in \(0, 1\]"),
        ([0.5, 0.5], [0.6, 0.1], "must be at most 1; got 1.1 at rank 1"),
    ],
)
def test_numbers_that_no_users_have_are_refused(alpha, beta, told):
    """With which, and where."""
    with pytest.raises(SnapshotError, match=told):
        published_curve(forged(alpha, beta))


def test_a_curve_ends_before_the_first_rank_without_a_number():
    """Ranks beyond are as if nobody saw them."""
    known = published_curve(forged([1.0, 0.5, NAN, 0.2]))
    assert known.curve.alpha.tolist() == [1.0, 0.5]


def test_an_envelope_of_another_width_is_none():
    """Six rows of as many ranks as it says."""
    with pytest.raises(SnapshotError, match="weights must be 144 bytes; got 96"):
        decode_snapshot(encode_snapshot(forged([1.0, 0.5], n_ranks=3)))
