"""The tables that clicks are counted into: rows of integers, chained by cell.

A *cell* is what one group of users did with one candidate set under one
intervention. Its pairs, items, click pairs and exposure counters are rows of
append-only tables; each row names the next one of its cell, so that a changed
cell is written by walking it. Rows are found by open-addressing hash tables; pairs of
a cell that has few of them by walking its chain.

Bytes of a (cell, item, rank): 56, and 8 to 16 of the hash table where the cell has
many; of a cell: 112 and 4 for its slot; of a (cell, clicked item): 64 and 8 to 16.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]

N_GROUPS = 20
"""Groups of each scope; a cell's slot is scope * N_GROUPS + group."""

# Columns of a cell; the first six are counts and stand so in what is written.
IMPRESSIONS, WITHOUT_CLICK, CLICKS, CLICKS_SQUARED, WITHOUT_EXPOSURE, CLIPPED = range(6)
FIRST_PAIR, LAST_PAIR, FIRST_ITEM, FIRST_CLICK_PAIR, FIRST_ENTRY = range(6, 11)
SLOT, IS_DIRTY, N_OWN_PAIRS = 11, 12, 13
CELL_WIDTH = 14
N_TOTALS = 6

# Columns of a pair as int32; the last four are two int64, see below.
PAIR_CELL, PAIR_ITEM, PAIR_RANK, PAIR_NEXT, SHOWN, CLICKED, FIRST_CLICK = range(7)
SHOWN_TO_FIRST, SHOWN_TO_LAST, PAIR_ITEM_ROW = 7, 8, 9
PAIR_WIDTH = 14
# Columns of the same row as int64.
LAST_MS, EXPOSURE = 5, 6

ITEM_CELL, ITEM_ITEM, ITEM_NEXT, PLUS, MINUS, INVERSE = range(6)
SQUARED_LOW, SQUARED_HIGH = 6, 7
ITEM_WIDTH = 8

CLICK_PAIR_A, CLICK_PAIR_B, CLICK_PAIR_NEXT, CLICK_PAIR_COUNT = range(4)

ENTRY_PLACE, ENTRY_NEXT, ENTRY_COUNT = range(3)

SQUARED_BITS = 40
"""An inverse square is high * 2^40 + low with 0 <= low < 2^40."""

EXPOSURE_ONE = 1 << 30
"""Fixed point of a placement probability of 1."""

INVERSE_ONE = 1 << 16
"""Fixed point of an inverse probability of 1."""

LEAST_PROBABILITY = 2.0**-20
"""Smaller probabilities of clicked places are raised to this, and counted."""

LARGEST_COUNT = (1 << 31) - 1
"""No cell takes more impressions; this bounds every int32 counter of it."""

LARGEST_INVERSE = 1 << 62

MOST_CHAINED = 32
"""Pairs of a cell that are found by walking; with more they are in the hash table."""

# Places: rows of the exposure table, or what stands for "no row".
WITHOUT_ROW, WITH_ROW, CAPPED = range(3)

# Entries of `sizes`.
N_CELLS, N_PAIRS, N_ITEMS, N_CLICK_PAIRS, N_ENTRIES, N_DIRTY = range(6)
N_CLIPPED, N_WITHOUT_EXPOSURE, N_CAPPED, N_INDEXED = 6, 7, 8, 9
N_SIZES = 10


class Tables(NamedTuple):
    """All rows of all cells of one partition.

    Tables have room for more rows than they hold: `sizes` says how many.

    Parameters
    ----------
    sizes : [N_SIZES]
    cells : [n_cells, CELL_WIDTH]
    pairs : [n_pairs, PAIR_WIDTH]
    pairs_wide : [n_pairs, PAIR_WIDTH / 2]
        `pairs` seen as int64.
    items : [n_items, ITEM_WIDTH]
    click_pairs : [n_rows, 4]
    entries : [n_entries, 3]
    dirty : [n_cells]
        Cells that must be written.
    pair_index : [n_pair_slots]
        Hash tables of row numbers, -1 where empty, as are the next two; slots are a
        power of two.
    item_index : [n_item_slots]
    click_pair_index : [n_click_pair_slots]
    cell_of : [n_scopes * N_GROUPS]
        The cell of each slot, or -1.
    place_scope : [n_places]
    places : [n_places, 2]
        Kind and reference count of each exposure row.
    hashes : [n_places, 16]
        The name of each exposure row.
    """

    sizes: Int64
    cells: Int64
    pairs: Int32
    pairs_wide: Int64
    items: Int64
    click_pairs: Int32
    entries: Int32
    dirty: Int32
    pair_index: Int32
    item_index: Int32
    click_pair_index: Int32
    cell_of: Int32
    place_scope: Int32
    places: Int32
    hashes: Bytes


def empty_tables() -> Tables:
    """Tables without any row."""
    pairs = np.zeros((64, PAIR_WIDTH), np.int32)
    return Tables(
        sizes=np.zeros(N_SIZES, np.int64),
        cells=np.zeros((64, CELL_WIDTH), np.int64),
        pairs=pairs,
        pairs_wide=pairs.view(np.int64),
        items=np.zeros((64, ITEM_WIDTH), np.int64),
        click_pairs=np.zeros((64, 4), np.int32),
        entries=np.zeros((64, 3), np.int32),
        dirty=np.zeros(64, np.int32),
        pair_index=np.full(128, -1, np.int32),
        item_index=np.full(128, -1, np.int32),
        click_pair_index=np.full(128, -1, np.int32),
        cell_of=np.full(64 * N_GROUPS, -1, np.int32),
        place_scope=np.zeros(64, np.int32),
        places=np.zeros((64, 2), np.int32),
        hashes=np.zeros((64, 16), np.uint8),
    )


def enlarged(
    array: NDArray[Any], n_rows: int, *, fill: int | None = None
) -> NDArray[Any]:
    """`array` [n, ...] itself if it has that many rows, else a larger copy.

    Without `fill` new rows hold anything, and their memory is not touched yet.
    """
    n_present = array.shape[0]
    if n_rows <= n_present:
        return array
    grown = np.empty((max(n_rows, 2 * n_present), *array.shape[1:]), array.dtype)
    grown[:n_present] = array
    if fill is not None:
        grown[n_present:] = fill
    return grown
