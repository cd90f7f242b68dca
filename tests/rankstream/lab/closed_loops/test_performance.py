"""NDCG by its definition, with every convention, and the discounted sum."""

import numpy as np
import pytest

from models.evaluation.ndcg import ndcg_of_ranking
from rankstream.lab.closed_loops.performance import Conventions, Judge, discounted_sum
from rankstream.lab.closed_loops.world import World

WORLD = World(
    np.zeros((9, 1), np.float32),
    np.array([2, 0, 1, 0, 0, 0, 1, 2, 0]),
    np.array([0, 3, 5, 9]),
)
SCORES = np.array([0.1, 0.5, 0.3, 0.2, 0.1, 0.4, 0.9, 0.3, 0.1])


def test_held_out_ndcg_is_the_mean_over_queries() -> None:
    """Queries without relevance are left out, or count 0 where so told."""
    first = ndcg_of_ranking(WORLD.labels[:3], np.array([1, 2, 0]), 10)
    last = ndcg_of_ranking(WORLD.labels[5:], np.array([1, 0, 2, 3]), 10)
    rng = np.random.default_rng(0)

    purged = Judge(WORLD, Conventions()).held_out(SCORES, rng=rng)
    kept = Judge(WORLD, Conventions(purge=False)).held_out(SCORES, rng=rng)

    assert purged == pytest.approx((first + last) / 2)
    assert kept == pytest.approx((first + last) / 3)


def test_linear_gain_and_cutoff() -> None:
    """Labels 0 2 1 at the top two ranks against the best two."""
    only = World(WORLD.features[:3], WORLD.labels[:3], np.array([0, 3]))
    judge = Judge(only, Conventions(cutoff=2, gain="linear"))
    scores = np.array([0.5, 0.9, 0.1])
    second = 1.0 / np.log2(3.0)

    found = judge.held_out(scores, rng=np.random.default_rng(0))

    assert found == pytest.approx(2.0 * second / (2.0 + second))


def test_ties_are_broken_at_random() -> None:
    """One relevant of two documents with equal scores: the mean of both orders."""
    pair = World(np.zeros((2, 1), np.float32), np.array([1, 0]), np.array([0, 2]))
    judge, rng = Judge(pair, Conventions()), np.random.default_rng(1)
    values = [judge.held_out(np.zeros(2), rng=rng) for _ in range(2_000)]
    expected = (1.0 + 1.0 / np.log2(3.0)) / 2.0

    assert abs(np.mean(values) - expected) < 4.5 * np.std(values) / np.sqrt(2_000)


def test_shown_lists_count_their_query() -> None:
    """A short list, one that is cut, and one with nothing relevant to find."""
    lists = np.array([[0, 2, 0, -1], [2, 3, 1, 2], [1, 0, 1, -1]])
    expected = [
        ndcg_of_ranking(WORLD.labels[:3], np.array([2, 0]), 10),
        ndcg_of_ranking(WORLD.labels[5:], np.array([3, 1, 2]), 10),
        0.0,
    ]

    assert Judge(WORLD, Conventions()).shown(lists) == pytest.approx(expected)


def test_no_query_gives_no_number() -> None:
    """Where all queries are left out there is no mean."""
    empty = World(WORLD.features[:2], np.zeros(2, np.int64), np.array([0, 2]))
    judge = Judge(empty, Conventions())

    assert np.isnan(judge.held_out(np.zeros(2), rng=np.random.default_rng(0)))


def test_the_discounted_sum_of_perfect_lists() -> None:
    """Its largest value for 10,000 impressions, in one piece or in two."""
    ones = np.ones(10_000)
    pieces = discounted_sum(ones[:300]) + discounted_sum(ones[300:], already=300)

    assert discounted_sum(ones) == pytest.approx(1986.54, abs=0.01)
    assert pieces == pytest.approx(discounted_sum(ones))


def test_unknown_conventions_raise() -> None:
    """Names and numbers are checked."""
    with pytest.raises(ValueError, match="gain must be exponential or linear"):
        Conventions(gain="square")
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        Conventions(cutoff=0)
