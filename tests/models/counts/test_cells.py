"""Cells as bytes, their tables, and their sums."""

import numpy as np
import pytest

from models.counts import count_tables as t
from models.counts.cells import (
    PAIR_NAMES,
    CellSummary,
    decode_cell,
    merge,
    totals_of,
)
from models.counts.count_kernel import Batch
from models.counts.count_tables import SQUARED_BITS
from models.counts.exposure_overflow import placements_of, tail_shuffle_matrix
from models.counts.store import StatisticsStore
from models.counts.varints import read_number, write_number

ITEMS = ("a", "b", "c", "d")


def batch(lists, clicks=(), *, places=None, probabilities=None):
    """A batch of lists of one group; `clicks` holds (list, rank)."""
    lengths = [len(one) for one in lists]
    n_clicks = len(clicks)
    return Batch(
        places=np.array(places or [0] * len(lists), np.int32),
        groups=np.zeros(len(lists), np.int32),
        times_ms=np.arange(len(lists), dtype=np.int64),
        starts=np.concatenate(([0], np.cumsum(lengths))),
        items=np.frombuffer(np.concatenate(lists).astype(np.uint16).tobytes(), "<u2"),
        map_starts=np.full(len(lists), -1, np.int64),
        maps=np.frombuffer(b"", np.int32),
        click_owners=np.array([owner for owner, _ in clicks], np.int32),
        click_ranks=np.array([rank for _, rank in clicks], np.int32),
        click_probabilities=np.array(probabilities or [1.0] * n_clicks, np.float64),
    )


def store_with(kind=t.WITH_ROW, n_places=1):
    """A store with places of one scope."""
    store = StatisticsStore()
    store.reserve_scope(0)
    for place in range(n_places):
        store.set_places(np.array([[place, 0, kind]], np.int32))
        store.name_place(place, bytes([place]) * 16)
    return store


def only_cell(store):
    """The bytes of the only cell that changed."""
    ((slot, value),) = store.written()
    assert slot == 0
    return value


