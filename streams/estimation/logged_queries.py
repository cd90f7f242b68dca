"""What lists of whole queries showed and what was clicked, as estimators take it.

A few queries at a time are held, and one chunk of columns, however large a log is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from models.counts.fixed_point import Floats, Int64
from models.estimators.choice import Unknown
from models.estimators.logged_places import Flags, LoggedPlaces
from streams.estimation.mixed_scopes import MarkedColumns
from streams.statistics.columns import Columns
from streams.training.used_cells import IMPRESSIONS, used_cells, used_rows

CELLS_AT_ONCE = 1 << 18
"""Of groups, policies and items, and rows of columns, that are taken together; one
query may have more."""


class LoggedSet(NamedTuple):
    """Lists of one candidate set of a query, of all policies and eras.

    Parameters
    ----------
    query
        Number of its query.
    name
        Of the set.
    is_growing
        Whether candidates are those of each list: it has what any of them had.
    items : [n_items_of_set]
        Numbers of its items, ascending.
    lists, clicked : [n_groups]
        Lists, and clicks on them.
    placed : [n_items_of_set, n_ranks]
        How often items were to be expected at ranks; where that is not known, how
        often they were there, which has the same mean. As many ranks as some list has.
    """

    query: int
    name: bytes
    is_growing: bool
    items: Int64
    lists: Int64
    clicked: Int64
    placed: Floats


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
        See `models.estimators.logged_places`: `expected` is NaN where lists of a cell
        are of unknown policies and kept, or `shown` where they are taken as sure. A
        policy is mixed where a query has several placements under it: in one scope, or
        in several of its scopes.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    sets
        Candidate sets of the queries, in their order.
    n_left_out
        Lists that were left out, as some beside them are of unknown policies.
    n_as_shown
        Lists that were taken as sure for that reason.
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    owners: Int64
    interventions: tuple[str, ...]
    log: LoggedPlaces
    impressions: Floats
    sets: tuple[LoggedSet, ...]
    n_left_out: int
    n_as_shown: int = 0


class Gathering(NamedTuple):
    """What of a log is gathered.

    Parameters
    ----------
    n_groups
        `statistics.groups` of the statistics.
    groups
        Whose lists are.
    unknown
        What becomes of cells with lists of unknown policies.
    cells_at_once
        See `CELLS_AT_ONCE`; 1 gives each query by itself.
    """

    n_groups: int
    groups: Collection[int]
    unknown: Unknown
    cells_at_once: int = CELLS_AT_ONCE

    def of(self, chunks: Iterable[MarkedColumns]) -> Iterator[LoggedQueries]:
        """Queries of columns that come in their order, however these are cut."""
        waiting: list[_Query] = []
        for query in _whole_queries(chunks):
            items = sum(len(each.items) for each in (*waiting, query))
            policies = {*query.policies}.union(*(each.policies for each in waiting))
            n_cells = self.n_groups * items * len(policies)
            n_rows = sum(each.n_rows for each in (*waiting, query))
            if waiting and max(n_cells, n_rows) > self.cells_at_once:
                yield self._together(waiting)
                waiting = []
            waiting.append(query)
        if waiting:
            yield self._together(waiting)

    def _together(self, queries: list["_Query"]) -> LoggedQueries:
        names = sorted({name for each in queries for name in each.policies})
        number = {name: i for i, name in enumerate(names)}
        wanted = np.isin(np.arange(self.n_groups), [*self.groups])
        rows = _Rows(wanted, self.unknown)
        sets: dict[tuple[int, bytes], int] = {}
        items: list[str] = []
        owners: list[int] = []
        mixed: set[int] = set()
        for i, query in enumerate(queries):
            first = len(items)
            numbers: dict[str, int] = {}
            for item in query.items:
                numbers[item] = first + len(numbers)
            items += query.items
            owners += [i] * len(numbers)
            mixed |= {number[name] for name in query.mixed_policies()}
            for chunk, _ in query.pieces:
                policies = [number[name.intervention] for name in chunk.names]
                of_sets = [
                    sets.setdefault((i, name.candidate_set), len(sets))
                    for name in chunk.names
                ]
                own = [[numbers[x] for x in of_scope] for of_scope in chunk.items]
                rows.take(chunk, own, policies, of_sets)
        shape = self.n_groups, len(names), len(items)
        log, impressions = rows.places(frozenset(mixed), shape)
        return LoggedQueries(
            tuple(each.name for each in queries),
            tuple(items),
            np.array(owners, np.int64),
            tuple(names),
            log,
            impressions,
            tuple(rows.sets([*sets], self.n_groups)),
            rows.n_left_out,
            rows.n_as_shown,
        )


class _Query:
    """A query with its columns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[MarkedColumns] = []
        self.items: dict[str, None] = {}
        self.policies: set[str] = set()
        self.n_rows = 0

    def add(self, chunk: Columns, piece: MarkedColumns) -> None:
        self.pieces.append(piece._replace(columns=chunk))
        self.n_rows += len(chunk.scope)
        self.items |= dict.fromkeys(item for own in chunk.items for item in own)
        self.policies.update(name.intervention for name in chunk.names)

    def mixed_policies(self) -> set[str]:
        """Interventions with several placements."""
        scopes = {name for chunk, _ in self.pieces for name in chunk.names}
        marked = {name for _, mixed in self.pieces for name in mixed & scopes}
        n_scopes = Counter(name.intervention for name in scopes)
        several = {name for name, n in n_scopes.items() if n > 1}
        return several | {name.intervention for name in marked}


