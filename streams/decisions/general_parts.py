"""Which policy logged what a scope counts by item and rank, where it was only one.

Such counts add up lists. Propensities are those of a list's own policy, so that lists
of several can be used only where they are kept apart; the sums tell whether they are of
one. A *part* is the groups of one side of a scope: those of training, or of selection.
What a part is used for depends on no click of another one.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags
from models.counts.fixed_point import EXPOSURE_ONE, Int64
from models.counts.group_tables import GroupTables, summed_rows
from streams.decisions.logging_policies import Placements, joined

IMPRESSIONS, WITHOUT_EXPOSURE, EXPOSURE = 1, 5, 8
"""Columns of totals, and of pairs."""

LEAST_SHUFFLED = 3
"""Items for a last rank that must have been shuffled."""


class GeneralParts(NamedTuple):
    """Parts that counted lists by item and rank.

    Parameters
    ----------
    parts, lists : [n_parts]
        Numbers, rising, and how many lists.
    rows : [n_parts]
        The exposure row of all its lists; -1 of others.
    is_unknown : [n_parts]
        Whether all of its lists are of unknown policies.
    is_told : [n_parts]
        Whether all of its lists are of one known policy.
    listed : [n_listed]
        Those of `is_told` whose policy follows from a list: where in `parts`.
    n_ranks : [n_listed]
        Ranks of that list.
    placed
        Where these put items, as the scopes number them.
    """

    parts: Int64
    lists: Int64
    rows: Int64
    is_unknown: Flags
    is_told: Flags
    listed: Int64
    n_ranks: Int64
    placed: Placements


def general_parts(tables: GroupTables, parts: Int64, n_items: Int64) -> GeneralParts:
    """The parts of the general form of a batch.

    Parameters
    ----------
    tables
        With totals sorted by cell, one row for each.
    parts : [n_cells]
        The part of each row of totals; -1 where it counts for nothing.
    n_items : [n_scopes]
        Items of the candidate set of each.
    """
    used = parts >= 0
    found, which = np.unique(parts[used], return_inverse=True)
    totals = tables.totals[used]
    lists, unknown = (
        np.bincount(which, totals[:, column], len(found)).astype(np.int64)
        for column in (IMPRESSIONS, WITHOUT_EXPOSURE)
    )
    rows = _of_parts(tables.rows, tables.totals, parts, (1,), 2)
    at_rows = np.searchsorted(found, rows[:, 0])
    n_rows = np.bincount(at_rows, minlength=len(found))
    one_row = np.full(len(found), -1)
    one_row[at_rows] = rows[:, 1]
    exposures = _of_parts(tables.pairs, tables.totals, parts, (1, 2), EXPOSURE)
    n_exposed = np.bincount(np.searchsorted(found, exposures[:, 0]), None, len(found))
    # Lists of no row and of a known policy have exposures, and those of unknown ones
    # leave the sums of exposures smaller than those of one list would be.
    is_of_row = (unknown == 0) & (n_rows == 1) & (n_exposed == 0)
    may_be_listed = (n_rows == 0) & (n_exposed > 0)
    listed: list[int] = []
    n_ranks: list[int] = []
    placed: list[Placements] = []
    starts = np.cumsum(n_exposed) - n_exposed
    for number in np.flatnonzero(may_be_listed).tolist():
        own = exposures[starts[number] : starts[number] + n_exposed[number], 1:]
        places = _one_list(own, int(lists[number]), int(n_items[found[number] // 2]))
        if places is not None:
            placed.append(places)
            listed.append(number)
            n_ranks.append(int(own[:, 1].max()))
    is_told = is_of_row.copy()
    is_told[listed] = True
    return GeneralParts(
        found,
        lists,
        np.where(is_of_row, one_row, -1),
        np.asarray(unknown == lists),
        is_told,
        np.array(listed, np.int64),
        np.array(n_ranks, np.int64),
        joined(placed, [1] * len(placed)),
    )


def _of_parts(
    table: Int64, totals: Int64, parts: Int64, keys: tuple[int, ...], column: int
) -> Int64:
    """Sums of a column by part and keys, sorted, without those that are 0."""
    owners = parts[np.searchsorted(totals[:, 0], table[:, 0])]
    kept = owners >= 0
    columns = (table[kept, key] for key in (*keys, column))
    return summed_rows(np.column_stack((owners[kept], *columns)), 1 + len(keys))


def _one_list(own: Int64, lists: int, n_items: int) -> Placements | None:
    """Where all lists put items, if exposures can only be those of one list.

    Either all ranks are sure, or all but the last, which any other item of the set has
    alike. If those are two, two lists that were shown as often would look the same.
    `own` [n, 3] is item, rank, and the sum of exposures.
    """
    items, ranks, exposures = own.T
    is_sure = exposures == lists * EXPOSURE_ONE
    above = np.sort(ranks[is_sure])
    if not (above == np.arange(1, len(above) + 1)).all():
        return None
    chances, n_drawn = np.ones(len(own)), n_items - len(above)
    if not is_sure.all():
        drawn = exposures == lists * round(EXPOSURE_ONE / max(n_drawn, 1))
        is_last = drawn & (ranks == len(above) + 1)
        if n_drawn < LEAST_SHUFFLED or not (is_last | is_sure).all():
            return None
        chances[is_last] = 1.0 / n_drawn
    return Placements(np.zeros(len(own), np.int64), items, ranks, chances)
