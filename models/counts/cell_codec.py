"""Cells as bytes: written by walking their chains, read back into tables.

Layout, numbers as LEB128 varints: a schema byte; the number of exposure rows and
their 16-byte names, newest first; their counts; the six totals of the cell; the
latest time shown; the pairs, sorted by item, then rank; the items that have
hotfix or inverse sums, sorted; the click pairs, as places in the list of pairs,
sorted. A pair is the step from the previous item, its rank, a byte of flags, and
those of its numbers that the flags name.

Measured: a cell of one list of ten takes 95 bytes, of them 17 for its exposure
row; a (cell, item, rank) 9 bytes, header and rows included; keys come on top.
"""

import numpy as np

from models.counts import count_tables as t
from models.counts.count_rows import click_pair_row, item_row, new_cell, pair_row
from models.counts.count_tables import Bytes, Int32, Int64, Tables
from models.counts.varints import read_number, write_number
from models.kernels.compilation import compiled

SCHEMA = 1
"""First byte of a written cell."""

N_PAIR_COLUMNS = 9
"""item, rank, shown, clicked, first_click, shown_to_first, shown_to_last,
last_ms, exposure."""

N_ITEM_COLUMNS = 6
"""item, plus, minus, inverse, low and high part of the squared inverse."""

PAIR_BYTES, ITEM_BYTES, CLICK_PAIR_BYTES, ENTRY_BYTES = 56, 60, 20, 24
"""Upper bounds of what one row can take."""

HEADER_BYTES = 128


@compiled
def _sort(keys: Int64, rows: Int32, n_rows: int) -> None:
    """Sort the first rows by their distinct keys."""
    if n_rows > 48:
        order = np.argsort(keys[:n_rows])
        keys[:n_rows] = keys[:n_rows][order]
        rows[:n_rows] = rows[:n_rows][order]
        return
    for i in range(1, n_rows):
        key, row = keys[i], rows[i]
        j = i - 1
        while j >= 0 and keys[j] > key:
            keys[j + 1] = keys[j]
            rows[j + 1] = rows[j]
            j -= 1
        keys[j + 1] = key
        rows[j + 1] = row


@compiled
def _write_pair(
    tables: Tables, row: int, item: int, last_ms: int, out: Bytes, position: int
) -> int:
    pair = tables.pairs[row]
    shown = int(pair[t.SHOWN])
    age = 0 if shown == 0 else last_ms - tables.pairs_wide[row, t.LAST_MS]
    after_first = shown - pair[t.SHOWN_TO_FIRST]
    exposure = tables.pairs_wide[row, t.EXPOSURE]
    position = write_number(out, position, pair[t.PAIR_ITEM] - item)
    position = write_number(out, position, pair[t.PAIR_RANK])
    flags_at = position
    position += 1
    flags = 0
    if shown > 0:
        flags |= 1
        position = write_number(out, position, shown)
    if pair[t.CLICKED] > 0:
        flags |= 2
        position = write_number(out, position, pair[t.CLICKED])
    if pair[t.FIRST_CLICK] > 0:
        flags |= 4
        position = write_number(out, position, pair[t.FIRST_CLICK])
    if after_first > 0:
        flags |= 8
        position = write_number(out, position, after_first)
    if pair[t.SHOWN_TO_LAST] > 0:
        flags |= 16
        position = write_number(out, position, pair[t.SHOWN_TO_LAST])
    if age > 0:
        flags |= 32
        position = write_number(out, position, age)
    if exposure > 0:
        flags |= 64
        position = write_number(out, position, exposure)
    out[flags_at] = flags
    return position


@compiled
def _read_pair(
    source: Bytes, position: int, last_ms: int, item: int, pair: Int64
) -> int:
    """Read what `_write_pair` wrote into the nine columns of a pair."""
    pair[:] = 0
    step, position = read_number(source, position)
    pair[0] = item + step
    pair[1], position = read_number(source, position)
    flags = source[position]
    position += 1
    for column in range(7):
        if flags & (1 << column):
            pair[2 + column], position = read_number(source, position)
    pair[5] = pair[2] - pair[5]
    pair[7] = last_ms - pair[7] if pair[2] > 0 else 0
    return position


