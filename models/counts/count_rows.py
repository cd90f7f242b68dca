"""Rows of the tables: found by what they count, made where they are not there."""

import numpy as np
from numpy.typing import NDArray

from models.counts import count_tables as t
from models.counts.count_tables import Int32, Int64, Tables
from models.kernels.compilation import compiled, inlined


@inlined
def slot_of(high: int, low: int, rank: int, mask: int) -> int:
    """Where a search in a hash table begins."""
    key = (high << 32) ^ (low << 10) ^ rank
    key *= -7046029254386353131
    key ^= (key >> 32) & 0xFFFFFFFF
    key *= -4658895280553007687
    key ^= (key >> 29) & 0x7FFFFFFFF
    return int(key & mask)


@inlined
def new_cell(tables: Tables, slot: int) -> int:
    """The row of a cell that is not there yet."""
    cell = tables.sizes[t.N_CELLS]
    tables.sizes[t.N_CELLS] = cell + 1
    row = tables.cells[cell]
    row[:] = 0
    row[t.FIRST_PAIR : t.FIRST_ENTRY + 1] = -1
    row[t.SLOT] = slot
    tables.cell_of[slot] = cell
    return int(cell)


@inlined
def mark_dirty(tables: Tables, cell: int) -> None:
    """Remember that a cell must be written."""
    if tables.cells[cell, t.IS_DIRTY] == 0:
        tables.cells[cell, t.IS_DIRTY] = 1
        n_dirty = tables.sizes[t.N_DIRTY]
        tables.dirty[n_dirty] = cell
        tables.sizes[t.N_DIRTY] = n_dirty + 1


@inlined
def append_pair(
    cells: Int64, pairs: Int32, new: int, cell: int, item: int, rank: int
) -> None:
    """Fill a new row of pairs and chain it to its cell.

    `cells` [n_cells, CELL_WIDTH], `pairs` [n_pairs, PAIR_WIDTH].
    """
    row = pairs[new]
    for column in range(t.PAIR_WIDTH):
        row[column] = 0
    row[t.PAIR_CELL] = cell
    row[t.PAIR_ITEM] = item
    row[t.PAIR_RANK] = rank
    row[t.PAIR_NEXT] = -1
    row[t.PAIR_ITEM_ROW] = -1
    last = cells[cell, t.LAST_PAIR]
    if last < 0:
        cells[cell, t.FIRST_PAIR] = new
    else:
        pairs[last, t.PAIR_NEXT] = new
    cells[cell, t.LAST_PAIR] = new
    cells[cell, t.N_OWN_PAIRS] += 1


@inlined
def pair_slot(pairs: Int32, index: Int32, cell: int, item: int, rank: int) -> int:
    """The slot of (cell, item, rank) in the hash table, or the empty one for it.

    `pairs` [n_pairs, PAIR_WIDTH], `index` [n_slots], a power of two.
    """
    mask = index.shape[0] - 1
    slot = slot_of(cell, item, rank, mask)
    while index[slot] >= 0:
        row = index[slot]
        if (
            pairs[row, t.PAIR_ITEM] == item
            and pairs[row, t.PAIR_RANK] == rank
            and pairs[row, t.PAIR_CELL] == cell
        ):
            break
        slot = (slot + 1) & mask
    return slot


@compiled
def index_pairs(tables: Tables, cell: int) -> None:
    """Enter all pairs of a cell in the hash table."""
    pairs, index = tables.pairs, tables.pair_index
    row = tables.cells[cell, t.FIRST_PAIR]
    while row >= 0:
        pair = pairs[row]
        slot = pair_slot(pairs, index, cell, pair[t.PAIR_ITEM], pair[t.PAIR_RANK])
        index[slot] = row
        tables.sizes[t.N_INDEXED] += 1
        row = pair[t.PAIR_NEXT]


@inlined
def chained_pair(pairs: Int32, first: int, item: int, rank: int) -> int:
    """The row of (item, rank) in a chain of `pairs` [n_pairs, PAIR_WIDTH], or -1."""
    row = first
    while row >= 0:
        if pairs[row, t.PAIR_ITEM] == item and pairs[row, t.PAIR_RANK] == rank:
            break
        row = pairs[row, t.PAIR_NEXT]
    return row


@compiled
def new_pair(tables: Tables, cell: int, item: int, rank: int) -> int:
    """A row of (cell, item, rank), which is not there yet."""
    new = tables.sizes[t.N_PAIRS]
    tables.sizes[t.N_PAIRS] = new + 1
    append_pair(tables.cells, tables.pairs, new, cell, item, rank)
    n_own = tables.cells[cell, t.N_OWN_PAIRS]
    if n_own == t.MOST_CHAINED + 1:
        index_pairs(tables, cell)
    elif n_own > t.MOST_CHAINED:
        slot = pair_slot(tables.pairs, tables.pair_index, cell, item, rank)
        tables.pair_index[slot] = new
        tables.sizes[t.N_INDEXED] += 1
    return int(new)


