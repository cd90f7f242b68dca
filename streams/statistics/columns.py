"""Statistics as columns: a row for each item and rank of each group of each scope.

What was counted, and what each policy was expected to show, chunk by chunk. A chunk
takes some tens of megabytes, whatever the statistics take.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats
from models.counts.fixed_point import EXPOSURE_ONE, Int64
from models.counts.group_tables import summed_rows
from models.counts.list_form import (
    list_totals,
    placed_lists,
    rows_shown,
    unplaced_lists,
)
from models.counts.scope_record import CAPPED, CONVERTED
from streams.statistics.keys import ScopeName
from streams.statistics.placed_rows import Placed, PlacedRows
from streams.statistics.scopes import (
    STRIDE,
    ScopeBatch,
    SortedItems,
)

PLACES_AT_ONCE = 1 << 19
"""Expected placements that are added up together, unless one cell has more."""

IMPRESSIONS, WITHOUT_EXPOSURE = 2, 6
"""Columns of `Columns.cells`."""

MOST_CLASSES = 256
"""No settings have so many."""

LARGEST_TABLE = 1 << 23
"""Rows are found in a table of all places, if it has no more than these."""


class Columns(NamedTuple):
    """Rows of whole cells, sorted by scope, group, item and rank.

    Parameters
    ----------
    names : [n_scopes]
        Of query, candidate set, intervention and era.
    items : [n_scopes]
        Ids of the set's items, sorted; `item` numbers them.
    flags : [n_scopes]
        See `models.counts.scope_record`.
    cells : [n_cells, 8]
        Scope, group, and `models.counts.cells.TOTAL_NAMES`; of clipped clicks those of
        the general form only.
    scope, group, item, rank : [n_rows]
        Where the row is; rank from 1, the others numbers.
    shown : [n_rows]
        Lists that showed the item there.
    by_class : [n_classes, n_rows]
        Those on which an action of each class was there; those of the class that
        clicks are counted of are clicks.
    expected : [n_rows]
        How often it was expected there, all lists of known policies together; 0 in
        scopes that were converted from an earlier release.
    reward
        The class that clicks are counted of.
    unplaced : [n_rows]
        Of `shown`, lists of unknown policies that their scope keeps list by list; those
        that it added up to others are not among them.
    n_unplaced : [n_cells]
        Such lists.
    mixed
        Scopes with several placements, where that was asked.
    """

    names: tuple[ScopeName, ...]
    items: tuple[tuple[str, ...], ...]
    flags: Int64
    cells: Int64
    scope: Int64
    group: Int64
    item: Int64
    rank: Int64
    shown: Int64
    by_class: Int64
    expected: Floats
    reward: int
    unplaced: Int64
    n_unplaced: Int64
    mixed: frozenset[ScopeName] = frozenset()

    def has_policies(self) -> NDArray[np.bool_]:
        """Cells all of whose lists have known policies, [n_cells]."""
        return np.asarray(~self._has_none() & (self.cells[:, WITHOUT_EXPOSURE] == 0))

    def tells_policies(self) -> NDArray[np.bool_]:
        """Cells whose lists of known and of unknown policies are told apart, [n_cells].

        Those of `has_policies`, and those all of whose other lists are in `unplaced`.
        """
        without = self.cells[:, WITHOUT_EXPOSURE]
        return np.asarray(~self._has_none() & (without == self.n_unplaced))

    def n_placed(self) -> Int64:
        """Lists of known policies, whether or not they are told apart, [n_cells]."""
        placed = self.cells[:, IMPRESSIONS] - self.cells[:, WITHOUT_EXPOSURE]
        return np.where(self._has_none(), 0, placed)

    def _has_none(self) -> NDArray[np.bool_]:
        """Cells of scopes of which no exposures are counted, [n_cells]."""
        return np.asarray(self.flags[self.cells[:, 0]] & (CAPPED | CONVERTED) > 0)

    def cell_of_rows(self) -> Int64:
        """Number of the cell that each row is of, [n_rows]."""
        keys = self.cells[:, 0] * STRIDE + self.cells[:, 1]
        starts = np.searchsorted(self.scope * STRIDE + self.group, keys)
        return np.repeat(np.arange(len(keys)), np.diff(starts, append=len(self.scope)))

    def of_scopes(self, first: int, end: int) -> "Columns":
        """Those of the scopes from `first` up to but not with `end`, by number."""
        rows = slice(*np.searchsorted(self.scope, (first, end)))
        own = slice(*np.searchsorted(self.cells[:, 0], (first, end)))
        cells = self.cells[own]
        return Columns(
            self.names[first:end],
            self.items[first:end],
            self.flags[first:end],
            np.column_stack((cells[:, 0] - first, cells[:, 1:])),
            self.scope[rows] - first,
            self.group[rows],
            self.item[rows],
            self.rank[rows],
            self.shown[rows],
            self.by_class[:, rows],
            self.expected[rows],
            self.reward,
            self.unplaced[rows],
            self.n_unplaced[own],
            self.mixed,
        )


def counted_scopes(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """Chunks with the scopes alone that they have cells of.

    A batch that is cut into several names all of its scopes in each.
    """
    for chunk in chunks:
        if len(chunk.cells):
            first, last = chunk.cells[[0, -1], 0].tolist()
            yield chunk.of_scopes(first, last + 1)


class ColumnReader:
    """Makes columns of scopes; exposure rows that come again are placed once.

    Parameters
    ----------
    n_classes
        Reward classes, at least 1; where more were counted there are more.
    reward
        The number of the class that clicks are counted of.
    """

    def __init__(self, n_classes: int = 1, reward: int = 0) -> None:
        self._n_classes = n_classes
        self._reward = reward
        self._placed = PlacedRows()

    def of_batch(self, batch: ScopeBatch) -> Iterator[Columns]:
        """The columns of a batch."""
        by_id = batch.sorted_items()
        counted = _Counted.of(batch, by_id)
        placed = self._placed.of(batch, by_id)
        n_places = np.diff(placed.starts)[counted.rows[:, 1]]
        for first, last in _slices(counted, n_places):
            yield self._chunk(batch, by_id, counted.between(first, last), placed)

    def _chunk(
        self, batch: ScopeBatch, by_id: SortedItems, counted: "_Counted", placed: Placed
    ) -> Columns:
        totals, pairs, rewards = counted.totals, counted.pairs, counted.rewards
        expected = _expectations(counted.rows, placed)
        layout, of_expected = _Layout.of(batch.n_items(), counted, expected)
        shown, clicked = np.zeros((2, len(layout.keys)), np.int64)
        at_pairs = layout.rows_at(pairs[:, :3])
        shown[at_pairs], clicked[at_pairs] = pairs[:, 3], pairs[:, 4]
        n_classes = max(self._n_classes, int(rewards[:, 1].max(initial=-1)) + 1)
        if n_classes > MOST_CLASSES:
            raise ValueError(
                f"reward classes must be fewer than {MOST_CLASSES}; got number "
                f"{n_classes - 1}: `rankstream recount` says what is wrong"
            )
        by_class = np.zeros((n_classes, len(layout.keys)), np.int64)
        by_class[rewards[:, 1], layout.rows_at(rewards[:, [0, 2, 3]])] = rewards[:, 4]
        by_class[self._reward] = clicked
        unplaced = np.zeros(len(layout.keys), np.int64)
        unplaced[layout.rows_at(counted.unplaced[:, :3])] = counted.unplaced[:, 3]
        n_unplaced = np.zeros(len(totals), np.int64)
        at_cells = np.searchsorted(totals[:, 0], counted.n_unplaced[:, 0])
        n_unplaced[at_cells] = counted.n_unplaced[:, 1]
        at_expected = layout.rows_of(of_expected)
        sums: Floats = np.bincount(at_expected, expected.sums, len(layout.keys)).astype(
            np.float64
        )  # of no places at all they are integers
        sums[at_pairs] += pairs[:, 8] / EXPOSURE_ONE
        cell, item, rank = layout.places()
        scope, group = np.divmod(cell, STRIDE)
        sums[batch.heads[scope, 0] & CONVERTED > 0] = 0.0
        return Columns(
            batch.names,
            by_id.items,
            batch.heads[:, 0],
            np.column_stack((*np.divmod(totals[:, 0], STRIDE), totals[:, 1:])),
            scope,
            group,
            item,
            rank,
            shown,
            by_class,
            sums,
            self._reward,
            unplaced,
            n_unplaced,
        )


class _Counted(NamedTuple):
    """Tables of cells, each sorted by cell: both forms added up.

    Rows of exposure rows stand in the order of the rows' names.
    """

    totals: Int64
    rows: Int64
    pairs: Int64
    rewards: Int64
    unplaced: Int64
    n_unplaced: Int64

    @classmethod
    def of(cls, batch: ScopeBatch, by_id: SortedItems) -> "_Counted":
        general = batch.general
        pairs = np.concatenate(
            (placed_lists(batch.lists, batch.n_candidates()), general.pairs)
        )
        pairs[:, 1] = by_id.renumbered(pairs[:, 0] // STRIDE, pairs[:, 1])
        rewards = general.rewards[np.argsort(general.rewards[:, 0], kind="stable")]
        rewards[:, 2] = by_id.renumbered(rewards[:, 0] // STRIDE, rewards[:, 2])
        rows = summed_rows(np.concatenate((rows_shown(batch.lists), general.rows)), 2)
        order = sorted(range(len(batch.rows)), key=batch.row_names.__getitem__)
        places = np.argsort(np.array(order, np.int64))
        rows = rows[np.lexsort((places[rows[:, 1]], rows[:, 0]))]
        totals = np.concatenate((list_totals(batch.lists), general.totals))
        unplaced, n_unplaced = unplaced_lists(batch.lists)
        unplaced[:, 1] = by_id.renumbered(unplaced[:, 0] // STRIDE, unplaced[:, 1])
        return cls(
            summed_rows(totals, 1),
            rows,
            summed_rows(pairs, 3),
            rewards,
            summed_rows(unplaced, 3),
            summed_rows(n_unplaced, 1),
        )

    def between(self, first: int, last: int) -> "_Counted":
        """Those of the cells from `first` up to `last`, both numbers of cells."""
        return _Counted(*(_between(table, first, last) for table in self))


def _between(table: Int64, first: int, last: int) -> Int64:
    bounds = np.searchsorted(table[:, 0], (first, last + 1))
    return table[slice(*bounds)]


def _slices(counted: _Counted, n_places: Int64) -> Iterator[tuple[int, int]]:
    """First and last cell of pieces that fit; each cell is in one."""
    cells = counted.totals[:, 0]
    ends = np.searchsorted(counted.rows[:, 0], cells, side="right")
    after = np.concatenate(([0], np.cumsum(n_places)))[ends]
    start = before = 0
    while start < len(cells):
        end = int(np.searchsorted(after, before + PLACES_AT_ONCE, side="right"))
        end = max(end, start + 1)
        yield int(cells[start]), int(cells[end - 1])
        start, before = end, int(after[end - 1])


class _Expected(NamedTuple):
    """Times that exposure rows place an item, row after row.

    `cells` [n_rows]; `owners` (a row), `items`, `ranks` and `sums` [n], where an item
    and a rank may come again.
    """

    cells: Int64
    owners: Int64
    items: Int64
    ranks: Int64
    sums: Floats


def _expectations(rows: Int64, placed: Placed) -> _Expected:
    """What rows [n, 3] of cell, exposure row and impressions expect."""
    starts, n_each = placed.starts[rows[:, 1]], np.diff(placed.starts)[rows[:, 1]]
    owners = np.repeat(np.arange(len(rows)), n_each)
    before = np.cumsum(n_each) - n_each
    at = np.arange(len(owners)) + (starts - before)[owners]
    sums = rows[:, 2].astype(np.float64)[owners] * placed.probabilities[at]
    return _Expected(rows[:, 0], owners, placed.items[at], placed.ranks[at], sums)


class _Layout(NamedTuple):
    """Where each (cell, item, rank) that is there has its row.

    A key is the place in a table of all items and ranks of all cells. `keys` are
    sorted; `table` has the row of each key, if it is small enough to be kept.
    """

    cells: Int64
    first: Int64
    n_ranks: int
    keys: Int64
    table: NDArray[np.int32] | None

    @classmethod
    def of(
        cls, n_items: Int64, counted: _Counted, expected: _Expected
    ) -> tuple["_Layout", Int64]:
        """The layout, and the key of each expectation."""
        cells = counted.totals[:, 0]
        ranks = (counted.pairs[:, 2], counted.rewards[:, 3], expected.ranks)
        n_ranks = max(int(x.max(initial=1)) for x in ranks)
        sizes = n_items[cells // STRIDE] * n_ranks
        first = np.cumsum(sizes) - sizes
        bare = cls(cells, first, n_ranks, cells, None)
        counted_at = (counted.pairs[:, :3], counted.rewards[:, [0, 2, 3]])
        of_counts = bare.keys_of(np.concatenate(counted_at))
        of_expected = bare.keys_expected(expected)
        n_all = int(sizes.sum())
        if n_all > LARGEST_TABLE:
            keys = np.sort(np.concatenate((of_counts, of_expected)), kind="stable")
            is_first = np.diff(keys, prepend=-1) > 0
            return bare._replace(keys=keys[is_first]), of_expected
        is_there = np.zeros(n_all, np.bool_)
        is_there[of_counts] = is_there[of_expected] = True
        table = np.cumsum(is_there, dtype=np.int32) - 1
        return bare._replace(keys=np.flatnonzero(is_there), table=table), of_expected

    def keys_expected(self, expected: _Expected) -> Int64:
        """Keys of what rows place."""
        first = self.first[np.searchsorted(self.cells, expected.cells)] - 1
        keys: Int64 = first[expected.owners] + expected.ranks
        return keys + expected.items * self.n_ranks

    def keys_of(self, places: Int64) -> Int64:
        """Keys of cell, item and rank, [n, 3]."""
        owners = np.searchsorted(self.cells, places[:, 0])
        keys: Int64 = self.first[owners] + places[:, 1] * self.n_ranks + places[:, 2]
        return keys - 1

    def rows_at(self, places: Int64) -> Int64:
        """Rows of cell, item and rank, [n, 3], that are there."""
        return self.rows_of(self.keys_of(places))

    def rows_of(self, keys: Int64) -> Int64:
        """Rows of keys that are there."""
        if self.table is None:
            return np.searchsorted(self.keys, keys)
        return np.asarray(self.table[keys])

    def places(self) -> tuple[Int64, Int64, Int64]:
        """Cell, item and rank of each row."""
        ends = np.append(np.searchsorted(self.keys, self.first[1:]), len(self.keys))
        n_each = np.diff(ends, prepend=0)
        within = self.keys - np.repeat(self.first, n_each)
        items = within // self.n_ranks
        ranks = within - items * self.n_ranks + 1
        return np.repeat(self.cells, n_each), items, ranks
