"""What declared policies would show: ties, drawn lists, and what they do not rank."""

import msgspec
import numpy as np
import pytest

from models.decisions.tied_orders import expected_weights, tied_orders
from rankstream.snapshots import features_hash
from rankstream.wire.candidates import candidates_key, candidates_value
from streams.decisions.closed_sets import CandidateSets
from streams.decisions.declared_policies import snapshot_policy, target_weights
from streams.estimation.targets import QueryRanking, RankingTarget
from streams.native.counting import name_of_set
from streams.training.feature_records import FeatureRecords
from tests.placed_list import placement_probabilities
from tests.snapshot_factory import snapshot

ITEMS = (("a", "b", "c", "d"), ("x", "y"), ("m", "n", "o"))
FEATURES = ([[2.0, 0.0], [1.0, 0.5], [0.0, 0.5], [0.5, 1.0]], [[0.0, 1.0], [3.0, 0.0]])
"""Of the first two; the scores of a snapshot of version 1 are their sums."""

WEIGHTS = np.array([1.0, 0.6, 0.5])


def names():
    """Of the sets."""
    return [name_of_set(msgspec.msgpack.encode([*items])) for items in ITEMS]


def candidate_sets():
    """All three, as evidence has them."""
    starts = np.cumsum([0, *map(len, ITEMS)])
    return CandidateSets(("q", "r", "s"), tuple(names()), ITEMS, starts)


def records():
    """Features of the first two."""
    hashed = features_hash(2)
    found = [
        (
            candidates_key(query, name, hashed),
            candidates_value(
                msgspec.msgpack.encode([*items]), np.array(rows, "<f4").tobytes(), 2
            ),
        )
        for query, name, items, rows in zip(
            "qr", names(), ITEMS, FEATURES, strict=False
        )
    ]
    return FeatureRecords(found, hashed, 2)


def policy_of(temperature=0.0, **fields):
    """The policy of a snapshot."""
    one = snapshot(n_features=2, **fields)
    return snapshot_policy(one, records(), candidate_sets(), WEIGHTS, temperature)


def test_equal_scores_are_shuffled():
    """And a set without features is none that the snapshot ranks."""
    scores = np.array([2.0, 1.5, 0.5, 1.5, 1.0, 3.0])
    expected = expected_weights(tied_orders(scores, np.array([0, 4, 6])), WEIGHTS)
    found = policy_of().weights
    np.testing.assert_array_equal(found[:6], expected)
    assert found[1] == found[3] == pytest.approx(0.55)
    assert np.isnan(found[6:]).all()


def test_drawn_lists_have_the_weights_of_their_placements():
    """At the temperature that is asked for."""
    found = policy_of(0.5).weights
    scores = np.array([2.0, 1.5, 0.5, 1.5])
    placed = placement_probabilities(scores / 0.5, 3)
    np.testing.assert_allclose(found[:4], placed @ WEIGHTS, atol=1e-9)
    assert np.isnan(found[6:]).all()


def test_groups_are_those_that_the_snapshot_names():
    """None where nobody knows whose clicks moved it, empty where none did."""
    assert policy_of(groups=[3, 1], updates=9).groups == {1, 3}
    assert policy_of(groups=[], updates=9).groups is None
    assert policy_of(groups=[], updates=0).groups == frozenset()


def test_rankings_of_what_is_no_candidate_weigh_nothing():
    """What a policy shows of a set are those of its items that it ranks."""
    target = RankingTarget({"q": QueryRanking(("c", "z", "a"))})
    found = target_weights(target, candidate_sets(), WEIGHTS)
    np.testing.assert_array_equal(found[:4], [0.6, 0.0, 1.0, 0.0])
    assert np.isnan(found[4:]).all()