@compiled
def pair_row(tables: Tables, cell: int, item: int, rank: int) -> int:
    """The row of (cell, item, rank), made if it is not there."""
    if tables.cells[cell, t.N_OWN_PAIRS] <= t.MOST_CHAINED:
        first = tables.cells[cell, t.FIRST_PAIR]
        row = chained_pair(tables.pairs, first, item, rank)
    else:
        index = tables.pair_index
        row = index[pair_slot(tables.pairs, index, cell, item, rank)]
    return new_pair(tables, cell, item, rank) if row < 0 else int(row)


@inlined
def item_row(tables: Tables, cell: int, item: int) -> int:
    """The row of (cell, item), made if it is not there."""
    items, index = tables.items, tables.item_index
    mask = index.shape[0] - 1
    slot = slot_of(cell, item, 0, mask)
    while index[slot] >= 0:
        row = index[slot]
        if items[row, t.ITEM_CELL] == cell and items[row, t.ITEM_ITEM] == item:
            return int(row)
        slot = (slot + 1) & mask
    new = tables.sizes[t.N_ITEMS]
    tables.sizes[t.N_ITEMS] = new + 1
    index[slot] = new
    items[new] = 0
    items[new, t.ITEM_CELL] = cell
    items[new, t.ITEM_ITEM] = item
    items[new, t.ITEM_NEXT] = tables.cells[cell, t.FIRST_ITEM]
    tables.cells[cell, t.FIRST_ITEM] = new
    return int(new)


@inlined
def item_row_of_pair(tables: Tables, cell: int, pair: int) -> int:
    """The row of a pair's item; the pair remembers it."""
    row = tables.pairs[pair, t.PAIR_ITEM_ROW]
    if row < 0:
        row = item_row(tables, cell, tables.pairs[pair, t.PAIR_ITEM])
        tables.pairs[pair, t.PAIR_ITEM_ROW] = row
    return int(row)


@compiled
def click_pair_row(tables: Tables, cell: int, pair: int, other: int) -> int:
    """The row of an unordered pair of pair rows, made if it is not there."""
    a, b = min(pair, other), max(pair, other)
    rows, index = tables.click_pairs, tables.click_pair_index
    mask = index.shape[0] - 1
    slot = slot_of(a, b, 0, mask)
    while index[slot] >= 0:
        row = index[slot]
        if rows[row, t.CLICK_PAIR_A] == a and rows[row, t.CLICK_PAIR_B] == b:
            return int(row)
        slot = (slot + 1) & mask
    new = tables.sizes[t.N_CLICK_PAIRS]
    tables.sizes[t.N_CLICK_PAIRS] = new + 1
    index[slot] = new
    rows[new, t.CLICK_PAIR_A] = a
    rows[new, t.CLICK_PAIR_B] = b
    rows[new, t.CLICK_PAIR_COUNT] = 0
    rows[new, t.CLICK_PAIR_NEXT] = tables.cells[cell, t.FIRST_CLICK_PAIR]
    tables.cells[cell, t.FIRST_CLICK_PAIR] = new
    return int(new)


@compiled
def add_inverse(tables: Tables, cell: int, row: int, probability: float) -> bool:
    """Add 1/p and 1/p^2 of a clicked place to its item; False if it overflows."""
    if probability < t.LEAST_PROBABILITY:
        probability = t.LEAST_PROBABILITY
        tables.cells[cell, t.CLIPPED] += 1
        tables.sizes[t.N_CLIPPED] += 1
    item = tables.items[row]
    item[t.INVERSE] += int(np.rint(t.INVERSE_ONE / probability))
    squared = int(np.rint(t.INVERSE_ONE / (probability * probability)))
    low = item[t.SQUARED_LOW] + (squared & ((1 << t.SQUARED_BITS) - 1))
    item[t.SQUARED_HIGH] += (squared >> t.SQUARED_BITS) + (low >> t.SQUARED_BITS)
    item[t.SQUARED_LOW] = low & ((1 << t.SQUARED_BITS) - 1)
    return bool(item[t.INVERSE] < t.LARGEST_INVERSE)


@compiled
def add_inverses(
    tables: Tables, cells: Int32, items: Int32, probabilities: NDArray[np.float64]
) -> bool:
    """`add_inverse` for clicks whose probabilities came later.

    `cells`, `items`, `probabilities` [n_clicks].
    """
    fits = True
    for i in range(cells.shape[0]):
        row = item_row(tables, cells[i], items[i])
        fits = add_inverse(tables, cells[i], row, probabilities[i]) and fits
        mark_dirty(tables, cells[i])
    return fits
