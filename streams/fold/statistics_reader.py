"""The topic `statistics` as its readers see it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from models.counts.cells import CellSummary, merge
from models.counts.fixed_point import EXPOSURE_ONE
from models.counts.scope_record import (
    CONVERTED,
    ScopeRecord,
    decode_scope,
    flags_of,
)
from models.counts.scope_summaries import (
    groups_of_scope,
    impressions_and_clicks,
    rows_of_lists,
    summaries_by_group,
    summary_of_scope,
)
from rankstream.wire.events import decode_items
from streams.fold import statistics_keys as keys
from streams.fold.statistics_keys import Row, ScopeName
from streams.fold.stored_exposures import Floats, placement_in_set, placement_of
from streams.state_pieces import Parts

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

    A scope of which a piece is missing is refused; one with a piece that its head does
    not name too, if `is_strict`. One whose head is missing is not there, which
    `n_missing` and `n_headless` tell.

    Raises
    ------
    SchemaRefused
        Where another release wrote a value.
    """

    def __init__(
        self, items: Iterable[tuple[bytes, bytes | None]], *, is_strict: bool = True
    ) -> None:
        self._is_strict = is_strict
        latest: dict[bytes, bytes] = {}
        for key, value in items:
            if value:
                latest[key] = value
            else:
                latest.pop(key, None)
        counted = (keys.decode(key)[:1] == ["counted"] and key for key in latest)
        self.counted = tuple(
            keys.decode_counted(latest.pop(key)) for key in [*filter(None, counted)]
        )
        """What was counted, of each partition of `events`."""
        oldest = [one.oldest for one in self.counted if one.oldest is not None]
        self._oldest: float = min(oldest, default=-np.inf)
        self._scopes: dict[str, dict[ScopeName, bytes]] = defaultdict(dict)
        self._pieces: dict[ScopeName, dict[int, bytes]] = defaultdict(dict)
        self._lists: dict[ScopeName, dict[int, bytes]] = defaultdict(dict)
        self._sets: dict[tuple[str, bytes, int], bytes] = {}
        self._rows: dict[tuple[ScopeName, bytes], bytes] = {}
        self._items: dict[tuple[str, bytes, int], tuple[str, ...]] = {}
        # The scope that was asked for last; its cells are asked for one by one.
        self._scope: tuple[ScopeName, ScopeRecord] | None = None
        self._cells: tuple[ScopeName, dict[int, CellSummary]] | None = None
        self._placed: tuple[ScopeName, dict[bytes, list[_Placed]]] | None = None
        for key, value in Parts().joined(latest).items():
            self._take(key, value)

    def _take(self, key: bytes, value: bytes) -> None:
        kind, *rest = keys.decode(key)
        keys.check_value(kind, key, value)
        if kind == "scope":
            if rest[3] >= self._oldest:
                self._scopes[rest[0]][ScopeName(*rest)] = value
        elif kind == "piece":
            self._pieces[ScopeName(*rest[:4])][rest[4]] = value
        elif kind == "lists":
            self._lists[ScopeName(*rest[:4])][rest[4]] = value
        elif kind == "set":
            self._sets[tuple(rest)] = value
        elif kind == "row":
            self._rows[ScopeName(*rest[:4]), rest[4]] = value

    def __len__(self) -> int:
        return sum(map(len, self._scopes.values()))

    def share_left(self) -> float:
        """The share of all counted interactions whose eras have left, in [0, 1]."""
        n_counted = sum(sum(one.sources.values()) for one in self.counted)
        return sum(one.n_left for one in self.counted) / max(n_counted, 1)

    def n_converted(self) -> int:
        """How many scopes were converted from an earlier release."""
        values = (
            value for scopes in self._scopes.values() for value in scopes.values()
        )
        return sum(bool(flags_of(value) & CONVERTED) for value in values)

    def n_missing(self, queries: Mapping[str, tuple[int, int]]) -> int:
        """Interactions that were counted, have not left, and are of no scope.

        Parameters
        ----------
        queries
            What `queries` gave.
        """
        if not self.counted:
            return 0
        n_counted = sum(sum(one.sources.values()) for one in self.counted)
        n_left = sum(one.n_left for one in self.counted)
        return n_counted - n_left - sum(n_shown for n_shown, _ in queries.values())

    def n_headless(self, query: str) -> int:
        """Scopes of a query of which something is there, but not the head.

        A scope that is nothing but its head leaves no trace, unless it is the only one
        of its candidate set.
        """
        heads = self._scopes.get(query, {})
        places = [*self._pieces, *self._lists, *(name for name, _ in self._rows)]
        of_query = {name for name in places if name.query == query}
        found = {name for name in of_query - heads.keys() if name.era >= self._oldest}
        sets = {(name.candidate_set, name.era) for name in (*heads, *found)}
        bare = {(name, era) for each, name, era in self._sets if each == query} - sets
        return len(found) + sum(era >= self._oldest for _, era in bare)

    def queries(self) -> dict[str, tuple[int, int]]:
        """Impressions and clicks of each query."""
        counts: dict[str, tuple[int, int]] = {}
        for query, scopes in self._scopes.items():
            totals = [impressions_and_clicks(self.scope(name)) for name in scopes]
            counts[query] = sum(n for n, _ in totals), sum(n for _, n in totals)
        return counts

    def scopes(self, query: str | None = None) -> list[ScopeName]:
        """The scopes, of one query or of all, sorted."""
        queries = self._scopes if query is None else [query]
        return sorted(name for each in queries for name in self._scopes.get(each, ()))

    def names(self, query: str | None = None) -> list[CellName]:
        """The cells, of one query or of all, sorted."""
        return [
            CellName(*name, group)
            for name in self.scopes(query)
            for group in groups_of_scope(self.scope(name))
        ]

    def items(self, query: str, candidate_set: bytes, era: int) -> tuple[str, ...]:
        """Ids of the items of a candidate set in an era, by number."""
        place = (query, candidate_set, era)
        if place not in self._items:
            if place not in self._sets:
                raise ValueError(
                    "the candidate set of each scope must be in statistics; that of "
                    f"{place!r:.200} is missing: read the topic from its beginning, "
                    "or replay into the folder again"
                )
            self._items[place] = tuple(keys.decode_set(self._sets[place]))
        return self._items[place]

    def scope(self, name: ScopeName) -> ScopeRecord:
        """A scope as it is stored.

        Raises
        ------
        ValueError
            If a piece of it is missing, or something has another shape.
        """
        if self._scope is None or self._scope[0] != name:
            value = self._scopes[name.query][name]
            apart = self._pieces.get(name, {}), self._lists.get(name, {})
            try:
                scope = decode_scope(value, *apart)
            except ValueError as error:
                raise ValueError(f"{error}; at scope {name!r:.200}") from error
            if self._is_strict:
                _refuse_strays(name, scope, *apart)
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
        place = ScopeName(*name[:4]), row
        if place not in self._rows:
            raise ValueError(
                "exposure rows of each scope must be in statistics; row "
                f"{row.hex()} of {place[0]!r:.200} is missing: read the topic from its "
                "beginning, or replay into the folder again"
            )
        return keys.decode_row(self._rows[place])

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
            scopes = [name] if name in self._scopes.get(query, ()) else []
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
            owners = [name for name in scopes if (name, row_name) in self._rows]
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


def _refuse_strays(
    name: ScopeName,
    scope: ScopeRecord,
    pieces: Mapping[int, bytes],
    lists: Mapping[int, bytes],
) -> None:
    strays = [*(pieces.keys() - set(scope.pieces))]
    strays += [*(lists.keys() - set(range(scope.n_list_pieces)))]
    if strays:
        raise ValueError(
            "the head of a scope of statistics must name all pieces that are there; it "
            f"does not name {sorted(strays)[:5]}: `rankstream recount` says what is "
            f"wrong; at scope {name!r:.200}"
        )


def summaries_of(
    items: Iterable[tuple[bytes, bytes | None]],
) -> Iterator[tuple[CellName, CellSummary]]:
    """Every cell that stands in records of the topic, sorted by name."""
    statistics = Statistics(items)
    for name in statistics.scopes():
        for group, cell in statistics.cells(name).items():
            yield CellName(*name, group), cell
