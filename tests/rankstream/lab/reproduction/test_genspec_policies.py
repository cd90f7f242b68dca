"""Policies by the discounts that items have: ties, what they learn, their worth."""

import itertools

import numpy as np

from models.arrays import Floats
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.genspec.policies import (
    Worth,
    expected_discounts,
    general_ranker,
    valued_queries,
)


def test_tied_items_share_discounts_over_all_their_orders() -> None:
    """As over all lists that fall by score, each as likely; query by query."""
    scores, offsets = np.array([1.0, 0.0, 1.0, 1.0, 5.0, 7.0]), np.array([0, 4, 6])
    expected = []
    for begin, end in itertools.pairwise(offsets.tolist()):
        own = scores[begin:end]
        lists = [
            order
            for order in itertools.permutations(range(len(own)))
            if (np.diff(own[[*order]]) <= 0.0).all()
        ]
        ranks = np.mean([1.0 / np.log2(np.argsort(order) + 2.0) for order in lists], 0)
        expected += ranks.tolist()

    np.testing.assert_allclose(expected_discounts(scores, offsets), expected)


def test_clicks_over_propensities_are_relevance() -> None:
    """As many clicks as are expected give P(click | looked at); queries by lists."""
    world = World(np.zeros((5, 1), np.float32), np.zeros(5, int), np.array([0, 3, 5]))
    wanted, ranks = np.array([0.2, 1.0, 0.6, 0.4, 0.2]), np.array([3, 1, 2, 2, 1])
    lists = np.array([30, 90])
    clicked = np.repeat(lists, [3, 2]) * wanted / ranks
    chunk = valued_queries(world, clicked, lists, ranks)

    np.testing.assert_allclose(chunk.values, wanted)
    np.testing.assert_allclose(chunk.weights, [0.25, 0.75])


def test_a_general_ranker_finds_the_feature_that_tells() -> None:
    """From clicks; from none it ranks nothing above anything."""
    rng = np.random.default_rng(1)
    features = rng.random((60, 3), np.float32)
    offsets = np.arange(0, 61, 6)
    world = World(features, np.zeros(60, np.int64), offsets)
    lists, ranks = np.full(10, 100), np.tile(np.arange(1, 7), 10)
    clicked = 100.0 * features[:, 1] / ranks
    queries = valued_queries(world, clicked, lists, ranks)
    weights = general_ranker(queries, queries, seed=1)
    nothing = valued_queries(world, np.zeros(60), lists, ranks)

    assert np.argmax(np.abs(weights)) == 1
    assert weights[1] > 0.0
    assert not general_ranker(nothing, queries, seed=1).any()
    assert not general_ranker(queries, nothing, seed=1).any()


def test_worth_is_the_mean_over_all_lists_of_a_policy() -> None:
    """Queries without a relevant item do not count; the best order is worth 1."""
    grades = np.array([0.0, 4.0, 2.0, 0.0, 0.0, 1.0, 0.0])
    offsets = np.array([0, 3, 5, 7])
    worth = Worth(grades, offsets)

    def random_ndcg(gains: Floats) -> float:
        n = len(gains)
        falling = 1.0 / np.log2(np.arange(2.0, n + 2.0))
        every = [
            gains[[*order]] @ falling for order in itertools.permutations(range(n))
        ]
        return float(np.mean(every) / max(every))

    expected = random_ndcg(np.array([0.0, 15.0, 3.0])) + random_ndcg(np.array([1.0, 0]))
    assert worth.is_counted.tolist() == [True, False, True]
    assert worth.ndcg(expected_discounts(grades, offsets)) == 1.0
    np.testing.assert_allclose(
        worth.ndcg(expected_discounts(np.zeros(7), offsets)), expected / 2.0
    )
