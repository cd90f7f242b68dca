"""Sums of cells."""

import numpy as np
import pytest

from models.counts.cells import PAIR_NAMES, CellSummary, merge
from models.counts.fixed_point import SQUARED_BITS


def summary(items, pairs, low=0, rewards=()):
    """A summary with some pairs of (item number, rank, shown, exposure)."""
    rows = np.zeros((len(pairs), len(PAIR_NAMES)), np.int64)
    for row, (item, rank, shown, exposure) in zip(rows, pairs, strict=True):
        row[[0, 1, 2, 7]] = item, rank, shown, exposure
    return CellSummary(
        items,
        np.ones(6, np.int64),
        rows,
        np.array([[0, 1, 2, 3, low, 5]], np.int64),
        np.array([[1, 1, 0, 2, 1]], np.int64),
        (b"r" * 16,),
        np.array([4], np.int64),
        np.array(rewards, np.int64).reshape(-1, 4),
    )


def test_merging_goes_by_item_not_by_number():
    """Summaries that number items differently add up item by item."""
    one = summary(("a", "b"), [(0, 1, 5, 100), (1, 2, 1, 7)], rewards=[(1, 1, 2, 3)])
    other = summary(("b", "c", "a"), [(0, 2, 3, 50), (2, 1, 2, 20)])
    third = summary(("b", "d"), [], rewards=[(1, 0, 2, 4), (2, 0, 2, 9)])
    both = merge([one, other])
    assert both.items == ("a", "b", "c")
    assert both.pairs[:, [0, 1, 2, 7]].tolist() == [[0, 1, 7, 120], [1, 2, 4, 57]]
    assert both.click_pairs.tolist() == [[0, 2, 1, 1, 1], [1, 2, 2, 1, 1]]
    assert both.row_counts.tolist() == [8]
    assert merge([one, third]).rewards.tolist() == [[1, 1, 2, 7], [2, 1, 2, 9]]


def test_low_parts_carry():
    """The two parts of a squared inverse are normal again after a merge."""
    full = summary(("a", "b"), [(0, 1, 1, 1)], low=(1 << SQUARED_BITS) - 1)
    both = merge([full, full])
    assert both.squared_inverses() == [2 * full.squared_inverses()[0]]
    assert both.sums[0, 4] < 1 << SQUARED_BITS


def test_a_merge_that_does_not_fit_is_refused():
    """Sums beyond 63 bits raise; those that just fit do not."""
    large = summary(("a", "b"), [(0, 1, 2**62, 1)])
    with pytest.raises(OverflowError, match=r"below 2\^63"):
        merge([large, large])
    less = summary(("a", "b"), [(0, 1, 2**62 - 1, 1)])
    assert merge([less, less]).column("shown").tolist() == [2**63 - 2]


def test_keys_too_large_for_one_number_sort_all_the_same():
    """Items and ranks of any size are told apart."""
    items = tuple(f"{number:02}" for number in range(2))
    pairs = [(1, 2**62, 1, 0), (0, 2**62, 2, 0), (1, 1, 3, 0), (0, 2**62, 4, 0)]
    merged = merge([summary(items, pairs)])
    expected = [[0, 2**62, 6], [1, 1, 3], [1, 2**62, 1]]
    assert merged.pairs[:, :3].tolist() == expected


def test_merging_nothing_is_refused():
    """There is no summary of no cells."""
    with pytest.raises(ValueError, match="at least one; got none"):
        merge([])