@compiled
def _write_pairs(
    tables: Tables, cell: int, keys: Int64, rows: Int32, out: Bytes, position: int
) -> tuple[int, int]:
    """Write the pairs; leaves their sorted keys. Returns position and number."""
    n_pairs, last_ms = 0, 0
    row = tables.cells[cell, t.FIRST_PAIR]
    while row >= 0:
        pair = tables.pairs[row]
        keys[n_pairs] = (np.int64(pair[t.PAIR_ITEM]) << 10) | pair[t.PAIR_RANK]
        rows[n_pairs] = row
        n_pairs += 1
        last_ms = max(last_ms, tables.pairs_wide[row, t.LAST_MS])
        row = pair[t.PAIR_NEXT]
    _sort(keys, rows, n_pairs)
    position = write_number(out, position, last_ms)
    position = write_number(out, position, n_pairs)
    item = 0
    for i in range(n_pairs):
        position = _write_pair(tables, rows[i], item, last_ms, out, position)
        item = tables.pairs[rows[i], t.PAIR_ITEM]
    return position, n_pairs


@compiled
def _write_items(
    tables: Tables, cell: int, keys: Int64, rows: Int32, out: Bytes, position: int
) -> int:
    n_items = 0
    row = tables.cells[cell, t.FIRST_ITEM]
    while row >= 0:
        keys[n_items] = tables.items[row, t.ITEM_ITEM]
        rows[n_items] = row
        n_items += 1
        row = tables.items[row, t.ITEM_NEXT]
    _sort(keys, rows, n_items)
    position = write_number(out, position, n_items)
    item = 0
    for i in range(n_items):
        position = write_number(out, position, keys[i] - item)
        item = keys[i]
        for column in range(t.PLUS, t.SQUARED_HIGH + 1):
            position = write_number(out, position, tables.items[rows[i], column])
    return position


@compiled
def _write_click_pairs(
    tables: Tables, cell: int, pair_keys: Int64, out: Bytes, position: int
) -> int:
    n_rows = 0
    row = tables.cells[cell, t.FIRST_CLICK_PAIR]
    while row >= 0:
        n_rows += 1
        row = tables.click_pairs[row, t.CLICK_PAIR_NEXT]
    position = write_number(out, position, n_rows)
    if n_rows == 0:
        return position
    keys, rows = np.empty(n_rows, np.int64), np.empty(n_rows, np.int32)
    row = tables.cells[cell, t.FIRST_CLICK_PAIR]
    for i in range(n_rows):
        pair = tables.pairs[tables.click_pairs[row, t.CLICK_PAIR_A]]
        other = tables.pairs[tables.click_pairs[row, t.CLICK_PAIR_B]]
        a = np.searchsorted(
            pair_keys, (np.int64(pair[t.PAIR_ITEM]) << 10) | pair[t.PAIR_RANK]
        )
        b = np.searchsorted(
            pair_keys, (np.int64(other[t.PAIR_ITEM]) << 10) | other[t.PAIR_RANK]
        )
        keys[i] = (min(a, b) << 32) | max(a, b)
        rows[i] = row
        row = tables.click_pairs[row, t.CLICK_PAIR_NEXT]
    _sort(keys, rows, n_rows)
    for i in range(n_rows):
        position = write_number(out, position, keys[i] >> 32)
        position = write_number(out, position, keys[i] & 0xFFFFFFFF)
        count = tables.click_pairs[rows[i], t.CLICK_PAIR_COUNT]
        position = write_number(out, position, count)
    return position


