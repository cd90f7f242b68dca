"""Whole queries from columns: what lists showed and what was clicked, item by item.

Trainings, values of policies and relevance of items are all made of these tables. A few
queries at a time are held, and one chunk of columns, however large a log is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.counts.fixed_point import Int64
from models.estimators.choice import Unknown
from models.estimators.click_log import ClickLog
from streams.statistics.columns import Columns
from streams.statistics.query_tables import QueryTables, ScopesOfQueries

CELLS_AT_ONCE = 1 << 18
"""Of groups, policies and items, and rows of columns, that are taken together; one
query may have more."""


class LoggedQueries(NamedTuple):
    """Some queries, whole.

    Parameters
    ----------
    queries
        Their ids.
    items, owners : [n_items]
        Ids of items, and the number of the query that each is of.
    interventions : [n_policies]
        Names of the policies that logged.
    log
        See `models.estimators.click_log`: `expected` is NaN where lists of a cell
        are of unknown policies and kept, or `shown` where they are taken as sure. A
        policy is mixed where a query has several placements under it: in one scope, or
        in several of its scopes. Rows are in the order of the columns.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    lists : [n, 4]
        Scope, group, policy, and lists that count.
    n_known, n_unknown
        Lists of known policies that can be told apart, and all others.
    n_left_out, n_as_shown
        Lists that were left out, and those that were taken as sure.
    scopes
        Of the queries.
    scope_of : [n_places]
        Number of the scope that each row is of.
    n_beside
        Of the others: those of known policies, whose clicks are counted together with
        those of lists of unknown ones.
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    owners: Int64
    interventions: tuple[str, ...]
    log: ClickLog
    impressions: Floats
    lists: Int64
    n_known: int
    n_unknown: int
    n_left_out: int
    n_as_shown: int
    scopes: ScopesOfQueries
    scope_of: Int64
    n_beside: int

    def lists_of_queries(self) -> Int64:
        """Lists that count, [n_queries, n_groups]."""
        owner = np.array(self.scopes.owners, np.int64)
        found = np.zeros((len(self.queries), len(self.impressions)), np.int64)
        scopes, groups, _, lists = self.lists.T
        np.add.at(found, (owner[scopes], groups), lists)
        return found

    def closed_sets(self) -> list[tuple[bytes, ...]]:
        """Names of the closed candidate sets of each query, sorted."""
        found: list[set[bytes]] = [set() for _ in self.queries]
        for name, owner in zip(self.scopes.names, self.scopes.owners, strict=True):
            if not name.is_growing:
                found[owner].add(name.candidate_set)
        return [tuple(sorted(names)) for names in found]


