"""What was not shown for long leaves the tables, which are packed anew."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from models.counts import count_tables as t
from models.counts.count_tables import Int64, Tables
from models.kernels.compilation import compiled

Mask = NDArray[np.bool_]
Integer = TypeVar("Integer", np.int32, np.int64)


def without_expired(tables: Tables, before_ms: int) -> tuple[Tables, list[int], int]:
    """Tables without the (cell, item) last shown before a time.

    With an item leave its pairs, its summed exposures, its sums and its click
    pairs; with its last item leaves the cell. Totals and exposure rows of a cell
    that stays are kept. The hash tables must be filled again.

    Returns
    -------
    Tables, slots of the removed cells, number of removed (cell, item).
    """
    sizes = tables.sizes
    pairs, wide = tables.pairs[: sizes[t.N_PAIRS]], tables.pairs_wide
    is_shown = pairs[:, t.SHOWN] > 0
    is_old = is_shown & (wide[: len(pairs), t.LAST_MS] < before_ms)
    if not is_old.any():
        return tables, [], 0
    keys = _key(pairs[:, t.PAIR_CELL], pairs[:, t.PAIR_ITEM])
    removed = np.setdiff1d(keys[is_old], keys[is_shown & ~is_old])
    if not removed.size:
        return tables, [], 0
    pair_stays = ~np.isin(keys, removed)
    n_cells = int(sizes[t.N_CELLS])
    cell_stays = np.zeros(n_cells, bool)
    cell_stays[pairs[pair_stays & is_shown, t.PAIR_CELL]] = True
    pair_stays &= cell_stays[pairs[:, t.PAIR_CELL]]
    slots = tables.cells[:n_cells][~cell_stays, t.SLOT]
    touched = np.unique((removed >> 32).astype(np.int64))
    tables.cells[touched, t.IS_DIRTY] = 1
    _release(tables, np.flatnonzero(~cell_stays))
    return (
        _packed(tables, cell_stays, pair_stays, removed),
        slots.tolist(),
        removed.size,
    )


def _key(cells: NDArray[np.integer], items: NDArray[np.integer]) -> Int64:
    return (cells.astype(np.int64) << 32) | items.astype(np.int64)


def _numbers(stays: Mask) -> Int64:
    """New row numbers of the rows that stay."""
    return np.where(stays, np.cumsum(stays) - 1, -1)


def _packed(
    tables: Tables, cell_stays: Mask, pair_stays: Mask, removed: Int64
) -> Tables:
    sizes = tables.sizes.copy()
    new_cell, new_pair = _numbers(cell_stays), _numbers(pair_stays)
    cells = tables.cells[: len(cell_stays)][cell_stays]
    pairs = tables.pairs[: len(pair_stays)][pair_stays]
    pairs[:, t.PAIR_CELL] = new_cell[pairs[:, t.PAIR_CELL]]
    pairs[:, t.PAIR_ITEM_ROW] = -1
    items = tables.items[: sizes[t.N_ITEMS]]
    stays = cell_stays[items[:, t.ITEM_CELL]] & ~np.isin(
        _key(items[:, t.ITEM_CELL], items[:, t.ITEM_ITEM]), removed
    )
    items = items[stays]
    items[:, t.ITEM_CELL] = new_cell[items[:, t.ITEM_CELL]]
    both = tables.click_pairs[: sizes[t.N_CLICK_PAIRS]]
    ends = [t.CLICK_PAIR_A, t.CLICK_PAIR_B]
    both = both[pair_stays[both[:, ends]].all(axis=1)]
    both[:, ends] = new_pair[both[:, ends]]
    entries = _packed_entries(tables, cells)
    cell_of = np.full_like(tables.cell_of, -1)
    cell_of[cells[:, t.SLOT]] = np.arange(len(cells))
    dirty = np.zeros(max(64, len(cells)), np.int32)
    marked = np.flatnonzero(cells[:, t.IS_DIRTY])
    dirty[: len(marked)] = marked
    for which, rows in (
        (t.N_CELLS, cells),
        (t.N_PAIRS, pairs),
        (t.N_ITEMS, items),
        (t.N_CLICK_PAIRS, both),
        (t.N_ENTRIES, entries),
        (t.N_DIRTY, marked),
    ):
        sizes[which] = len(rows)
    packed = tables._replace(
        sizes=sizes,
        cells=_with_room(cells),
        pairs=(room := _with_room(pairs)),
        pairs_wide=room.view(np.int64),
        items=_with_room(items),
        click_pairs=_with_room(both),
        entries=_with_room(entries),
        dirty=dirty,
        cell_of=cell_of,
    )
    _link(packed)
    return packed


def _with_room(rows: NDArray[Integer]) -> NDArray[Integer]:
    """Rows in an array of at least 64."""
    if len(rows) >= 64:
        return np.ascontiguousarray(rows)
    room = np.zeros((64, rows.shape[1]), rows.dtype)
    room[: len(rows)] = rows
    return room


def _packed_entries(tables: Tables, cells: Int64) -> NDArray[np.int32]:
    """Exposure counters of the cells that stay, chains in their order."""
    entries = np.empty((int(tables.sizes[t.N_ENTRIES]), 3), np.int32)
    return entries[: _copy_entries(tables, cells, entries)]


@compiled
def _release(tables: Tables, cells: Int64) -> None:
    """Take back the references of removed cells to exposure rows."""
    for i in range(cells.shape[0]):
        entry = tables.cells[cells[i], t.FIRST_ENTRY]
        while entry >= 0:
            tables.places[tables.entries[entry, t.ENTRY_PLACE], 1] -= 1
            entry = tables.entries[entry, t.ENTRY_NEXT]


@compiled
def _copy_entries(tables: Tables, cells: Int64, entries: NDArray[np.int32]) -> int:
    n_entries = 0
    for cell in range(cells.shape[0]):
        entry = cells[cell, t.FIRST_ENTRY]
        if entry >= 0:
            cells[cell, t.FIRST_ENTRY] = n_entries
        while entry >= 0:
            entries[n_entries] = tables.entries[entry]
            entry = tables.entries[entry, t.ENTRY_NEXT]
            entries[n_entries, t.ENTRY_NEXT] = n_entries + 1 if entry >= 0 else -1
            n_entries += 1
    return n_entries


@compiled
def _link(tables: Tables) -> None:
    """Chain pairs, items and click pairs of packed tables."""
    cells, pairs = tables.cells, tables.pairs
    for cell in range(tables.sizes[t.N_CELLS]):
        cells[cell, t.FIRST_PAIR : t.FIRST_ENTRY] = -1
        cells[cell, t.N_OWN_PAIRS] = 0
    for row in range(tables.sizes[t.N_PAIRS]):
        cell = pairs[row, t.PAIR_CELL]
        pairs[row, t.PAIR_NEXT] = -1
        last = cells[cell, t.LAST_PAIR]
        if last < 0:
            cells[cell, t.FIRST_PAIR] = row
        else:
            pairs[last, t.PAIR_NEXT] = row
        cells[cell, t.LAST_PAIR] = row
        cells[cell, t.N_OWN_PAIRS] += 1
    for row in range(tables.sizes[t.N_ITEMS]):
        cell = tables.items[row, t.ITEM_CELL]
        tables.items[row, t.ITEM_NEXT] = cells[cell, t.FIRST_ITEM]
        cells[cell, t.FIRST_ITEM] = row
    for row in range(tables.sizes[t.N_CLICK_PAIRS]):
        cell = pairs[tables.click_pairs[row, t.CLICK_PAIR_A], t.PAIR_CELL]
        tables.click_pairs[row, t.CLICK_PAIR_NEXT] = cells[cell, t.FIRST_CLICK_PAIR]
        cells[cell, t.FIRST_CLICK_PAIR] = row
