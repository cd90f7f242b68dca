"""Whole queries from columns: what lists showed and what was clicked, item by item.

Trainings, values of policies and relevance of items are all made of these tables. A few
queries at a time are held, and one chunk of columns, however large a log is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.counts.fixed_point import Floats, Int64
from models.estimators.choice import Unknown
from models.estimators.click_log import ClickLog
from streams.statistics.columns import IMPRESSIONS, Columns

CELLS_AT_ONCE = 1 << 18
"""Of groups, policies and items, and rows of columns, that are taken together; one
query may have more."""

PAIRS_AT_ONCE = 1 << 19
"""Of a cell and an item that its lists could have shown, added up together: there may
be a thousand times as many as rows."""


class CandidateSet(NamedTuple):
    """A candidate set; `query` numbers its query, `items` [n_items] are each scope's.

    Candidates of a growing one are those of each list: it has what any of them had.
    """

    query: int
    name: bytes
    is_growing: bool
    items: list[Int64]


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
        Set, group, policy, and lists that count.
    n_known, n_unknown
        Lists of cells of known policies, and of others.
    n_left_out, n_as_shown
        Of the others: those that were left out, and those that were taken as sure.
    sets
        Candidate sets of the queries, in their order.
    set_of : [n_places]
        That of each row.
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
    sets: tuple[CandidateSet, ...]
    set_of: Int64

    def lists_of_queries(self) -> Int64:
        """Lists that count, [n_queries, n_groups]."""
        owner = np.array([each.query for each in self.sets], np.int64)
        found = np.zeros((len(self.queries), len(self.impressions)), np.int64)
        sets, groups, _, lists = self.lists.T
        np.add.at(found, (owner[sets], groups), lists)
        return found

    def closed_sets(self) -> list[tuple[bytes, ...]]:
        """Names of the closed candidate sets of each query, sorted."""
        found: list[set[bytes]] = [set() for _ in self.queries]
        for each in self.sets:
            if not each.is_growing:
                found[each.query].add(each.name)
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
        Items of a query of which it gives the same name are one.
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
        name_of: Callable[[str], str] = str,
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
        if self._waiting and self._n_cells(query) > self._cells_at_once:
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
        policies = self._policies | query.policies
        n_policies = len(policies) if self._by_policy else 1
        n_items = self._n_items + len(query.numbers)
        return max(self._n_groups * n_items * n_policies, self._n_rows + query.n_rows)

    def together(self) -> LoggedQueries:
        """All that wait, which may be none, as one."""
        queries, names = self._waiting, [*self._policies]
        if self._sorts_policies:
            names.sort()
        number = {x: i if self._by_policy else 0 for i, x in enumerate(names)}
        shape = self._n_groups, len({*number.values()}), self._n_items
        tables = _Tables(shape, self._group_of, self._unknown)
        for chunk, first, end, owners, items in _spans(queries):
            piece = chunk.of_scopes(first, end)
            policies = [number[name.intervention] for name in piece.names]
            tables.take(piece, owners, items, np.array(policies, np.int64))
        mixed = {number[name] for each in queries for name in each.mixed_policies()}
        owners = [i for i, each in enumerate(queries) for _ in each.numbers]
        self._waiting, self._policies = [], {}
        self._n_items = self._n_rows = 0
        return LoggedQueries(
            tuple(each.name for each in queries),
            tuple(name for each in queries for name in each.numbers),
            np.array(owners, np.int64),
            tuple(names),
            *tables.found(frozenset(mixed)),
        )


class _Span(NamedTuple):
    """Scopes of a chunk; of each its query and the numbers of its items."""

    chunk: Columns
    first: int
    end: int
    owners: list[int]
    items: list[Int64]


class _Query:
    """A query with its columns; `numbers` are those of its items."""

    def __init__(self, name: str, name_of: Callable[[str], str]) -> None:
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
            names = map(self._name_of, items)
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


def _spans(queries: Sequence[_Query]) -> list[_Span]:
    """What queries have of each chunk, items numbered one query after another."""
    spans: list[_Span] = []
    n_before = 0
    for owner, query in enumerate(queries):
        for chunk, first, end, own in query.spans:
            last = spans[-1] if spans else None
            if last is None or last.chunk is not chunk or last.end != first:
                spans.append(_Span(chunk, first, end, [], []))
            spans[-1] = spans[-1]._replace(end=end)
            spans[-1].owners.extend([owner] * len(own))
            spans[-1].items.extend(x + n_before for x in own)
        n_before += len(query.numbers)
    return spans


class _Tables:
    """Rows of columns with the numbers of what they are of, and sums of impressions."""

    def __init__(
        self, shape: tuple[int, int, int], group_of: Int64, unknown: Unknown
    ) -> None:
        self._shape = shape
        self._group_of = group_of
        self._unknown = unknown
        self._n_known = self._n_unknown = 0
        # Group, policy, item, rank, shown, clicked, set; and what was expected.
        self._places: list[Int64] = [np.empty((0, 7), np.int64)]
        self._expected: list[Floats] = [np.empty(0)]
        self._impressions = np.zeros(int(np.prod(shape)))
        self._lists: list[Int64] = [np.empty((0, 4), np.int64)]
        self._sets: dict[tuple[int, bytes], int] = {}
        self._of_sets: list[CandidateSet] = []

    def take(
        self, chunk: Columns, owners: list[int], items: list[Int64], policies: Int64
    ) -> None:
        """Add columns, given the query, items and policy of each scope."""
        sets = np.array([*map(self._set, owners, chunk.names, items)], np.int64)
        scopes, n_lists = chunk.cells[:, 0], chunk.cells[:, IMPRESSIONS]
        groups, is_known = self._group_of[chunk.cells[:, 1]], chunk.has_policies()
        is_used = groups >= 0
        self._n_known += int(n_lists[is_used & is_known].sum())
        self._n_unknown += int(n_lists[is_used & ~is_known].sum())
        if self._unknown is Unknown.LEFT_OUT:
            is_used &= is_known
        growing = np.array([name.is_growing for name in chunk.names], np.bool_)
        # Candidates of a list of a growing set are its own items; so it is where nobody
        # knows what else it could have shown.
        is_own = growing[scopes]
        if self._unknown is Unknown.AS_SHOWN:
            is_own = is_own | ~is_known
        lists = np.column_stack((sets[scopes], groups, policies[scopes], n_lists))
        self._lists.append(lists[is_used])
        n_items = np.array([len(own) for own in items], np.int64)
        starts, numbers = np.cumsum(n_items) - n_items, np.concatenate(items)
        is_whole = is_used & ~is_own
        self._add_sets(lists[is_whole], scopes[is_whole], n_items, starts, numbers)
        self._take_rows(chunk, lists, (is_used, is_known, is_own), (starts, numbers))

    def _take_rows(
        self,
        chunk: Columns,
        lists: Int64,
        of_cells: tuple[npt.NDArray[np.bool_], ...],
        of_items: tuple[Int64, Int64],
    ) -> None:
        cells = chunk.cell_of_rows()
        is_used, is_known, is_own = (flags[cells] for flags in of_cells)
        shown, expected = chunk.shown, chunk.expected
        if not is_known.all():
            is_sure = self._unknown is Unknown.AS_SHOWN
            untold = shown if is_sure else np.full(len(shown), np.nan)
            expected = np.where(is_known, expected, untold)
        starts, numbers = of_items
        item = numbers[starts[chunk.scope] + chunk.item]
        sets, groups, policies, _ = lists[cells].T
        clicked = chunk.by_class[chunk.reward]
        columns = groups, policies, item, chunk.rank, shown, clicked, sets
        places = np.column_stack(columns)
        self._places.append(places[is_used])
        self._expected.append(expected[is_used])
        own = places[is_used & is_own]
        self._add(own[:, 0], own[:, 1], own[:, 2], own[:, 4])

    def _set(self, owner: int, name: Any, items: Int64) -> int:
        place = owner, name.candidate_set
        if place not in self._sets:
            self._sets[place] = len(self._of_sets)
            self._of_sets.append(CandidateSet(*place, name.is_growing, []))
        self._of_sets[self._sets[place]].items.append(items)
        return self._sets[place]

    def _add(self, groups: Int64, policies: Int64, items: Int64, lists: Int64) -> None:
        at = np.ravel_multi_index((groups, policies, items), self._shape)
        np.add.at(self._impressions, at, lists.astype(np.float64))

    def _add_sets(
        self,
        lists: Int64,
        scopes: Int64,
        n_items: Int64,
        starts: Int64,
        numbers: Int64,
    ) -> None:
        """Each list of a closed set could have shown each of its items."""
        after = np.concatenate(([0], np.cumsum(n_items[scopes])))
        first = 0
        while first < len(lists):
            end = int(np.searchsorted(after, after[first] + PAIRS_AT_ONCE, "right")) - 1
            end = max(end, first + 1)
            owner = np.repeat(np.arange(first, end), n_items[scopes[first:end]])
            within = np.arange(len(owner)) + after[first] - after[owner]
            _, groups, policies, n_lists = lists[owner].T
            items = numbers[starts[scopes[owner]] + within]
            self._add(groups, policies, items, n_lists)
            first = end

    def found(self, mixed: frozenset[int]) -> tuple[Any, ...]:
        """What `LoggedQueries` has of all of it, from its `log` on."""
        *columns, sets = np.concatenate(self._places).T
        log = ClickLog._make((*columns, np.concatenate(self._expected), mixed))
        n_unknown = self._n_unknown
        return (
            log,
            self._impressions.reshape(self._shape),
            np.concatenate(self._lists),
            self._n_known,
            n_unknown,
            n_unknown if self._unknown is Unknown.LEFT_OUT else 0,
            n_unknown if self._unknown is Unknown.AS_SHOWN else 0,
            tuple(self._of_sets),
            sets,
        )
