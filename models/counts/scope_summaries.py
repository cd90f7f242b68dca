"""What a scope counted, group by group or all together, from both of its forms."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from models.arrays import Floats
from models.counts.cells import CellSummary, ordered_places
from models.counts.fixed_point import Int64
from models.counts.group_tables import (
    GroupTables,
    added,
    without_groups,
)
from models.counts.list_form import list_tables, pooled
from models.counts.scope_record import ScopeRecord

Matrices = Mapping[int, Floats]
"""P(item at rank) [n_items, n_ranks] of exposure rows, by number."""


def summaries_by_group(
    scope: ScopeRecord, items: Sequence[str], matrices: Matrices, *, is_growing: bool
) -> dict[int, CellSummary]:
    """The cell of each group of a scope.

    Parameters
    ----------
    items : [n_items]
        Ids of the candidate set's items, by number.
    matrices
        Those of `rows_of_lists`.
    is_growing
        Whether the set grows, so that a list's candidates are its own items.

    Raises
    ------
    ValueError
        If an item or a matrix is missing.
    """
    _check_items(scope, len(items))
    lists = list_tables(scope.lists, matrices, _candidates(scope, items, is_growing))
    return _split(scope, items, lists, scope.general)


def summary_of_scope(
    scope: ScopeRecord, items: Sequence[str], matrices: Matrices, *, is_growing: bool
) -> CellSummary:
    """All groups of a scope together; see `summaries_by_group`."""
    _check_items(scope, len(items))
    n_candidates = _candidates(scope, items, is_growing)
    lists = list_tables(pooled(scope.lists), matrices, n_candidates)
    cells = _split(scope, items, lists, without_groups(scope.general))
    return cells.get(0) or _empty(tuple(sorted(items)))


def groups_of_scope(scope: ScopeRecord) -> list[int]:
    """Groups that counted something, sorted."""
    counted = (scope.lists.groups, scope.general.totals[:, 0])
    return [int(group) for group in np.unique(np.concatenate(counted))]


def rows_of_lists(scope: ScopeRecord) -> list[int]:
    """Numbers of the exposure rows that lists refer to."""
    rows = scope.lists.rows
    return [int(row) for row in np.unique(rows[rows >= 0])]


def _candidates(scope: ScopeRecord, items: Sequence[str], is_growing: bool) -> Int64:
    return np.full(len(scope.lists.rows), 0 if is_growing else len(items))


def _check_items(scope: ScopeRecord, n_items: int) -> None:
    lists, general = scope.lists, scope.general
    columns = (general.pairs[:, 1], general.sums[:, 1], general.rewards[:, 2])
    largest = max(int(x.max(initial=-1)) for x in (lists.items, *columns))
    longest = int(np.diff(lists.starts).max(initial=0))
    if max(largest + 1, longest) > n_items:
        raise ValueError(
            "items of a scope must be in its candidate set; got item number "
            f"{largest} and a list of {longest}, in a set of {n_items}"
        )


def _split(
    scope: ScopeRecord, items: Sequence[str], lists: GroupTables, general: GroupTables
) -> dict[int, CellSummary]:
    """Cells of both forms by group, each in canonical form."""
    order = sorted(range(len(items)), key=items.__getitem__)
    numbers = np.empty(len(items), np.int64)
    numbers[order] = np.arange(len(items))

    def number_of(_: Int64, items: Int64) -> Int64:
        return numbers[items]

    joint = added([renumbered(each, number_of) for each in (lists, general)])
    names = tuple(items[number] for number in order)
    return {
        group: cell_of(names, scope.rows, tables) for group, tables in by_group(joint)
    }


def by_group(joint: GroupTables) -> Iterator[tuple[int, list[Int64]]]:
    """Each group with its rows of each table; `joint` is what `added` gave."""
    groups = np.unique(joint.totals[:, 0])
    parts = (_parts(table, groups) for table in joint)
    for group, *tables in zip(groups.tolist(), *parts, strict=True):
        yield group, tables


def cell_of(
    items: tuple[str, ...], row_names: Sequence[bytes], tables: Sequence[Int64]
) -> CellSummary:
    """A cell in canonical form, of its tables without the group.

    Parameters
    ----------
    items
        Ids, sorted, as the tables number them.
    row_names
        Names of exposure rows, as the tables number them.
    tables : [n_rows, n_columns]
        Those of `GroupTables`.
    """
    totals, rows, pairs, sums, click_pairs, rewards = tables
    named = sorted((row_names[row], n) for row, n in rows.tolist())
    return CellSummary(
        items,
        totals[0],
        pairs,
        sums,
        click_pairs,
        tuple(name for name, _ in named),
        np.array([n for _, n in named], np.int64),
        rewards,
    )


def renumbered(
    tables: GroupTables, number_of: Callable[[Int64, Int64], Int64]
) -> GroupTables:
    """The tables with other numbers of items; places of click pairs are ordered.

    Parameters
    ----------
    number_of
        The numbers, by the first column and the number before, both [n_rows].
    """
    changed = {}
    places = {"pairs": (1,), "sums": (1,), "click_pairs": (1, 3), "rewards": (2,)}
    for name, columns in places.items():
        rows = getattr(tables, name).copy()
        for column in columns:
            rows[:, column] = number_of(rows[:, 0], rows[:, column])
        changed[name] = rows
    click_pairs = changed["click_pairs"]
    click_pairs[:, 1:] = ordered_places(click_pairs[:, 1:])
    return tables._replace(**changed)


def _parts(table: Int64, groups: Int64) -> list[Int64]:
    """Rows of each group, without its number; `table` is sorted by group."""
    ends = np.searchsorted(table[:, 0], groups, side="right")
    starts = np.searchsorted(table[:, 0], groups)
    columns = np.ascontiguousarray(table[:, 1:])
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [columns[start:end] for start, end in pairs]


def _empty(items: tuple[str, ...]) -> CellSummary:
    pairs, sums, clicks, rewards = (np.empty((0, n), np.int64) for n in (8, 6, 5, 4))
    totals, counts = np.zeros(6, np.int64), np.empty(0, np.int64)
    return CellSummary(items, totals, pairs, sums, clicks, (), counts, rewards)
