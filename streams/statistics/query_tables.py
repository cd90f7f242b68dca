"""Columns as tables of queries: places, impressions and lists of their items."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.counts.fixed_point import Int64
from models.estimators.choice import Unknown
from models.estimators.click_log import ClickLog
from streams.statistics.columns import IMPRESSIONS, Columns
from streams.statistics.keys import ScopeName

PAIRS_AT_ONCE = 1 << 19
"""Of a cell and an item that its lists could have shown, added up together."""


class ScopesOfQueries(NamedTuple):
    """Scopes in the order of columns; one that these cut in two comes twice.

    Parameters
    ----------
    names, owners, items : [n_scopes]
        Which they are, numbers of their queries, and of the items of their candidate
        sets among those of the query.
    """

    names: list[ScopeName]
    owners: list[int]
    items: list[Int64]


class QueryTables:
    """Rows of columns with the numbers of what they are of, and sums of impressions.

    Parameters
    ----------
    shape
        Groups, policies and items.
    group_of : [n_groups of the statistics]
        See `streams.statistics.logged_queries.QueryGatherer`.
    unknown
        Likewise.
    """

    def __init__(
        self, shape: tuple[int, int, int], group_of: Int64, unknown: Unknown
    ) -> None:
        self._shape = shape
        self._group_of = group_of
        self._unknown = unknown
        self._n_known = self._n_unknown = self._n_beside = 0
        self._n_as_shown = self._n_left_out = 0
        # Group, policy, item, rank, shown, clicked, scope; and what was expected.
        self._places: list[tuple[Int64, ...]] = [(np.empty(0, np.int64),) * 7]
        self._expected: list[Floats] = [np.empty(0)]
        self._impressions = np.zeros(int(np.prod(shape)))
        self._lists: list[Int64] = [np.empty((0, 4), np.int64)]
        self._scopes = ScopesOfQueries([], [], [])

    def take(
        self,
        chunk: Columns,
        owners: list[int],
        items: list[Int64],
        of_scopes: tuple[Int64, Int64],
    ) -> None:
        """Add columns.

        Parameters
        ----------
        owners : [n_scopes]
            Number of the query of each scope.
        items : [n_scopes]
            Numbers of the items of each, among those of its query.
        of_scopes : [n_scopes]
            The policy of each, and the first item of its query.
        """
        policies, firsts = of_scopes
        n_before = len(self._scopes.names)
        self._scopes.names.extend(chunk.names)
        self._scopes.owners.extend(owners)
        self._scopes.items.extend(items)
        scopes, n_lists = chunk.cells[:, 0], chunk.cells[:, IMPRESSIONS]
        if (last := chunk.cells[:, 1].max(initial=-1)) >= len(self._group_of):
            raise ValueError(f"`statistics` is damaged: no group is {last}; count anew")
        groups, is_known = self._group_of[chunk.cells[:, 1]], chunk.has_policies()
        is_used = groups >= 0
        is_told, n_placed = chunk.tells_policies(), chunk.n_placed()
        self._n_known += int(n_placed[is_used & is_told].sum())
        self._n_unknown += int((n_lists - n_placed * is_told)[is_used].sum())
        self._n_beside += int(n_placed[is_used & ~is_told].sum())
        is_joined = is_told & ~is_known & (self._unknown is Unknown.JOINED)
        if self._unknown is Unknown.LEFT_OUT:
            self._n_left_out += int(n_lists[is_used & ~is_known].sum())
            is_used &= is_known
        elif self._unknown is not Unknown.KEPT:
            n_own = n_lists - n_placed * (is_known | is_joined)
            self._n_as_shown += int(n_own[is_used].sum())
        growing = np.array([name.is_growing for name in chunk.names], np.bool_)
        # Candidates of a list of a growing set are its own items; so it is where nobody
        # knows what else it could have shown.
        is_own = growing[scopes]
        if self._unknown in (Unknown.AS_SHOWN, Unknown.JOINED):
            is_own = is_own | ~(is_known | is_joined)
        lists = scopes + n_before, groups, policies[scopes], n_lists
        self._lists.append(np.column_stack(lists)[is_used])
        n_items = np.array([len(own) for own in items], np.int64)
        starts = np.cumsum(n_items) - n_items
        numbers = np.concatenate(items) + np.repeat(firsts, n_items)
        is_whole = is_used & ~is_own
        n_whole = np.where(is_joined, n_placed, n_lists)
        self._add_sets(
            (*lists[:3], n_whole), is_whole, scopes, n_items, (starts, numbers)
        )
        of_cells = is_used, is_known, is_own, is_joined
        self._take_rows(chunk, lists, of_cells, (starts, numbers))

    def _take_rows(
        self,
        chunk: Columns,
        lists: tuple[Int64, ...],
        of_cells: tuple[npt.NDArray[np.bool_], ...],
        of_items: tuple[Int64, Int64],
    ) -> None:
        is_used, is_known, is_own, is_joined = of_cells
        cells = chunk.cell_of_rows()
        rows = slice(None) if is_used.all() else np.flatnonzero(is_used[cells])
        cells = cells[rows]
        shown, expected = chunk.shown[rows], chunk.expected[rows]
        unplaced = np.where(is_joined[cells], chunk.unplaced[rows], 0)
        if not is_known.all():
            is_kept = self._unknown is Unknown.KEPT
            untold = np.full(len(shown), np.nan) if is_kept else shown
            is_placed = (is_known | is_joined)[cells]
            expected = np.where(is_placed, expected + unplaced, untold)
        starts, numbers = of_items
        item = numbers[starts[chunk.scope[rows]] + chunk.item[rows]]
        scopes, groups, policies, _ = (each[cells] for each in lists)
        clicked = chunk.by_class[chunk.reward, rows]
        rank = chunk.rank[rows]
        self._places.append((groups, policies, item, rank, shown, clicked, scopes))
        self._expected.append(expected)
        if is_own.any():
            own = is_own[cells]
            self._add(groups[own], policies[own], item[own], shown[own])
        if is_joined.any():
            self._add(groups, policies, item, np.where(is_own[cells], 0, unplaced))

    def _add(self, groups: Int64, policies: Int64, items: Int64, lists: Int64) -> None:
        at = np.ravel_multi_index((groups, policies, items), self._shape)
        np.add.at(self._impressions, at, lists.astype(np.float64))

    def _add_sets(
        self,
        lists: tuple[Int64, ...],
        is_whole: npt.NDArray[np.bool_],
        scopes: Int64,
        n_items: Int64,
        of_items: tuple[Int64, Int64],
    ) -> None:
        """Each list of a closed set could have shown each of its items."""
        cells = np.flatnonzero(is_whole)
        scopes, (starts, numbers) = scopes[cells], of_items
        after = np.concatenate(([0], np.cumsum(n_items[scopes])))
        first = 0
        while first < len(cells):
            end = int(np.searchsorted(after, after[first] + PAIRS_AT_ONCE, "right")) - 1
            end = max(end, first + 1)
            owner = np.repeat(np.arange(first, end), n_items[scopes[first:end]])
            within = np.arange(len(owner)) + after[first] - after[owner]
            _, groups, policies, n_lists = (each[cells[owner]] for each in lists)
            items = numbers[starts[scopes[owner]] + within]
            self._add(groups, policies, items, n_lists)
            first = end

    def found(self, mixed: frozenset[int]) -> tuple[Any, ...]:
        """What `LoggedQueries` has of all of it, from its `log` on."""
        *columns, scopes = map(np.concatenate, zip(*self._places, strict=True))
        log = ClickLog._make((*columns, np.concatenate(self._expected), mixed))
        return (
            log,
            self._impressions.reshape(self._shape),
            np.concatenate(self._lists),
            self._n_known,
            self._n_unknown,
            self._n_left_out,
            self._n_as_shown,
            self._scopes,
            scopes,
            self._n_beside,
        )