@compiled
def _room_of(tables: Tables, cell: int) -> tuple[int, int]:
    """Bytes that a cell may take, and the longest of its chains of pairs, items."""
    n_pairs, n_items, n_rows, n_entries = 0, 0, 0, 0
    row = tables.cells[cell, t.FIRST_PAIR]
    while row >= 0:
        n_pairs += 1
        row = tables.pairs[row, t.PAIR_NEXT]
    row = tables.cells[cell, t.FIRST_ITEM]
    while row >= 0:
        n_items += 1
        row = tables.items[row, t.ITEM_NEXT]
    row = tables.cells[cell, t.FIRST_CLICK_PAIR]
    while row >= 0:
        n_rows += 1
        row = tables.click_pairs[row, t.CLICK_PAIR_NEXT]
    row = tables.cells[cell, t.FIRST_ENTRY]
    while row >= 0:
        n_entries += 1
        row = tables.entries[row, t.ENTRY_NEXT]
    n_bytes = HEADER_BYTES + PAIR_BYTES * n_pairs + ITEM_BYTES * n_items
    n_bytes += CLICK_PAIR_BYTES * n_rows + ENTRY_BYTES * n_entries
    return n_bytes, max(n_pairs, n_items)


@compiled
def _write_cell(
    tables: Tables, cell: int, keys: Int64, rows: Int32, out: Bytes, position: int
) -> int:
    out[position] = SCHEMA
    n_entries = 0
    entry = tables.cells[cell, t.FIRST_ENTRY]
    while entry >= 0:
        n_entries += 1
        entry = tables.entries[entry, t.ENTRY_NEXT]
    position = write_number(out, position + 1, n_entries)
    entry = tables.cells[cell, t.FIRST_ENTRY]
    while entry >= 0:
        name = tables.hashes[tables.entries[entry, t.ENTRY_PLACE]]
        for byte in range(16):
            out[position + byte] = name[byte]
        position += 16
        entry = tables.entries[entry, t.ENTRY_NEXT]
    entry = tables.cells[cell, t.FIRST_ENTRY]
    while entry >= 0:
        position = write_number(out, position, tables.entries[entry, t.ENTRY_COUNT])
        entry = tables.entries[entry, t.ENTRY_NEXT]
    for column in range(t.N_TOTALS):
        position = write_number(out, position, tables.cells[cell, column])
    position, n_pairs = _write_pairs(tables, cell, keys, rows, out, position)
    pair_keys = keys[:n_pairs].copy()
    position = _write_items(tables, cell, keys, rows, out, position)
    return _write_click_pairs(tables, cell, pair_keys, out, position)


@compiled
def write_cells(tables: Tables, cells: Int32, out: Bytes, ends: Int64) -> int:
    """Write cells one after another until `out` might not hold the next.

    `cells` [n] are rows of the tables, `out` [n_bytes]; `ends` [n] takes where each
    ends. Returns how many were written.
    """
    keys, rows = np.empty(1024, np.int64), np.empty(1024, np.int32)
    position = 0
    for i in range(cells.shape[0]):
        room, n_longest = _room_of(tables, cells[i])
        if position + room > out.shape[0]:
            return i
        if n_longest > keys.shape[0]:
            keys = np.empty(2 * n_longest, np.int64)
            rows = np.empty(2 * n_longest, np.int32)
        position = _write_cell(tables, cells[i], keys, rows, out, position)
        ends[i] = position
    return int(cells.shape[0])


