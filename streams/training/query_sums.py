"""What was counted of each query's items, added up by split of the groups.

Sums are made row by row in the order of the columns, so that they have the same bits
however these are cut into chunks. A query at a time is held, and one chunk.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown
from models.estimators.intervention_aware import ItemSums
from streams.statistics.columns import Columns
from streams.training.used_cells import (
    IMPRESSIONS,
    counted_scopes,
    used_cells,
    used_rows,
)

Floats = npt.NDArray[np.float64]

TRAINED_ON, APART, SELECTED_ON = 0, 1, 2
"""Splits of the groups: values to learn from, values to judge by, and the others."""

N_SPLITS = 3

PAIRS_AT_ONCE = 1 << 19
"""Of a list's group and an item that it could have shown; they are added up at once."""

SUMMED = "impressions", "alpha", "beta", "clicked"
"""As `ItemSums` has them."""


class QuerySums(NamedTuple):
    """Of one query.

    Parameters
    ----------
    query
        Its id.
    sets
        Names of its closed candidate sets, sorted.
    items : [n_items]
        Ids, sorted.
    sums : [4, n_splits, n_items]
        The tables of `ItemSums`, splits for groups.
    n_impressions : [n_splits]
        Lists that count.
    n_left_out
        Lists that were left out, as some beside them are of unknown policies.
    """

    query: str
    sets: tuple[bytes, ...]
    items: tuple[str, ...]
    sums: Floats
    n_impressions: Int64
    n_left_out: int

    def of_split(self, split: int) -> ItemSums:
        """Sums of one split, [1, n_items]."""
        return ItemSums(*self.sums[:, [split]])


class _Query:
    """A query whose columns are coming."""

    def __init__(self, name: str, number: int, first: int) -> None:
        self.name = name
        self.number = number
        self.first = first
        self.sets: set[bytes] = set()
        self.numbers: dict[str, int] = {}
        self.known: dict[tuple[str, ...], Int64] = {}

    def numbers_of(self, items: tuple[str, ...]) -> Int64:
        """Numbers of items among all of the block."""
        if items not in self.known:
            start, numbers = self.first, self.numbers
            found = [numbers.setdefault(x, start + len(numbers)) for x in items]
            self.known[items] = np.array(found, np.int64)
        return self.known[items]


