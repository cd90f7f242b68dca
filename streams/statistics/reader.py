"""The topic `statistics` as its readers see it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.counts.cells import CellSummary, merge
from models.counts.fixed_point import EXPOSURE_ONE
from models.counts.scope_record import CONVERTED, ScopeRecord, flags_of
from models.counts.scope_summaries import (
    groups_of_scope,
    rows_of_lists,
    summaries_by_group,
    summary_of_scope,
)
from rankstream.wire.events import decode_items
from streams.statistics import keys
from streams.statistics.columns import ColumnReader, Columns
from streams.statistics.index import StatisticsIndex
from streams.statistics.keys import Row, ScopeName
from streams.statistics.placed_rows import placement_in_set, placement_of
from streams.statistics.scopes import (
    ScopeBatch,
    StoredScope,
    batches,
    missing_row,
    missing_set,
    stored_scope,
)
from streams.statistics.summaries import (
    cells_of,
    impressions_and_clicks,
    mixed_scopes,
    summaries_of_batch,
)

_Placed = tuple[str, int, float]
"""Item, rank, and the probability that it was there."""


class CellName(NamedTuple):
    """Which cell: that of a group of a scope."""

    query: str
    candidate_set: bytes
    intervention: str
    era: int
    group: int

    @property
    def scope(self) -> ScopeName:
        """The scope that it is of."""
        return ScopeName(*self[:4])


class Statistics:
    """What lies in the topic, the last value of each key; decoded when asked for.

    Values beyond some megabytes lie in a file of its own meanwhile. A scope of which a
    piece is missing is refused; one with a piece that its head does not name too, if
    `is_strict`. One whose head is missing is not there, which `n_missing` and
    `n_headless` tell.

    Raises
    ------
    SchemaRefused
        Where another release wrote a value.
    """

    def __init__(
        self, items: Iterable[tuple[bytes, bytes | None]], *, is_strict: bool = True
    ) -> None:
        self._is_strict = is_strict
        self._index = StatisticsIndex(items)
        self.counted = self._index.counted
        """What was counted, of each partition of `events`."""
        # The scope that was asked for last; its cells are asked for one by one.
        self._scope: tuple[ScopeName, ScopeRecord] | None = None
        self._items: tuple[tuple[str, bytes, int], tuple[str, ...]] | None = None
        self._cells: tuple[ScopeName, dict[int, CellSummary]] | None = None
        self._placed: tuple[ScopeName, dict[bytes, list[_Placed]]] | None = None

    def __len__(self) -> int:
        return sum(len(records.scopes) for records in self._index.all())

    def is_empty(self) -> bool:
        """Whether there is no scope."""
        return not any(records.scopes for records in self._index.all())

    def share_left(self) -> float:
        """The share of all counted interactions whose eras have left, in [0, 1]."""
        n_counted = sum(sum(one.sources.values()) for one in self.counted)
        return sum(one.n_left for one in self.counted) / max(n_counted, 1)

    def n_converted(self) -> int:
        """How many scopes were converted from an earlier release."""
        return sum(
            bool(flags_of(records.value(key)) & CONVERTED)
            for records in self._index.all()
            for key in records.scopes.values()
        )

    def n_missing(self, n_impressions: int) -> int:
        """Interactions that were counted, have not left, and are of no scope.

        Parameters
        ----------
        n_impressions
            Of all scopes.
        """
        if not self.counted:
            return 0
        n_counted = sum(sum(one.sources.values()) for one in self.counted)
        n_left = sum(one.n_left for one in self.counted)
        return n_counted - n_left - n_impressions

    def n_headless(self, query: str) -> int:
        """Scopes of a query of which something is there, but not the head.

        A scope that is nothing but its head leaves no trace, unless it is the only one
        of its candidate set.
        """
        records, oldest = self._index.of(query), self._index.oldest
        heads = records.scopes.keys()
        of_query = {*records.pieces, *records.lists, *records.rows}
        found = {name for name in of_query - heads if name.era >= oldest}
        sets = {(name.candidate_set, name.era) for name in (*heads, *found)}
        bare = records.sets.keys() - sets
        return len(found) + sum(era >= oldest for _, era in bare)

    def queries(self) -> dict[str, tuple[int, int]]:
        """Impressions and clicks of each query that has a scope, sorted."""
        counts: dict[str, tuple[int, int]] = {}
        for batch in self.batches():
            for name, shown, clicked in impressions_and_clicks(batch):
                before = counts.get(name.query, (0, 0))
                counts[name.query] = before[0] + shown, before[1] + clicked
        return counts

    def scopes(self, query: str | None = None) -> list[ScopeName]:
        """The scopes, of one query or of all, sorted."""
        if query is not None:
            return sorted(self._index.of(query).scopes)
        return [name for each in self._index.queries() for name in self.scopes(each)]

    def names(self, query: str | None = None) -> list[CellName]:
        """The cells, of one query or of all, sorted."""
        if not self._is_strict:
            return [
                CellName(*name, group)
                for name in self.scopes(query)
                for group in groups_of_scope(self.scope(name))
            ]
        queries = None if query is None else [query]
        return [
            CellName(*name, group)
            for batch in self.batches(queries)
            for name, group in cells_of(batch)
        ]

    def batches(
        self,
        queries: Iterable[str] | None = None,
        *,
        is_wanted: Callable[[ScopeName], bool] = lambda _: True,
    ) -> Iterator[ScopeBatch]:
        """Scopes many at a time, in their order, of all queries or of some.

        Raises
        ------
        ValueError
            If something of a scope is missing, or has another shape.
        """
        yield from batches(self._stored(queries, is_wanted))

    def columns(
        self,
        queries: Iterable[str] | None = None,
        *,
        is_wanted: Callable[[ScopeName], bool] = lambda _: True,
        marks_mixed: bool = False,
    ) -> Iterator[Columns]:
        """Every item and rank, chunk by chunk; see `streams.statistics.columns`.

        Parameters
        ----------
        queries
            Those that are read; all if not given.
        is_wanted
            Whether a scope is, as of chosen eras.
        marks_mixed
            Whether columns say which scopes had several placements.

        Raises
        ------
        ValueError
            If something of a scope is missing, or has another shape.
        """
        reader = self.column_reader()
        for batch in self.batches(queries, is_wanted=is_wanted):
            mixed = mixed_scopes(batch) if marks_mixed else frozenset()
            for chunk in reader.of_batch(batch):
                yield chunk._replace(mixed=mixed)

    def column_reader(self) -> ColumnReader:
        """One for the reward classes that were counted."""
        if not self.counted:
            return ColumnReader()
        classes, reward = self.counted[0].classes, self.counted[0].reward
        return ColumnReader(len(classes), classes.index(reward))

    def _stored(
        self, queries: Iterable[str] | None, is_wanted: Callable[[ScopeName], bool]
    ) -> Iterator[StoredScope]:
        for query in self._index.queries() if queries is None else queries:
            records = self._index.of(query)
            for name in sorted(records.scopes):
                if is_wanted(name):
                    yield stored_scope(records, name)

    def items(self, query: str, candidate_set: bytes, era: int) -> tuple[str, ...]:
        """Ids of the items of a candidate set in an era, by number."""
        place = (query, candidate_set, era)
        if self._items is None or self._items[0] != place:
            records = self._index.of(query)
            if place[1:] not in records.sets:
                raise ValueError(missing_set(place))
            value = records.value(records.sets[place[1:]])
            self._items = place, tuple(keys.decode_set(value))
        return self._items[1]

    def scope(self, name: ScopeName) -> ScopeRecord:
        """A scope as it is stored.

        Raises
        ------
        ValueError
            If a piece of it is missing, or something has another shape.
        """
        if self._scope is None or self._scope[0] != name:
            one = stored_scope(self._index.of(name.query), name)
            scope = one.decoded()
            if self._is_strict:
                one.refuse_strays(scope)
            self._scope = name, scope
        return self._scope[1]

    def cells(self, name: ScopeName) -> dict[int, CellSummary]:
        """The cells of a scope by group."""
        if self._cells is None or self._cells[0] != name:
            scope = self.scope(name)
            items, matrices = self._set_of(name), self._matrices(name, scope)
            cells = summaries_by_group(
                scope, items, matrices, is_growing=name.is_growing
            )
            self._cells = name, cells
        return self._cells[1]

    def cell(self, name: CellName) -> CellSummary:
        """One cell."""
        return self.cells(name.scope)[name.group]

    def summary(self, name: ScopeName) -> CellSummary:
        """All groups of a scope together."""
        scope = self.scope(name)
        items, matrices = self._set_of(name), self._matrices(name, scope)
        return summary_of_scope(scope, items, matrices, is_growing=name.is_growing)

    def merged(self, query: str) -> dict[tuple[bytes, str], CellSummary]:
        """Scopes of a query by candidate set and intervention, eras together."""
        parts: dict[tuple[bytes, str], list[CellSummary]] = defaultdict(list)
        for name in self.scopes(query):
            parts[name.candidate_set, name.intervention].append(self.summary(name))
        return {place: merge(cells) for place, cells in parts.items()}

    def row(self, name: ScopeName | CellName, row: bytes) -> Row:
        """An exposure row of a scope, by its name."""
        place, records = ScopeName(*name[:4]), self._index.of(name.query)
        if row not in records.rows.get(place, {}):
            raise ValueError(missing_row(place, row))
        return keys.decode_row(records.value(records.rows[place][row]))

    def exposures(
        self,
        query: str,
        candidate_set: bytes,
        intervention: str,
        cell: CellSummary,
        era: int | None = None,
    ) -> dict[tuple[str, int], float]:
        """Expected number of times that each item was shown at each rank.

        Impressions without known exposures add nothing. `cell` is of the era, or, if
        it is None, of all eras together.

        Raises
        ------
        ValueError
            If there is no such scope, or one was converted from an earlier release.
        """
        if era is None:
            known = self.scopes(query)
            scopes = [one for one in known if one[1:3] == (candidate_set, intervention)]
        else:
            name = ScopeName(query, candidate_set, intervention, era)
            scopes = [name] if name in self._index.of(query).scopes else []
        if not scopes:
            raise ValueError(
                "exposures must be of a scope that is there; there is none of era "
                f"{era} with {(query, candidate_set, intervention)!r:.200}"
            )
        self._refuse_converted(scopes)
        expected: dict[tuple[str, int], float] = defaultdict(float)
        for row_name, count in zip(
            cell.row_names, cell.row_counts.tolist(), strict=True
        ):
            # A row that came again in a later era has the same name and matrix.
            rows = self._index.of(query).rows
            owners = [name for name in scopes if row_name in rows.get(name, {})]
            owner = (owners or scopes)[-1]
            for item, rank, placed in self._places_of(owner, row_name):
                expected[item, rank] += count * placed
        columns = (cell.column(name).tolist() for name in ("item", "rank", "exposure"))
        for item, rank, summed in zip(*columns, strict=True):
            if summed:
                expected[cell.items[item], rank] += summed / EXPOSURE_ONE
        return dict(expected)

    def _places_of(self, scope: ScopeName, row_name: bytes) -> list[_Placed]:
        """Where a row may place each item; the groups of a scope share rows."""
        if self._placed is None or self._placed[0] != scope:
            self._placed = scope, {}
        of_rows = self._placed[1]
        if row_name not in of_rows:
            row = self.row(scope, row_name)
            items = decode_items(row.items) if row.items else self._set_of(scope)
            matrix = placement_of(row, len(items))
            places = np.argwhere(matrix > 0).tolist()
            of_rows[row_name] = [
                (items[item], rank + 1, float(matrix[item, rank]))
                for item, rank in places
            ]
        return of_rows[row_name]

    def _refuse_converted(self, scopes: Iterable[ScopeName]) -> None:
        for name in scopes:
            if self.scope(name).flags & CONVERTED:
                raise ValueError(
                    "exposures must have been counted by scope; those of "
                    f"{name!r:.200} were converted from an earlier release, which "
                    "let items go one by one: take counts of shown and clicked, or an "
                    "era that began after the conversion"
                )

    def _set_of(self, name: ScopeName) -> tuple[str, ...]:
        return self.items(name.query, name.candidate_set, name.era)

    def _matrices(self, name: ScopeName, scope: ScopeRecord) -> dict[int, Floats]:
        """P(item at rank) of the rows that lists refer to."""
        items = self._set_of(name)
        return {
            row: placement_in_set(self.row(name, scope.rows[row]), items)
            for row in rows_of_lists(scope)
        }


def summaries_of(
    items: Iterable[tuple[bytes, bytes | None]],
) -> Iterator[tuple[CellName, CellSummary]]:
    """Every cell that stands in records of the topic, sorted by name."""
    for batch in Statistics(items).batches():
        for name, group, cell in summaries_of_batch(batch):
            yield CellName(*name, group), cell