def _whole_queries(chunks: Iterable[MarkedColumns]) -> Iterator[_Query]:
    last: _Query | None = None
    for piece in chunks:
        chunk = piece.columns
        if not len(chunk.cells):
            continue
        # A batch that is cut into several names all of its scopes in each.
        begin, end = chunk.cells[[0, -1], 0].tolist()
        first = begin
        names = chunk.names[begin : end + 1]
        for query, of_query in groupby(names, lambda name: name.query):
            after = first + len([*of_query])
            if last is None or last.name != query:
                if last is not None:
                    yield last
                last = _Query(query)
            last.add(chunk.of_scopes(first, after), piece)
            first = after
    if last is not None:
        yield last


class _Rows:
    """Rows of columns with the numbers of what they are of."""

    def __init__(self, wanted: Flags, unknown: Unknown) -> None:
        self.n_left_out = self.n_as_shown = 0
        self._wanted = wanted
        self._unknown = unknown
        # Group, policy, item, rank, shown, clicked, set; and what was expected.
        self._places: list[Int64] = [np.empty((0, 7), np.int64)]
        self._expected: list[Floats] = [np.empty(0)]
        # Group, policy, item, impressions.
        self._impressions: list[Int64] = [np.empty((0, 4), np.int64)]
        # Set, group, lists.
        self._lists: list[Int64] = [np.empty((0, 3), np.int64)]
        self._sets: dict[int, Int64] = {}
        self._is_growing: dict[int, bool] = {}

    def take(
        self,
        chunk: Columns,
        items: list[list[int]],
        policies: list[int],
        sets: list[int],
    ) -> None:
        """Add columns, given numbers of their scopes' items, policies and sets."""
        of_policy, of_set = np.array(policies, np.int64), np.array(sets, np.int64)
        is_known = used_cells(chunk)
        is_used = self._wanted[chunk.cells[:, 1]]
        is_untold = is_used & ~is_known
        is_sure = is_untold & (self._unknown is Unknown.AS_SHOWN)
        self.n_as_shown += int(chunk.cells[is_sure, IMPRESSIONS].sum())
        if self._unknown is Unknown.LEFT_OUT:
            self.n_left_out += int(chunk.cells[is_untold, IMPRESSIONS].sum())
            is_used &= is_known
        rows = used_rows(chunk, is_used)
        is_told = np.isin(rows, used_rows(chunk, is_used & is_known))
        n_items = np.array([len(own) for own in items], np.int64)
        starts = np.cumsum(n_items) - n_items
        numbers = np.array([number for own in items for number in own], np.int64)
        growing = np.array([name.is_growing for name in chunk.names], np.bool_)
        for number, own, is_growing in zip(sets, items, growing.tolist(), strict=True):
            before = self._sets.get(number, np.empty(0, np.int64))
            self._sets[number] = np.union1d(before, np.array(own, np.int64))
            self._is_growing[number] = is_growing

        scopes, group = chunk.scope[rows], chunk.group[rows]
        item = numbers[starts[scopes] + chunk.item[rows]]
        shown, clicked = chunk.shown[rows], chunk.by_class[chunk.reward][rows]
        owners = of_policy[scopes], of_set[scopes]
        columns = (group, owners[0], item, chunk.rank[rows], shown, clicked, owners[1])
        self._places.append(np.column_stack(columns))
        as_shown = np.isin(rows, used_rows(chunk, is_sure))
        untold = np.where(as_shown, shown, np.nan)
        self._expected.append(np.where(is_told, chunk.expected[rows], untold))
        # Candidates of a list of a growing set are its own items; so it is where nobody
        # knows what else it could have shown.
        is_own = growing[scopes] | as_shown
        grown = np.column_stack((group, owners[0], item, shown))[is_own]
        self._impressions.append(grown)
        cells = chunk.cells[is_used]
        own_set = of_set[cells[:, 0]]
        lists = np.column_stack((own_set, cells[:, 1], cells[:, IMPRESSIONS]))
        self._lists.append(lists)
        is_whole = ~(growing[cells[:, 0]] | is_sure[is_used])
        self._add_sets(cells[is_whole], n_items, starts, numbers, of_policy)

    def _add_sets(
        self,
        cells: Int64,
        n_items: Int64,
        starts: Int64,
        numbers: Int64,
        policies: Int64,
    ) -> None:
        """Each list of a closed set could have shown each of its items."""
        n_each = n_items[cells[:, 0]]
        owner = np.repeat(np.arange(len(cells)), n_each)
        within = np.arange(len(owner)) - (np.cumsum(n_each) - n_each)[owner]
        scopes, group, lists = cells[owner][:, [0, 1, IMPRESSIONS]].T
        items = numbers[starts[scopes] + within]
        table = np.column_stack((group, policies[scopes], items, lists))
        self._impressions.append(table)

    def places(
        self, mixed: frozenset[int], shape: tuple[int, int, int]
    ) -> tuple[LoggedPlaces, Floats]:
        """What estimators take."""
        rows, told = np.concatenate(self._places), np.concatenate(self._impressions)
        groups, policies, items, ranks, shown, clicked, _ = rows.T
        expected = np.concatenate(self._expected)
        columns = groups, policies, items, ranks, shown, clicked
        log = LoggedPlaces(*columns, expected, mixed)
        cells = np.ravel_multi_index((told[:, 0], told[:, 1], told[:, 2]), shape)
        n_cells = int(np.prod(shape))
        summed = np.bincount(cells, told[:, 3], n_cells).astype(np.float64)
        return log, summed.reshape(shape)

    def sets(
        self, places: list[tuple[int, bytes]], n_groups: int
    ) -> Iterator[LoggedSet]:
        """Sets in the order of their numbers."""
        rows, lists = np.concatenate(self._places), np.concatenate(self._lists)
        expected = np.concatenate(self._expected)
        placed = np.where(np.isnan(expected), rows[:, 4], expected)
        order = np.argsort(rows[:, 6], kind="stable")
        ends = np.searchsorted(rows[order, 6], np.arange(len(places) + 1))
        counts = np.zeros((len(places), n_groups), np.int64)
        np.add.at(counts, (lists[:, 0], lists[:, 1]), lists[:, 2])
        for number, (query, name) in enumerate(places):
            own = order[ends[number] : ends[number + 1]]
            groups, _, items, ranks, _, clicked, _ = rows[own].T
            of_set = self._sets[number]
            table = np.zeros((len(of_set), int(ranks.max(initial=0))))
            np.add.at(table, (np.searchsorted(of_set, items), ranks - 1), placed[own])
            clicks = np.zeros(n_groups, np.int64)
            np.add.at(clicks, groups, clicked)
            yield LoggedSet(
                query,
                name,
                self._is_growing[number],
                of_set,
                counts[number],
                clicks,
                table,
            )