class QuerySummation:
    """Adds up columns query by query.

    Parameters
    ----------
    curve
        Ranks that it does not have are left out with their clicks.
    split_of : [n_groups]
        The split of each group, one of `N_SPLITS`.
    unknown
        What becomes of cells with lists of unknown policies: sums have no place for
        those that are kept without expectations.
    """

    def __init__(
        self,
        curve: BiasCurve,
        split_of: Int64,
        unknown: Unknown = Unknown.LEFT_OUT,
    ) -> None:
        if unknown is Unknown.KEPT:
            raise ValueError(
                "lists of unknown policies must be left out or taken as shown to be "
                "summed; got kept"
            )
        self._as_shown = unknown is Unknown.AS_SHOWN
        self._curve = curve
        self._split_of = split_of
        self._queries: list[_Query] = []
        # One row for each item and split, and one for each query and split.
        self._sums = np.zeros((len(SUMMED), 0))
        self._impressions = np.zeros(0, np.int64)
        self._left_out = np.zeros(0, np.int64)

    def of(self, chunks: Iterable[Columns]) -> Iterator[QuerySums]:
        """Sums of all queries of columns that come in their order."""
        for chunk in _pieces(counted_scopes(chunks)):
            self._take(chunk)
            yield from self._ended(self._queries[:-1])
            self._keep_last()
        yield from self._ended(self._queries)

    def _take(self, chunk: Columns) -> None:
        owners, numbers = self._numbered(chunk)
        is_known = used_cells(chunk)
        is_used = is_known | self._as_shown
        cells, rows = chunk.cells[is_used], used_rows(chunk, is_used)
        queries = owners[cells[:, 0]]
        splits = self._split_of[cells[:, 1]]
        places = queries * N_SPLITS + splits
        np.add.at(self._impressions, places, cells[:, IMPRESSIONS])
        left_out = chunk.cells[~is_used]
        np.add.at(self._left_out, owners[left_out[:, 0]], left_out[:, IMPRESSIONS])

        n_items = np.array([len(each) for each in numbers], np.int64)
        starts = np.cumsum(n_items) - n_items
        all_numbers = np.concatenate(numbers)
        growing = np.array([name.is_growing for name in chunk.names])
        closed = ~growing[cells[:, 0]] & is_known[is_used]
        self._add_sets(cells[closed], splits[closed], n_items, starts, all_numbers)
        scopes = chunk.scope[rows]
        items = all_numbers[starts[scopes] + chunk.item[rows]]
        at = items * N_SPLITS + self._split_of[chunk.group[rows]]
        # Of lists that nobody knows, it is what they showed that they could show.
        as_shown = np.isin(rows, used_rows(chunk, is_known), invert=True)
        expected = np.where(as_shown, chunk.shown[rows], chunk.expected[rows])
        grown = growing[scopes] | as_shown
        self._add(0, at[grown], chunk.shown[rows][grown])
        self._add_places(chunk, rows, at, expected)

    def _add_sets(
        self,
        cells: Int64,
        splits: Int64,
        n_items: Int64,
        starts: Int64,
        all_numbers: Int64,
    ) -> None:
        """Each list of a closed set could have shown each of its items."""
        n_each = n_items[cells[:, 0]]
        owner = np.repeat(np.arange(len(cells)), n_each)
        within = np.arange(len(owner)) - (np.cumsum(n_each) - n_each)[owner]
        items = all_numbers[starts[cells[owner, 0]] + within]
        at = items * N_SPLITS + splits[owner]
        self._add(0, at, cells[owner, IMPRESSIONS])

    def _add_places(
        self, chunk: Columns, rows: Int64, at: Int64, expected: Floats
    ) -> None:
        is_known = chunk.rank[rows] <= self._curve.n_ranks
        rows, at, expected = rows[is_known], at[is_known], expected[is_known]
        ranks = chunk.rank[rows] - 1
        self._add(1, at, self._curve.alpha[ranks] * expected)
        if self._curve.has_trust_bias:
            self._add(2, at, self._curve.beta[ranks] * expected)
        self._add(3, at, chunk.by_class[chunk.reward][rows])

    def _add(self, table: int, at: Int64, numbers: npt.NDArray[Any]) -> None:
        """Add numbers one after another to what stands there."""
        sums = self._sums[table]
        # What stands there comes first, so that cutting chunks rounds nothing else.
        places = np.concatenate((np.arange(len(sums)), at))
        weights = np.concatenate((sums, numbers.astype(np.float64)))
        self._sums[table] = np.bincount(places, weights, len(sums))

    def _numbered(self, chunk: Columns) -> tuple[Int64, list[Int64]]:
        """Of each scope: the number of its query, and those of its items."""
        owners, numbers = [], []
        for name, items in zip(chunk.names, chunk.items, strict=True):
            if not self._queries or self._queries[-1].name != name.query:
                n_items = sum(len(each.numbers) for each in self._queries[-1:])
                first = self._queries[-1].first + n_items if self._queries else 0
                self._queries.append(_Query(name.query, len(self._queries), first))
            query = self._queries[-1]
            if not name.is_growing:
                query.sets.add(name.candidate_set)
            owners.append(query.number)
            numbers.append(query.numbers_of(items))
        self._grow()
        return np.array(owners, np.int64), numbers

    def _grow(self) -> None:
        last = self._queries[-1]
        n_rows = (last.first + len(last.numbers)) * N_SPLITS
        lacking = n_rows - self._sums.shape[1]
        self._sums = np.pad(self._sums, ((0, 0), (0, lacking)))
        n_queries = len(self._queries)
        lacking = n_queries * N_SPLITS - len(self._impressions)
        self._impressions = np.pad(self._impressions, (0, lacking))
        self._left_out = np.pad(self._left_out, (0, n_queries - len(self._left_out)))

    def _ended(self, queries: list[_Query]) -> Iterator[QuerySums]:
        for each in queries:
            items = sorted(each.numbers)
            numbers = [each.numbers[item] for item in items]
            tables = self._sums.reshape(len(SUMMED), -1, N_SPLITS)[:, numbers]
            start = each.number * N_SPLITS
            yield QuerySums(
                each.name,
                tuple(sorted(each.sets)),
                tuple(items),
                np.ascontiguousarray(tables.transpose(0, 2, 1)),
                self._impressions[start : start + N_SPLITS].copy(),
                int(self._left_out[each.number]),
            )

    def _keep_last(self) -> None:
        """Forget queries that have ended."""
        last = self._queries[-1]
        self._sums = self._sums[:, last.first * N_SPLITS :].copy()
        self._impressions = self._impressions[last.number * N_SPLITS :].copy()
        self._left_out = self._left_out[last.number :].copy()
        last.numbers = {item: n - last.first for item, n in last.numbers.items()}
        last.known = {x: numbers - last.first for x, numbers in last.known.items()}
        last.first = last.number = 0
        self._queries = [last]


def _pieces(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """Chunks of so few scopes that what is made of them fits; of one at least.

    Columns say nothing of items that were not shown, of which there may be a thousand
    times as many.
    """
    for chunk in chunks:
        n_items = np.array([len(each) for each in chunk.items], np.int64)
        n_cells = np.bincount(chunk.cells[:, 0], minlength=len(n_items))
        after = np.concatenate(([0], np.cumsum(n_items * (n_cells + N_SPLITS))))
        first = 0
        while first < len(n_items):
            end = int(np.searchsorted(after, after[first] + PAIRS_AT_ONCE, "right")) - 1
            end = max(end, first + 1)
            yield chunk.of_scopes(first, end)
            first = end
