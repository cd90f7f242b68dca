"""Lists of PIE: chances held to all orders of ties, and to lists that are drawn."""

import itertools

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.bandits.kl_index import budget, upper_index
from models.bandits.position_pie import (
    PiePolicy,
    draw_list,
    estimates,
    pie_policy,
    placements,
)

EXAMINATION = np.array([0.9, 0.6, 0.3])
L = len(EXAMINATION)


def enumerated(
    clicks: Integers, shows: Integers, examination: Floats, n_lists: int, share: float
) -> Floats:
    """P(item at rank), over all orders of all items; those that fall are as likely."""
    n_items, n_ranks = len(shows), len(examination)
    examined = shows @ examination
    values = clicks.sum(axis=1) / np.where(examined > 0.0, examined, 1.0)
    most, found, n_orders = budget(n_lists), np.zeros((n_items, n_ranks)), 0
    for order in itertools.permutations(range(n_items)):
        by_order = values[[*order]]
        if (np.diff(by_order) > 0.0).any():
            continue
        n_orders += 1
        shown, others = [*order[:n_ranks]], order[n_ranks:]
        level = by_order[n_ranks - 1]
        tried = [
            item
            for item in others
            if values[item] == level
            or upper_index(clicks[item], shows[item], examination, most)
            >= min(level, 1.0)
        ]
        own = share if tried else 0.0
        found[shown[:-1], np.arange(n_ranks - 1)] += 1.0
        found[shown[-1], -1] += 1.0 - own
        for item in tried:
            found[item, -1] += own / len(tried)
    return found / n_orders


def case(number: int) -> tuple[Integers, Integers, int]:
    """Clicks and lists of six items; some are tied, some were never shown."""
    rng = np.random.default_rng(number)
    n_lists = int(rng.integers(0, (2, 12, 300)[number % 3]))
    shows = np.zeros((6, L), np.int64)
    for _ in range(n_lists):
        shows[rng.permutation(6)[:L], np.arange(L)] += 1
    clicks = rng.binomial(shows, 0.5 * EXAMINATION)
    if number % 4 == 0:  # as they are apart, so that most are tied
        clicks[1:4], shows[1:4] = clicks[0], shows[0]
    return clicks, shows, n_lists


@pytest.mark.parametrize("share", [0.5, 0.2, 0.0])
def test_chances_are_those_of_all_orders(share: float) -> None:
    """With ties above, across and below the last slot, and with what may be tried."""
    n_tied, n_tried = 0, 0
    for number in range(40):
        clicks, shows, n_lists = case(number)
        policy = pie_policy(clicks, shows, EXAMINATION, n_lists, share)
        found = placements(policy)
        expected = enumerated(clicks, shows, EXAMINATION, n_lists, share)
        assert np.abs(found - expected).max() < 1e-12
        assert np.abs(found.sum(axis=0) - 1.0).max() < 1e-12
        assert found.sum(axis=1).max() < 1.0 + 1e-12
        crosses = policy.firsts[L] < L
        n_tied += crosses
        n_tried += policy.n_tried > 0 and not crosses
    assert min(n_tied, n_tried) > 5


def test_lists_are_drawn_by_these_chances() -> None:
    """Each item once, as often at each rank as is logged."""
    rng = np.random.default_rng(8)
    for number in (1, 4, 5, 8):
        policy = pie_policy(*case(number)[:2], EXAMINATION, case(number)[2])
        n, seen = 4_000, np.zeros((6, L))
        for _ in range(n):
            shown = draw_list(policy, rng)
            assert len({*shown.tolist()}) == L
            seen[shown, np.arange(L)] += 1
        assert np.abs(seen / n - placements(policy)).max() < 5.0 * 0.5 / np.sqrt(n)


def test_the_leaders_are_shown_by_falling_estimate() -> None:
    """And the last slot tries those alone that may be better than the last one."""
    shows = np.full((5, L), 1_000)
    rates = np.array([0.8, 0.6, 0.7, 0.69, 0.1])
    clicks = np.round(shows * EXAMINATION * rates[:, None]).astype(np.int64)
    assert np.allclose(estimates(clicks, shows, EXAMINATION), rates, atol=1e-3)
    policy = pie_policy(clicks, shows, EXAMINATION, 5_000)
    # .6 cannot be .69 after so many lists.
    assert policy.n_tried == 0
    expected = np.zeros((5, L))
    expected[0, 0] = expected[2, 1] = expected[3, 2] = 1.0
    assert placements(policy).tolist() == expected.tolist()
    fewer = pie_policy(clicks // 20, shows // 20, EXAMINATION, 250)
    assert placements(fewer)[1, 2] == 0.5
    assert placements(fewer)[4, 2] == 0.0


def shown_to_all(n_items: int, n_ranks: int) -> PiePolicy:
    """Of no clicks, where no item is beyond the list."""
    nothing = np.zeros((n_items, n_ranks), np.int64)
    return pie_policy(nothing, nothing, EXAMINATION[:n_ranks], 0)


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_where_all_items_are_shown_nothing_is_tried(n_items: int) -> None:
    """Lists are as long as there are items."""
    policy = shown_to_all(n_items, L)
    assert policy.n_tried == 0
    assert placements(policy).tolist() == [[1.0 / n_items] * n_items] * n_items
    shown = draw_list(policy, np.random.default_rng(1))
    assert sorted(shown.tolist()) == [*range(n_items)]


def test_an_item_alone_is_compared_in_a_slot_of_one() -> None:
    """L = 1: the best one, or one that may be better."""
    clicks, shows = np.array([[5], [3], [0]]), np.array([[10], [10], [20]])
    found = placements(pie_policy(clicks, shows, np.ones(1), 30))
    assert found[:, 0].tolist() == [0.5, 0.5, 0.0]
