"""Compiled counting of closed impressions into the tables of their cells.

Kernels loop over a batch and add integers; the order of impressions decides
which rows come first, never what is counted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.counts import count_tables as t
from models.counts.count_rows import (
    add_inverse,
    append_pair,
    chained_pair,
    click_pair_row,
    item_row_of_pair,
    mark_dirty,
    new_cell,
    pair_row,
)
from models.counts.count_tables import Int32, Int64, Tables
from models.kernels.compilation import compiled, inlined


class Batch(NamedTuple):
    """Closed impressions, in closing order.

    Parameters
    ----------
    places, groups, times_ms : [n]
    starts : [n + 1]
    items : [n_shown]
        Rows of the candidate lists; those of impression i from `starts[i]` to
        `starts[i + 1]`.
    map_starts : [n]
        Where it is not negative, items are looked up in `maps` from there.
    maps : [n_mapped]
    click_owners, click_ranks : [n_clicks]
        Click j is one of impression `click_owners[j]`, at a 1-based rank.
    click_probabilities : [n_clicks]
        Of its placement: 0 where unknown, -1 where it comes later.
    """

    places: Int32
    groups: Int32
    times_ms: Int64
    starts: Int64
    items: NDArray[np.uint16]
    map_starts: Int64
    maps: Int32
    click_owners: Int32
    click_ranks: Int32
    click_probabilities: NDArray[np.float64]


class Later(NamedTuple):
    """What a batch leaves to do: evicted exposure rows, and clicks that wait.

    `evicted` [n_evicted, 3] columns: cell, place, count. `waiting` [n_waiting, 5]
    columns: cell, item, rank, place, row of the candidate list. `sizes` [3] says how
    many there are of each, and then whether something overflowed.
    """

    evicted: Int32
    waiting: Int32
    sizes: Int64


@inlined
def _count_exposure(
    tables: Tables, cell: int, place: int, limit: int, later: Later
) -> None:
    """Count an exposure row of a cell; beyond the limit the oldest is evicted."""
    entries, cells = tables.entries, tables.cells
    previous, entry, n_entries = -1, cells[cell, t.FIRST_ENTRY], 0
    before_last = -1
    while entry >= 0:
        if entries[entry, t.ENTRY_PLACE] == place:
            entries[entry, t.ENTRY_COUNT] += 1
            return
        n_entries += 1
        before_last = previous
        previous, entry = entry, entries[entry, t.ENTRY_NEXT]
    if n_entries >= limit:
        entry = previous
        n_evicted = later.sizes[0]
        later.evicted[n_evicted, 0] = cell
        later.evicted[n_evicted, 1] = entries[entry, t.ENTRY_PLACE]
        later.evicted[n_evicted, 2] = entries[entry, t.ENTRY_COUNT]
        later.sizes[0] = n_evicted + 1
        tables.places[entries[entry, t.ENTRY_PLACE], 1] -= 1
        if before_last >= 0:
            entries[before_last, t.ENTRY_NEXT] = -1
        else:
            cells[cell, t.FIRST_ENTRY] = -1
    else:
        entry = tables.sizes[t.N_ENTRIES]
        tables.sizes[t.N_ENTRIES] = entry + 1
    entries[entry, t.ENTRY_PLACE] = place
    entries[entry, t.ENTRY_COUNT] = 1
    entries[entry, t.ENTRY_NEXT] = cells[cell, t.FIRST_ENTRY]
    cells[cell, t.FIRST_ENTRY] = entry
    tables.places[place, 1] += 1


class Impression(NamedTuple):
    """The impression at hand, by 1-based rank.

    `shown`, `marks`, `rows` [n_longest + 2] hold items, clicks and rows of pairs.
    `marks` says which ranks were clicked, and holds 2 where a click was counted
    for bandits; its ends hold the first and last clicked rank. `sizes` [4] holds the
    length of the list, the first of its clicks, the end of its clicks, and the
    number of clicked ranks.
    """

    shown: Int32
    marks: Int32
    rows: Int32
    sizes: Int64


@inlined
def _read(batch: Batch, i: int, clicks_from: int, one: Impression) -> None:
    """Read what was shown and clicked."""
    start, mapped = batch.starts[i], batch.map_starts[i]
    n_shown = batch.starts[i + 1] - start
    for rank in range(1, n_shown + 1):
        item = int(batch.items[start + rank - 1])
        one.shown[rank] = batch.maps[mapped + item] if mapped >= 0 else item
    one.marks[: n_shown + 2] = 0
    n_clicked, first, last = 0, 0, 0
    j = clicks_from
    while j < batch.click_owners.shape[0] and batch.click_owners[j] == i:
        rank = batch.click_ranks[j]
        j += 1
        if rank < 1 or rank > n_shown or one.marks[rank]:
            continue
        one.marks[rank] = 1
        n_clicked += 1
        first = rank if first == 0 else min(first, rank)
        last = max(last, rank)
    one.marks[0], one.marks[n_shown + 1] = first, last
    one.sizes[0], one.sizes[1], one.sizes[2] = n_shown, clicks_from, j
    one.sizes[3] = n_clicked


@inlined
def _find_rows(tables: Tables, cell: int, one: Impression) -> None:
    """The row of each shown item at its rank; those that are new are made."""
    cells, pairs, sizes = tables.cells, tables.pairs, tables.sizes
    hint, n_before = cells[cell, t.FIRST_PAIR], cells[cell, t.N_OWN_PAIRS]
    is_chained = n_before + one.sizes[0] <= t.MOST_CHAINED
    for rank in range(1, one.sizes[0] + 1):
        item = one.shown[rank]
        row = hint
        # A list that was shown before lies in its chain in displayed order.
        if (
            row < 0
            or pairs[row, t.PAIR_RANK] != rank
            or pairs[row, t.PAIR_ITEM] != item
        ):
            if is_chained:
                # No rank comes twice in a list: those of this one need no search.
                first = cells[cell, t.FIRST_PAIR] if n_before > 0 else -1
                row = chained_pair(pairs, first, item, rank)
                if row < 0:
                    row = sizes[t.N_PAIRS]
                    sizes[t.N_PAIRS] = row + 1
                    append_pair(cells, pairs, row, cell, item, rank)
            else:
                row = pair_row(tables, cell, item, rank)
        hint = pairs[row, t.PAIR_NEXT]
        one.rows[rank] = row


@inlined
def _count_ranks(tables: Tables, time_ms: int, one: Impression) -> None:
    """Part (b): the pairs of an impression."""
    pairs, wide, marks, n_shown = (
        tables.pairs,
        tables.pairs_wide,
        one.marks,
        one.sizes[0],
    )
    first, last = marks[0], marks[n_shown + 1]
    to_first = n_shown if first == 0 else first
    for rank in range(1, n_shown + 1):
        row = one.rows[rank]
        pairs[row, t.SHOWN] += 1
        if rank <= to_first:
            pairs[row, t.SHOWN_TO_FIRST] += 1
        if rank <= last:
            pairs[row, t.SHOWN_TO_LAST] += 1
            if marks[rank]:
                pairs[row, t.CLICKED] += 1
        wide[row, t.LAST_MS] = max(wide[row, t.LAST_MS], time_ms)
    if first > 0:
        pairs[one.rows[first], t.FIRST_CLICK] += 1


@inlined
def _count_totals(cells: Int64, cell: int, n_clicked: int) -> bool:
    """Part (a); False if the cell is full."""
    if cells[cell, t.IMPRESSIONS] >= t.LARGEST_COUNT:
        return False
    cells[cell, t.IMPRESSIONS] += 1
    cells[cell, t.WITHOUT_CLICK] += n_clicked == 0
    cells[cell, t.CLICKS] += n_clicked
    cells[cell, t.CLICKS_SQUARED] += n_clicked * n_clicked
    return True


@inlined
def _count_clicks(tables: Tables, cell: int, one: Impression) -> None:
    """Part (c), clicked above unclicked, and part (d), pairs of clicked places."""
    marks, rows, n_clicked = one.marks, one.rows, one.sizes[3]
    last = marks[one.sizes[0] + 1]
    for rank in range(1, last + 1):
        row = item_row_of_pair(tables, cell, rows[rank])
        if not marks[rank]:
            tables.items[row, t.MINUS] += n_clicked
            continue
        tables.items[row, t.PLUS] += last - n_clicked
        for other in range(rank + 1, last + 1):
            if marks[other]:
                row = click_pair_row(tables, cell, rows[rank], rows[other])
                tables.click_pairs[row, t.CLICK_PAIR_COUNT] += 1


@inlined
def _count_bandit(
    tables: Tables, batch: Batch, i: int, cell: int, one: Impression, later: Later
) -> None:
    """Part (c), inverse sums; clicks whose probability comes later are noted."""
    for j in range(one.sizes[1], one.sizes[2]):
        rank, probability = batch.click_ranks[j], batch.click_probabilities[j]
        if rank < 1 or rank > one.sizes[0] or one.marks[rank] != 1:
            continue
        one.marks[rank] = 2
        if probability > 0:
            row = item_row_of_pair(tables, cell, one.rows[rank])
            if not add_inverse(tables, cell, row, probability):
                later.sizes[2] = 1
        elif probability < 0:
            waiting = later.waiting[later.sizes[1]]
            waiting[0] = cell
            waiting[1] = one.shown[rank]
            waiting[2] = rank
            waiting[3] = batch.places[i]
            waiting[4] = batch.items[batch.starts[i] + rank - 1]
            later.sizes[1] += 1


@inlined
def _is_counted_again(cells: Int64, entries: Int32, cell: int, place: int) -> bool:
    """Count an exposure row that is the cell's newest; False if it is not."""
    entry = cells[cell, t.FIRST_ENTRY]
    if entry < 0 or entries[entry, t.ENTRY_PLACE] != place:
        return False
    entries[entry, t.ENTRY_COUNT] += 1
    return True