class QueryGatherer:
    """Gathers columns that come in their order, however these are cut.

    Parameters
    ----------
    group_of : [n_groups of the statistics]
        The number under which lists of each group count; -1 for those that do not.
    n_groups
        More than each of these.
    unknown
        What becomes of cells with lists of unknown policies.
    by_policy
        Whether policies are told apart; else all are one.
    sorts_policies
        Whether policies are numbered by their names, else as they come.
    name_of
        Items of a query of which it gives the same name are one; else each is.
    cells_at_once
        See `CELLS_AT_ONCE`; 1 gives each query by itself.
    """

    def __init__(  # noqa: PLR0913  all that a table depends on
        self,
        group_of: npt.ArrayLike,
        n_groups: int,
        unknown: Unknown,
        *,
        by_policy: bool = True,
        sorts_policies: bool = True,
        name_of: Callable[[str], str] | None = None,
        cells_at_once: int = CELLS_AT_ONCE,
    ) -> None:
        self._group_of = np.asarray(group_of, np.int64)
        self._n_groups = n_groups
        self._unknown = unknown
        self._by_policy = by_policy
        self._sorts_policies = sorts_policies
        self._name_of = name_of
        self._cells_at_once = cells_at_once
        self._last: _Query | None = None
        self._waiting: list[_Query] = []
        self._n_items = self._n_rows = 0
        self._policies: dict[str, None] = {}

    def of(self, chunks: Iterable[Columns]) -> Iterator[LoggedQueries]:
        """All queries of columns, a few at a time."""
        for chunk in chunks:
            yield from self.take(chunk)
        yield from self.finish()

    def take(self, chunk: Columns) -> Iterator[LoggedQueries]:
        """Add columns; gives queries that have ended."""
        if not len(chunk.cells):
            return
        # A batch that is cut into several names all of its scopes in each.
        first, last = chunk.cells[[0, -1], 0].tolist()
        rows = np.searchsorted(chunk.scope, np.arange(len(chunk.names) + 1))
        names = chunk.names[first : last + 1]
        for query, of_query in groupby(names, lambda name: name.query):
            if self._last is None or self._last.name != query:
                yield from self._ended()
                self._last = _Query(query, self._name_of)
            end = first + len([*of_query])
            self._last.add(chunk, first, end, int(rows[end] - rows[first]))
            first = end

    def finish(self) -> Iterator[LoggedQueries]:
        """The last queries; nothing follows."""
        yield from self._ended()
        if self._waiting:
            yield self.together()

    def _ended(self) -> Iterator[LoggedQueries]:
        query, self._last = self._last, None
        if query is None:
            return
        n_cells = self._n_cells(query)
        if self._waiting and n_cells > self._cells_at_once:
            yield self.together()
            n_cells = self._n_cells(query)
        self._waiting.append(query)
        self._n_items += len(query.numbers)
        self._n_rows += query.n_rows
        self._policies |= query.policies
        if n_cells > self._cells_at_once:
            yield self.together()

    def _n_cells(self, query: "_Query") -> int:
        """Cells or rows, whichever are more, of what waits and one query more."""
        n_policies = len(self._policies | query.policies) if self._by_policy else 1
        n_items = self._n_items + len(query.numbers)
        return max(self._n_groups * n_items * n_policies, self._n_rows + query.n_rows)

    def together(self) -> LoggedQueries:
        """All that wait, which may be none, as one."""
        queries, names = self._waiting, [*self._policies]
        if self._sorts_policies:
            names.sort()
        number = {x: i if self._by_policy else 0 for i, x in enumerate(names)}
        shape = self._n_groups, len({*number.values()}), self._n_items
        owners = [i for i, each in enumerate(queries) for _ in each.numbers]
        firsts = np.searchsorted(owners, np.arange(len(queries)))
        tables = QueryTables(shape, self._group_of, self._unknown)
        for piece, of_scopes, items in _spans(queries):
            policies = np.zeros(len(of_scopes), np.int64)
            if self._by_policy:
                policies[:] = [number[name.intervention] for name in piece.names]
            tables.take(piece, of_scopes, items, (policies, firsts[of_scopes]))
        mixed: set[int] = set()
        if self._by_policy:
            mixed.update(number[x] for each in queries for x in each.mixed_policies())
        self._waiting, self._policies = [], {}
        self._n_items = self._n_rows = 0
        return LoggedQueries(
            tuple(each.name for each in queries),
            tuple(name for each in queries for name in each.numbers),
            np.array(owners, np.int64),
            tuple(names),
            *tables.found(frozenset(mixed)),
        )


class _Query:
    """A query with its columns; `numbers` are those of its items."""

    def __init__(self, name: str, name_of: Callable[[str], str] | None) -> None:
        self.name = name
        self.numbers: dict[str, int] = {}
        self.policies: dict[str, None] = {}
        self.spans: list[tuple[Columns, int, int, list[Int64]]] = []
        self.n_rows = 0
        self._name_of = name_of
        self._known: dict[tuple[str, ...], Int64] = {}

    def add(self, chunk: Columns, first: int, end: int, n_rows: int) -> None:
        """Add the scopes from `first` up to but not with `end`."""
        own = [self._numbers_of(chunk.items[scope]) for scope in range(first, end)]
        self.spans.append((chunk, first, end, own))
        self.policies |= dict.fromkeys(x.intervention for x in chunk.names[first:end])
        self.n_rows += n_rows

    def _numbers_of(self, items: tuple[str, ...]) -> Int64:
        if items not in self._known:
            numbers = self.numbers
            names = map(self._name_of, items) if self._name_of else items
            found = [numbers.setdefault(name, len(numbers)) for name in names]
            self._known[items] = np.array(found, np.int64)
        return self._known[items]

    def mixed_policies(self) -> set[str]:
        """Interventions with several placements."""
        scopes = {x for chunk, i, j, _ in self.spans for x in chunk.names[i:j]}
        marked = {x for chunk, *_ in self.spans for x in chunk.mixed & scopes}
        n_scopes = Counter(name.intervention for name in scopes)
        several = {name for name, n in n_scopes.items() if n > 1}
        return several | {name.intervention for name in marked}


def _spans(
    queries: Sequence[_Query],
) -> Iterator[tuple[Columns, list[int], list[Int64]]]:
    """What queries have of each chunk; of each scope its query and its items."""
    spans: list[tuple[Columns, list[int], list[int], list[Int64]]] = []
    for owner, query in enumerate(queries):
        for chunk, first, end, own in query.spans:
            if not spans or spans[-1][0] is not chunk or spans[-1][1][1] != first:
                spans.append((chunk, [first, end], [], []))
            _, bounds, owners, items = spans[-1]
            bounds[1] = end
            owners.extend([owner] * len(own))
            items.extend(own)
    for chunk, bounds, owners, items in spans:
        yield chunk.of_scopes(*bounds), owners, items
