"""Estimated clicks of a policy are what its users would click, by enumeration."""

import itertools

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from models.training.query_chunk import QueryChunk
from models.training.reward import estimated_reward

TRUST = BiasCurve(np.array([0.5, 0.4, 0.3]), np.array([0.3, 0.2, 0.1]))


def chunk_of(rng: np.random.Generator) -> QueryChunk:
    """Two queries, of five items and of two."""
    features = rng.standard_normal((7, 2)).astype(np.float32)
    kept = np.array([True, True, True, False, True, True, True])
    values = np.where(kept, rng.random(7), 0.0)
    return QueryChunk(np.array([0, 5, 7]), features, values, kept, np.array([0.7, 0.3]))


def enumerated(weights, chunk: QueryChunk, curve: BiasCurve, cutoff: int):
    """Clicks per list, and what is looked at of items without a value, of all lists."""
    clicks = looked = unknown = 0.0
    for share, (begin, end) in zip(
        chunk.weights, itertools.pairwise(chunk.offsets), strict=True
    ):
        scores = chunk.features[begin:end] @ weights
        for ranking in itertools.permutations(range(end - begin)):
            rates = np.exp(scores[list(ranking)])
            chance = share * np.prod(rates / rates[::-1].cumsum()[::-1])
            for rank, row in enumerate(ranking[:cutoff]):
                alpha, beta = curve.alpha[rank], curve.beta[rank]
                clicks += chance * (alpha * chunk.values[begin + row] + beta)
                looked += chance * alpha
                unknown += chance * alpha * (not chunk.is_kept[begin + row])
    return clicks, unknown / looked


@pytest.mark.parametrize("curve", [TRUST, position_curve([1.0, 0.5, 0.25])])
@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_clicks_are_those_of_all_lists(curve: BiasCurve, cutoff: int) -> None:
    """Items without a value are never clicked but by trust bias."""
    rng = np.random.default_rng(cutoff)
    chunk, weights = chunk_of(rng), rng.standard_normal(2)
    found = estimated_reward(
        weights, [chunk], curve, cutoff=cutoff, most_unsupported=1.0
    )
    clicks, unsupported = enumerated(weights, chunk, curve, cutoff)

    assert found.clicks == pytest.approx(clicks)
    assert found.unsupported == pytest.approx(unsupported)
    assert not found.reason


def test_only_shares_of_weights_count() -> None:
    """Twice as many lists of all queries get as many clicks each."""
    rng = np.random.default_rng(4)
    chunk, weights = chunk_of(rng), rng.standard_normal(2)
    one, other = (
        estimated_reward(weights, [each], TRUST, cutoff=2, most_unsupported=1.0)
        for each in (chunk, chunk._replace(weights=chunk.weights * 2.0))
    )

    assert one == other


def test_ranks_that_the_curve_does_not_have_count_nothing() -> None:
    """As in the estimates that values come from."""
    rng = np.random.default_rng(9)
    chunk, weights = chunk_of(rng), rng.standard_normal(2)
    three, five = (
        estimated_reward(weights, [chunk], TRUST, cutoff=cutoff, most_unsupported=1.0)
        for cutoff in (3, 5)
    )

    assert three == five


def test_too_much_that_is_unknown_refuses_the_estimate() -> None:
    """With the share in words; just below it there is a figure."""
    rng = np.random.default_rng(9)
    chunk, weights = chunk_of(rng), rng.standard_normal(2)
    share = enumerated(weights, chunk, TRUST, 2)[1]
    told, refused = (
        estimated_reward(weights, [chunk], TRUST, cutoff=2, most_unsupported=most)
        for most in (share * 1.001, share * 0.999)
    )

    assert told.clicks is not None
    assert refused.clicks is None
    assert f"{share:.1%}" in refused.reason
    assert refused.unsupported == told.unsupported


def test_no_lists_have_no_reward() -> None:
    """The reason says so."""
    found = estimated_reward(np.ones(2), [], TRUST, cutoff=2, most_unsupported=0.05)

    assert found.clicks is None
    assert "has items" in found.reason
