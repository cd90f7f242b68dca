"""Bandits of the table: what one list tells them, and what many do."""

import itertools

import numpy as np

from rankstream.lab.reproduction.genspec.bandits import (
    bandit_scores,
    hotfix_scores,
    pie_scores,
)
from rankstream.lab.reproduction.genspec.plan import HOTFIX, PIE, SHUFFLED

WANTED = np.array([0.2, 0.9, 0.5])
N_RUNS = 4_000


def test_one_list_tells_pie_what_users_like_on_average() -> None:
    """It is of any order: clicks over examination have the right mean, item by item."""
    rng, once = np.random.default_rng(4), np.array([1])
    found = np.array([pie_scores(WANTED, once, rng)[0] for _ in range(N_RUNS)])
    errors = found.std(axis=0) / np.sqrt(N_RUNS)
    assert (np.abs(found.mean(axis=0) - WANTED) < 4.5 * errors).all()


def test_one_list_tells_hotfix_what_all_shuffles_do() -> None:
    """The mean of preferences over all orders and all clicks on them."""
    expected = np.zeros(3)
    for order in itertools.permutations(range(3)):
        chances = WANTED[[*order]] / np.arange(1, 4)
        for clicked in itertools.product((0, 1), repeat=3):
            odds = np.prod(np.where(clicked, chances, 1.0 - chances)) / 6.0
            last = max((rank for rank in range(3) if clicked[rank]), default=-1)
            for one, other in itertools.permutations(range(last + 1), 2):
                if clicked[one] and not clicked[other]:
                    expected[order[one]] += odds
                    expected[order[other]] -= odds
    rng, once = np.random.default_rng(4), np.array([1])
    found = np.array([hotfix_scores(WANTED, once, rng)[0] for _ in range(N_RUNS)])
    errors = found.std(axis=0) / np.sqrt(N_RUNS)
    assert (np.abs(found.mean(axis=0) - expected) < 4.5 * errors).all()
    assert np.abs(expected).max() > 20.0 * errors.max()


def test_many_lists_tell_them_the_order() -> None:
    """Of each query; later counts hold earlier ones, and what is shuffled is tied."""
    wanted, offsets = np.concatenate((WANTED, WANTED[::-1])), np.array([0, 3, 6])

    def scores(*counts: int) -> dict[str, np.ndarray]:
        return bandit_scores(wanted, offsets, counts, np.random.default_rng(2))

    whole, last = scores(10, 3_000), scores(3_000)
    for name in (PIE, HOTFIX):
        np.testing.assert_array_equal(whole[name][1], last[name][0])
        for query in (slice(0, 3), slice(3, 6)):
            order = np.argsort(whole[name][1, query])
            assert order.tolist() == np.argsort(wanted[query]).tolist()
    assert not whole[SHUFFLED].any()
    # Examination does not reach what PIE ranks by.
    np.testing.assert_allclose(whole[PIE][1], wanted, atol=0.06)
