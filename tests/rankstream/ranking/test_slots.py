"""Lists whose last rank tries what may be better: logged as they are drawn."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from rankstream.ranking.tied_list import TiedList
from rankstream.wire.decision_shards import Slot

Chances = dict[tuple[int, ...], float]

CASES = {
    "nothing tied": TiedList([4, 2, 0, 1, 3], [], Slot(2, 0.5, [1, 3])),
    "a tie above": TiedList([4, 2, 0, 1, 3], [(0, 1)], Slot(3, 0.25, [3])),
    "a tie within": TiedList([4, 2, 0, 1, 3], [(1, 2)], Slot(3, 0.5, [1])),
    "a tie across": TiedList([4, 2, 0, 1, 3], [(1, 3)], Slot(3, 0.5, [3])),
    "a tie across alone": TiedList([4, 2, 0, 1, 3], [(0, 3)], Slot(2, 0.75, [])),
    "a tie of the tried": TiedList([4, 2, 0, 1, 3], [(2, 4)], Slot(2, 0.5, [1])),
    "all tied": TiedList([2, 0, 3, 1], [(0, 3)], Slot(1, 1.0, [])),
}


def lists_of(tied: TiedList, cutoff: int) -> Chances:
    """Each list with its chance: all orders of ties, then all that is tried."""
    blocks, at = [], 0
    for first, last in [*tied.ties, (len(tied.rows), len(tied.rows))]:
        blocks += [[row] for row in tied.rows[at:first]]
        blocks.append([*tied.rows[first : last + 1]])
        at = last + 1
    orders = [
        [*itertools.chain(*each)]
        for each in itertools.product(*map(itertools.permutations, blocks))
    ]
    found: Chances = defaultdict(float)
    for order in orders:
        shown, slot = order[:cutoff], tied.slot
        share, tried = 0.0, []
        if slot is not None and slot.n_ranks == cutoff:
            of_last = next(block for block in blocks if shown[-1] in block)
            share = slot.share
            tried = [*slot.tried, *({*of_last} - {*shown})]
        found[*shown] += (1.0 - share) / len(orders)
        for row in tried:
            found[*shown[:-1], row] += share / len(tried) / len(orders)
    return {each: chance for each, chance in found.items() if chance}


@pytest.mark.parametrize("tied", CASES.values(), ids=CASES)
@pytest.mark.parametrize("cutoff", [1, 2, 3, 4])
def test_exposures_are_those_of_all_lists(tied: TiedList, cutoff: int) -> None:
    """To the last bit of float32; of lists of another length without the slot."""
    expected = np.zeros((len(tied.rows), cutoff))
    for each, chance in lists_of(tied, cutoff).items():
        expected[each, np.arange(cutoff)] += chance
    np.testing.assert_allclose(tied.exposures(cutoff), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("tied", CASES.values(), ids=CASES)
def test_lists_are_drawn_as_they_are_logged(tied: TiedList) -> None:
    """Each within 4.5 standard errors over 3,000 seeds, and no other."""
    assert tied.slot is not None
    cutoff, n = tied.slot.n_ranks, 3_000
    drawn = [tied.drawn(cutoff=cutoff, seed=seed) for seed in range(n)]
    assert {policy for _, policy in drawn} == {"logged"}
    counts = Counter(tuple(order.tolist()) for order, _ in drawn)
    chances = lists_of(tied, cutoff)
    assert counts.keys() == chances.keys()
    for each, count in counts.items():
        share = chances[each]
        assert abs(count / n - share) < 4.5 * np.sqrt(share * (1.0 - share) / n) + 1e-9


def test_a_list_of_another_length_is_sure() -> None:
    """It is logged without chances, as it has none."""
    for cutoff in (1, 3, 9):
        order, policy = CASES["nothing tied"].drawn(cutoff=cutoff, seed=3)
        assert (order.tolist(), policy) == ([4, 2, 0, 1, 3][:cutoff], "deterministic")
