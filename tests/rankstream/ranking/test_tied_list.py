"""Lists with ties: each order as likely, and logged with exactly that."""

import itertools
from collections import Counter

import numpy as np
import pytest

from rankstream.ranking.tied_list import TiedList

CASES = {
    "alone": ([2, 0, 1, 3], []),
    "all tied": ([0, 1, 2, 3], [(0, 3)]),
    "the tail": ([3, 1, 0, 2], [(1, 3)]),
    "two blocks": ([4, 2, 0, 1, 3], [(0, 1), (2, 4)]),
    "below the cut": ([4, 2, 0, 1, 3], [(3, 4)]),
}


@pytest.mark.parametrize(("rows", "ties"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("cutoff", [1, 2, 3, 9])
def test_exposures_are_those_of_all_orders_of_ties(
    rows: list[int], ties: list[tuple[int, int]], cutoff: int
) -> None:
    """Enumerated, each as likely: P(d at k), to the last bit of float32."""
    blocks, at = [], 0
    for first, last in [*ties, (len(rows), len(rows))]:
        blocks += [[row] for row in rows[at:first]]
        blocks.append(rows[first : last + 1])
        at = last + 1
    lists = [
        list(itertools.chain(*orders))[:cutoff]
        for orders in itertools.product(*map(itertools.permutations, blocks))
    ]
    expected = np.zeros((len(rows), min(cutoff, len(rows))))
    for each in lists:
        expected[each, np.arange(len(each))] += 1 / len(lists)
    tied = TiedList(rows, ties)
    order, policy = tied.drawn(cutoff=cutoff, seed=5)
    assert order.tolist() in lists
    exposures = tied.exposures(len(order))
    np.testing.assert_allclose(exposures, expected, rtol=1e-6, atol=0)
    if policy == "deterministic":
        assert lists[0] == order.tolist()
        assert len({tuple(each) for each in lists}) == 1
    else:
        assert policy == "logged"
        assert len({tuple(each) for each in lists}) > 1


def test_draws_are_as_likely_as_they_are_logged() -> None:
    """Each of the 12 lists within 4.5 standard errors over 12,000 seeds."""
    tied = TiedList([3, 1, 0, 2, 4], [(0, 1), (2, 4)])
    n = 12_000
    counts = Counter(
        tuple(tied.drawn(cutoff=5, seed=seed)[0].tolist()) for seed in range(n)
    )
    assert len(counts) == 12
    share = 1 / 12
    for count in counts.values():
        assert abs(count / n - share) < 4.5 * np.sqrt(share * (1 - share) / n)


def test_a_tie_that_the_cut_divides_shows_each_item_at_each_rank() -> None:
    """Three of five tied ones after a first item: 60 lists, as likely as logged."""
    tied, n = TiedList([5, 1, 0, 2, 3, 4], [(1, 5)]), 9_000
    shown = np.zeros((6, 4))
    for seed in range(n):
        order, _ = tied.drawn(cutoff=4, seed=seed)
        shown[order, range(4)] += 1.0 / n
    exposures = tied.exposures(4)
    errors = np.sqrt(exposures * (1.0 - exposures) / n)
    assert (np.abs(shown - exposures) <= 4.5 * errors + 1e-9).all()


def test_a_draw_follows_from_its_seed() -> None:
    """So that it can be made again from what was logged."""
    tied = TiedList(list(range(30)), [(0, 29)])
    first, again, other = (
        tied.drawn(cutoff=10, seed=seed)[0].tolist() for seed in (7, 7, 8)
    )
    assert again == first != other
    assert tied.rows == list(range(30))


def test_a_list_of_nothing_is_refused() -> None:
    """As with every other policy."""
    with pytest.raises(ValueError, match="cutoff must be at least 1; got 0"):
        TiedList([0, 1], []).drawn(cutoff=0, seed=1)