@inlined
def _cell_at(tables: Tables, slot: int) -> int:
    """The cell at a slot, made if it is not there, and dirty."""
    cell = int(tables.cell_of[slot])
    if cell < 0:
        cell = new_cell(tables, slot)
    if tables.cells[cell, t.IS_DIRTY] == 0:
        mark_dirty(tables, cell)
    return cell


@compiled
def count_batch(tables: Tables, batch: Batch, limit: int, later: Later) -> None:
    """Count a batch; the tables must have room for whatever it can bring."""
    cells, entries, sizes = tables.cells, tables.entries, tables.sizes
    place_scope, places = tables.place_scope, tables.places
    n_longest = int(np.diff(batch.starts).max())
    one = Impression(
        np.zeros(n_longest + 2, np.int32),
        np.zeros(n_longest + 2, np.int32),
        np.zeros(n_longest + 2, np.int32),
        np.zeros(4, np.int64),
    )
    for i in range(batch.places.shape[0]):
        place = batch.places[i]
        cell = _cell_at(tables, place_scope[place] * t.N_GROUPS + batch.groups[i])
        _read(batch, i, one.sizes[2], one)
        if not _count_totals(cells, cell, one.sizes[3]):
            later.sizes[2] = 1
            return
        _find_rows(tables, cell, one)
        _count_ranks(tables, batch.times_ms[i], one)
        kind = places[place, 0]
        if kind == t.CAPPED:
            sizes[t.N_CAPPED] += 1
            continue
        if one.sizes[3] > 0:
            _count_clicks(tables, cell, one)
        if kind == t.WITHOUT_ROW:
            cells[cell, t.WITHOUT_EXPOSURE] += 1
            sizes[t.N_WITHOUT_EXPOSURE] += 1
            continue
        if one.sizes[3] > 0:
            _count_bandit(tables, batch, i, cell, one, later)
        if not _is_counted_again(cells, entries, cell, place):
            _count_exposure(tables, cell, place, limit, later)