@pytest.mark.parametrize(
    "number", [0, 1, 127, 128, 16383, 16384, 2**31, 2**40 + 5, 2**62, 2**63 - 1]
)
def test_numbers_of_any_size_come_back(number):
    """A varint takes as many bytes as it says and returns the number."""
    out = np.zeros(16, np.uint8)
    end = write_number(out, 1, number)
    assert read_number(out, 1) == (number, end)
    assert end - 1 == max(1, -(-number.bit_length() // 7))


def test_a_cell_says_what_happened():
    """One list with two clicks and one without, counted by hand."""
    store = store_with()
    store.count(batch([[2, 0, 1], [0, 1]], [(0, 3), (0, 1), (0, 1)]), limit=4)
    cell = decode_cell(only_cell(store), ITEMS)
    assert [cell.total(name) for name in ("impressions", "without_click")] == [2, 1]
    assert [cell.total(name) for name in ("clicks", "clicks_squared")] == [2, 4]
    assert cell.pairs.tolist() == [
        # item, rank, shown, clicked, first, to first, to last, last time, exposure
        [0, 1, 1, 0, 0, 1, 0, 1, 0],
        [0, 2, 1, 0, 0, 0, 1, 0, 0],
        [1, 2, 1, 0, 0, 1, 0, 1, 0],
        [1, 3, 1, 1, 0, 0, 1, 0, 0],
        [2, 1, 1, 1, 1, 1, 1, 0, 0],
    ]
    one = 1 << 16
    assert cell.sums[:, :4].tolist() == [
        [0, 0, 2, 0],
        [1, 1, 0, one],
        [2, 1, 0, one],
    ]
    assert cell.squared_inverses() == [0, one, one]
    assert cell.click_pairs.tolist() == [[1, 3, 2, 1, 1]]
    assert cell.row_counts.tolist() == [2]


def test_inverse_squares_beyond_63_bits_are_exact():
    """Clipped clicks add 2^56 each, and no number of them is rounded."""
    store, n_clicks = store_with(), 1000
    lists, clicks = [[0]] * n_clicks, [(i, 1) for i in range(n_clicks)]
    taken = batch(lists, clicks, probabilities=[1e-9] * n_clicks)
    store.count(taken, limit=4)
    value = only_cell(store)
    cell = decode_cell(value, ITEMS)
    assert cell.squared_inverses() == [n_clicks << 56]
    assert cell.total("clipped") == n_clicks
    again = store_with()
    again.load([0], [0], [value])
    again.count(taken, limit=4)
    assert decode_cell(only_cell(again), ITEMS).squared_inverses() == [
        2 * n_clicks << 56
    ]
    assert merge([cell, cell]).squared_inverses() == [2 * n_clicks << 56]


def test_a_full_counter_refuses_instead_of_wrapping():
    """An impression that would not fit 31 bits raises and is named."""
    store = store_with()
    store.count(batch([[0]]), limit=4)
    store.tables.cells[0, t.IMPRESSIONS] = t.LARGEST_COUNT
    with pytest.raises(OverflowError, match=r"fewer than 2\^31 impressions"):
        store.count(batch([[0]]), limit=4)


def test_the_oldest_exposure_row_is_evicted_first():
    """Rows leave by first appearance, with the count that they had."""
    store = store_with(n_places=3)
    later = store.count(batch([[0]] * 5, places=[0, 1, 0, 2, 0]), limit=2)
    assert later.evicted[:, 1:].tolist() == [[0, 2], [1, 1]]
    assert decode_cell(only_cell(store), ITEMS).row_counts.tolist() == [1, 1]


def test_overflow_sums_rounded_placements():
    """What is summed is count * round(2^30 p), for every item and rank."""
    store = store_with()
    store.count(batch([[0, 1]]), limit=4)
    matrix = np.array([[0.3, 1e-11], [0.7, 0.5], [0.0, 0.1]])
    store.overflow(np.array([[0, 0, 3]], np.int32), placements_of(matrix[None]))
    cell = decode_cell(only_cell(store), ITEMS)
    found = {(p[0], p[1]): p[8] for p in cell.pairs.tolist() if p[8]}
    assert found == {
        (item, rank + 1): 3 * round(p * 2**30)
        for (item, rank), p in np.ndenumerate(matrix)
        if round(p * 2**30)
    }


def test_tail_shuffle_is_uniform_over_the_rest():
    """Enumerating the last place gives the matrix."""
    first, n_items = np.array([2, 0], np.int32), 5
    expected = np.zeros((n_items, 3))
    for last in (1, 3, 4):
        expected[[2, 0, last], [0, 1, 2]] += 1 / 3
    assert np.allclose(tail_shuffle_matrix(first, n_items), expected)


def test_totals_alone_are_those_of_the_cell():
    """The short way to the totals gives the same."""
    store = store_with()
    store.count(batch([[0, 1]] * 3, [(1, 2)]), limit=4)
    value = only_cell(store)
    assert totals_of(value).tolist() == decode_cell(value, ITEMS).totals.tolist()


def test_another_schema_is_refused():
    """A cell of an unknown layout is not guessed at."""
    with pytest.raises(ValueError, match="schema of a cell must be 1; got 7"):
        decode_cell(b"\x07", ITEMS)


def summary(items, pairs, low=0):
    """A summary with some pairs of (item number, rank, shown, last time)."""
    rows = np.zeros((len(pairs), len(PAIR_NAMES)), np.int64)
    for row, (item, rank, shown, last_ms) in zip(rows, pairs, strict=True):
        row[[0, 1, 2, 7]] = item, rank, shown, last_ms
    return CellSummary(
        items,
        np.ones(6, np.int64),
        rows,
        np.array([[0, 1, 2, 3, low, 5]], np.int64),
        np.array([[1, 1, 0, 2, 1]], np.int64),
        (b"r" * 16,),
        np.array([4], np.int64),
    )


def test_merging_goes_by_item_not_by_number():
    """Summaries that number items differently add up item by item."""
    one = summary(("a", "b"), [(0, 1, 5, 100), (1, 2, 1, 7)])
    other = summary(("b", "c", "a"), [(0, 2, 3, 50), (2, 1, 2, 20)])
    both = merge([one, other])
    assert both.items == ("a", "b", "c")
    assert both.pairs[:, [0, 1, 2, 7]].tolist() == [[0, 1, 7, 100], [1, 2, 4, 50]]
    assert both.click_pairs.tolist() == [[0, 2, 1, 1, 1], [1, 2, 2, 1, 1]]
    assert both.row_counts.tolist() == [8]


def test_low_parts_carry():
    """The two parts of a squared inverse are normal again after a merge."""
    full = summary(("a", "b"), [(0, 1, 1, 1)], low=(1 << SQUARED_BITS) - 1)
    both = merge([full, full])
    assert both.squared_inverses() == [2 * full.squared_inverses()[0]]
    assert both.sums[0, 4] < 1 << SQUARED_BITS


def test_a_merge_that_does_not_fit_is_refused():
    """Sums beyond 63 bits raise."""
    large = summary(("a", "b"), [(0, 1, 2**62, 1)])
    with pytest.raises(OverflowError, match=r"below 2\^63"):
        merge([large, large])


def test_merging_nothing_is_refused():
    """There is no summary of no cells."""
    with pytest.raises(ValueError, match="at least one; got none"):
        merge([])