@compiled
def read_cell(source: Bytes, position: int) -> tuple[Int64, Int64, Int64, Int64, Int64]:
    """Exposure counts, totals, pairs, items and click pairs of a written cell.

    `position` in `source` [n_bytes] is that of the byte after the schema. The arrays
    are [n_entries], [6], [n_pairs, 9], [n_items, 6] and [n_rows, 3]: two places in the
    list of pairs, and a count.
    """
    n_entries, position = read_number(source, position)
    position += 16 * n_entries
    counts = np.empty(n_entries, np.int64)
    for i in range(n_entries):
        counts[i], position = read_number(source, position)
    totals = np.empty(t.N_TOTALS, np.int64)
    for column in range(t.N_TOTALS):
        totals[column], position = read_number(source, position)
    last_ms, position = read_number(source, position)
    n_pairs, position = read_number(source, position)
    pairs = np.empty((n_pairs, N_PAIR_COLUMNS), np.int64)
    item = 0
    for i in range(n_pairs):
        position = _read_pair(source, position, last_ms, item, pairs[i])
        item = pairs[i, 0]
    n_items, position = read_number(source, position)
    items = np.empty((n_items, N_ITEM_COLUMNS), np.int64)
    item = 0
    for i in range(n_items):
        step, position = read_number(source, position)
        item += step
        items[i, 0] = item
        for column in range(1, N_ITEM_COLUMNS):
            items[i, column], position = read_number(source, position)
    n_rows, position = read_number(source, position)
    click_pairs = np.empty((n_rows, 3), np.int64)
    for i in range(n_rows):
        for column in range(3):
            click_pairs[i, column], position = read_number(source, position)
    return counts, totals, pairs, items, click_pairs


@compiled
def _load_cell(
    tables: Tables, slot: int, places: Int32, source: Bytes, position: int
) -> int:
    """Take a written cell; returns how many exposure rows it refers to."""
    counts, totals, pairs, items, click_pairs = read_cell(source, position)
    cell = new_cell(tables, slot)
    tables.cells[cell, : t.N_TOTALS] = totals
    rows = np.empty(pairs.shape[0], np.int32)
    for i in range(pairs.shape[0]):
        row = pair_row(tables, cell, pairs[i, 0], pairs[i, 1])
        rows[i] = row
        tables.pairs[row, t.SHOWN : t.SHOWN_TO_LAST + 1] = pairs[i, 2:7]
        tables.pairs_wide[row, t.LAST_MS] = pairs[i, 7]
        tables.pairs_wide[row, t.EXPOSURE] = pairs[i, 8]
    for i in range(items.shape[0]):
        row = item_row(tables, cell, items[i, 0])
        tables.items[row, t.PLUS : t.SQUARED_HIGH + 1] = items[i, 1:]
    for i in range(click_pairs.shape[0]):
        a, b = rows[click_pairs[i, 0]], rows[click_pairs[i, 1]]
        row = click_pair_row(tables, cell, a, b)
        tables.click_pairs[row, t.CLICK_PAIR_COUNT] = click_pairs[i, 2]
    for i in range(counts.shape[0] - 1, -1, -1):
        entry = tables.sizes[t.N_ENTRIES]
        tables.sizes[t.N_ENTRIES] = entry + 1
        tables.entries[entry, t.ENTRY_PLACE] = places[i]
        tables.entries[entry, t.ENTRY_COUNT] = counts[i]
        tables.entries[entry, t.ENTRY_NEXT] = tables.cells[cell, t.FIRST_ENTRY]
        tables.cells[cell, t.FIRST_ENTRY] = entry
        tables.places[places[i], 1] += 1
    return int(counts.shape[0])


@compiled
def load_cells(
    tables: Tables, slots: Int64, places: Int32, source: Bytes, starts: Int64
) -> None:
    """Take written cells into tables that have room for them.

    Parameters
    ----------
    slots : [n_cells]
    places : [n_entries]
        Those of the exposure rows of all cells, one after another.
    source : [n_bytes]
    starts : [n_cells]
        Where each cell begins in `source`.
    """
    n_places = 0
    for i in range(slots.shape[0]):
        n_places += _load_cell(
            tables, slots[i], places[n_places:], source, starts[i] + 1
        )


@compiled
def written_sizes(source: Bytes, starts: Int64) -> Int64:
    """Pairs, items, click pairs and exposure rows of written cells, together.

    [4], of cells that begin at `starts` [n_cells] in `source` [n_bytes].
    """
    sizes = np.zeros(4, np.int64)
    for i in range(starts.shape[0]):
        counts, _, pairs, items, click_pairs = read_cell(source, starts[i] + 1)
        sizes[0] += pairs.shape[0]
        sizes[1] += items.shape[0]
        sizes[2] += click_pairs.shape[0]
        sizes[3] += counts.shape[0]
    return sizes
