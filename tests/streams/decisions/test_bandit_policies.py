"""What rankers draw of a bandit is what its policy says, to the last chance."""

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.bandits.cascade_ucb import FirstClicks, upper_indices
from models.bandits.position_pie import pie_policy, placements
from models.decisions.tied_orders import tied_orders
from rankstream.ranking.tied_list import TiedList
from rankstream.wire.decision_shards import pack_order, unpack_order
from streams.decisions.bandit_policies import (
    BanditList,
    cascade_list,
    hotfix_list,
    pie_list,
)
from streams.decisions.bandit_sums import BanditSums
from streams.decisions.closed_sets import CandidateSets
from streams.decisions.declared_policies import SureRanking
from tests.models.bandits.test_position_pie import EXAMINATION, L, case


def sums_of(shows: Integers, clicks: Integers, n_lists: int) -> BanditSums:
    """Of one set, as a reader finds them; first clicks are a third of the clicks.

    `shows`, `clicks` [n_items, n_ranks].
    """
    n_items, n_ranks = shows.shape
    item, rank = np.divmod(np.arange(n_items * n_ranks), n_ranks)
    first, seen = clicks.ravel() // 3, shows.ravel() // 2
    pairs = np.column_stack(
        (0 * item, item, rank + 1, shows.ravel(), clicks.ravel(), first, seen)
    )
    preferences = np.array([[0, 0, 5, 1], [0, 2, 0, 3]])
    items = tuple(f"d{number}" for number in range(n_items))
    sets = CandidateSets(("q",), (b"s",), (items,), np.array([0, n_items]))
    lists, eras = np.array([n_lists]), np.zeros(1, np.int64)
    return BanditSums(sets, lists, eras, pairs, preferences, {})


def served(found: BanditList | None) -> TiedList:
    """As a ranker has it, from its bytes."""
    assert found is not None
    order, ties, slot = unpack_order(pack_order(found.order, found.blocks, found.slot))
    return TiedList([*order], ties, slot)


def test_pie_is_served_and_logged_with_its_own_chances() -> None:
    """With ties above, across and below the last rank, and with what may be tried."""
    kinds = set()
    for number in range(60):
        clicks, shows, n_lists = case(number // 2)
        if number % 2:  # as often again as it takes to be sure
            clicks, shows, n_lists = 50 * clicks, 50 * shows, 50 * n_lists
        found = pie_list(EXAMINATION)(sums_of(shows, clicks, n_lists), 0)
        policy = pie_policy(clicks, shows, EXAMINATION, n_lists)
        exposures = served(found).exposures(L)
        np.testing.assert_allclose(exposures, placements(policy), rtol=0, atol=1e-7)
        crosses = policy.firsts[L] < L
        assert found is not None
        kinds.add((crosses, found.slot is not None and len(found.slot.tried) > 0))
    assert kinds >= {(False, False), (True, False), (False, True), (True, True)}


def test_lists_of_other_sets_change_nothing() -> None:
    """An index grows with the lists of its own query."""
    for number in range(30):
        clicks, shows, n_lists = case(number)
        one = sums_of(20 * shows, 20 * clicks, 20 * n_lists)
        more = one._replace(lists=np.append(one.lists, 10**9))
        for policy in (pie_list(EXAMINATION), cascade_list):
            alone, beside = policy(one, 0), policy(more, 0)
            assert alone is not None
            assert beside is not None
            assert alone[:3] == beside[:3]
            np.testing.assert_array_equal(alone.values, beside.values)


def test_a_cascade_is_served_by_its_upper_indices() -> None:
    """Of first clicks and of lists down to them; equal ones are tied."""
    for number in (1, 5, 8, 12):
        clicks, shows, n_lists = case(number)
        sums = sums_of(shows, clicks, n_lists)
        first = FirstClicks((clicks // 3).sum(axis=1), (shows // 2).sum(axis=1))
        values = upper_indices(first, n_lists)
        found = cascade_list(sums, 0)
        np.testing.assert_array_equal(found.values, values)
        orders = tied_orders(values, np.array([0, 6]))
        assert (found.order, found.blocks) == orders.of_set(0)
        assert found.slot is None


def ranking(scores: Floats) -> SureRanking:
    """Of one set; NaN where nothing is known of it."""
    return SureRanking(tied_orders(scores, np.array([0, len(scores)])), scores)


@pytest.mark.parametrize("top", [1, 2, 5, 6, 9])
def test_hotfix_shuffles_the_first_items_of_the_model(top: int) -> None:
    """And what it has learned of them is told, not shown."""
    scores = np.array([0.1, 0.6, 0.3, 0.5, 0.2, 0.4])
    sums = sums_of(np.zeros((6, 3), np.int64), np.zeros((6, 3), np.int64), 4)
    found = hotfix_list(top, ranking(scores))(sums, 0)
    assert found is not None
    order = np.argsort(-scores)
    for n_ranks in (1, 3, 6):
        by_place = np.eye(6)
        by_place[:top, :top] = 1.0 / min(top, 6)
        expected = by_place[np.argsort(order), :n_ranks]
        exposures = served(found).exposures(n_ranks)
        np.testing.assert_allclose(exposures, expected, atol=1e-7)
    is_shuffled = np.isin(np.arange(6), order[:top])
    learned = np.array([4.0, 0.0, -3.0, 0.0, 0.0, 0.0])
    assert found.values[is_shuffled].tolist() == learned[is_shuffled].tolist()
    if not is_shuffled.all():
        assert found.values[~is_shuffled].max() < found.values[is_shuffled].min()


def test_hotfix_of_all_items_needs_no_order_of_the_model() -> None:
    """One that shuffles some does: of a set that it knows nothing of, none is made."""
    sums = sums_of(np.zeros((6, 3), np.int64), np.zeros((6, 3), np.int64), 4)
    complete = hotfix_list(0, None)(sums, 0)
    assert complete is not None
    assert complete.blocks == [6]
    assert hotfix_list(2, ranking(np.full(6, np.nan)))(sums, 0) is None


def test_of_two_sets_the_one_that_the_model_knows_has_its_order() -> None:
    """The other one has none."""
    one = sums_of(np.zeros((3, 3), np.int64), np.zeros((3, 3), np.int64), 4)
    starts = np.array([0, 3, 6])
    sets = CandidateSets(("p", "q"), (b"r", b"s"), 2 * one.sets.items, starts)
    scores = np.array([np.nan, np.nan, np.nan, 0.1, 0.3, 0.2])
    policy = hotfix_list(1, SureRanking(tied_orders(scores, starts), scores))
    assert policy(one._replace(sets=sets), 0) is None
    found = policy(one._replace(sets=sets), 1)
    assert found is not None
    assert (found.order, found.blocks) == ([1, 2, 0], [1, 1, 1])


def test_what_the_model_ties_with_the_last_of_them_is_shuffled_too() -> None:
    """There is no second of four items that are equal; below them ties stay."""
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1, 0.1])
    sums = sums_of(np.zeros((6, 3), np.int64), np.zeros((6, 3), np.int64), 4)
    found = hotfix_list(2, ranking(scores))(sums, 0)
    assert found is not None
    assert (found.order, found.blocks) == ([0, 1, 2, 3, 4, 5], [4, 2])
