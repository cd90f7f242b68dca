"""Tables of counts by group, and the one way in which their rows are added."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.counts.fixed_point import SQUARED_BITS, Int64


class GroupTables(NamedTuple):
    """What groups counted: integers, keys in the first columns, group before all.

    Parameters
    ----------
    totals : [n, 7]
        group, and `models.counts.cells.TOTAL_NAMES`.
    rows : [n, 3]
        group, number of the exposure row, impressions.
    pairs : [n, 9]
        group, and `models.counts.cells.PAIR_NAMES`.
    sums : [n, 7]
        group, and `models.counts.cells.ITEM_NAMES`.
    click_pairs : [n, 6]
        group, item, rank, other item, other rank, count.
    rewards : [n, 5]
        group, class, item, rank, count.
    """

    totals: Int64
    rows: Int64
    pairs: Int64
    sums: Int64
    click_pairs: Int64
    rewards: Int64


N_KEYS = (1, 2, 3, 2, 5, 4)
"""How many of each table's columns tell its rows apart."""


def added(parts: Sequence[GroupTables]) -> GroupTables:
    """All rows together, sorted, without those that are 0."""
    together = (np.concatenate(tables) for tables in zip(*parts, strict=True))
    summed = GroupTables(
        *(summed_rows(rows, n) for rows, n in zip(together, N_KEYS, strict=True))
    )
    return summed._replace(sums=carried(summed.sums))


def without_groups(tables: GroupTables) -> GroupTables:
    """The same counts, all of group 0."""
    pooled = GroupTables(*(rows.copy() for rows in tables))
    for rows in pooled:
        rows[:, 0] = 0
    return pooled


def summed_rows(rows: Int64, n_keys: int) -> Int64:
    """Rows sorted by their first columns, the others added where those agree.

    `rows` [n, n_columns]; those that are 0 but for their keys are left out.

    Raises
    ------
    OverflowError
        If a sum does not fit 63 bits.
    """
    if not len(rows):
        return rows
    order, starts = _runs(rows[:, :n_keys])
    rows = rows[order]
    summed = rows[starts]
    if len(starts) < len(rows):
        summed[:, n_keys:] = checked_sum(rows[:, n_keys:], starts)
    is_kept = summed[:, n_keys:].any(axis=1)
    return summed if is_kept.all() else summed[is_kept]


def _runs(keys: Int64) -> tuple[Int64, Int64]:
    """An order that sorts `keys` [n, n_keys], and where each run of equals starts."""
    one = _one_key(keys)
    if one is not None:
        order = np.argsort(one, kind="stable")
        sorted_keys = one[order]
        is_start = sorted_keys[1:] != sorted_keys[:-1]
    else:
        order = np.lexsort(keys.T[::-1])
        is_start = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return order, np.concatenate(([0], np.flatnonzero(is_start) + 1))


def _one_key(keys: Int64) -> Int64 | None:
    """Keys [n] that sort as `keys` [n, n_keys] do; None where 62 bits are too few."""
    largest = keys.max(axis=0).tolist()
    n_together = math.prod(each + 1 for each in largest)
    if keys.min() < 0 or n_together >= 1 << 62:
        return None
    one = keys[:, 0]
    for column, each in zip(keys.T[1:], largest[1:], strict=True):
        one = one * (each + 1) + column
    return one


def checked_sum(rows: Int64, starts: Int64) -> Int64:
    """Sums of `rows` [n, n_columns] from each of `starts` [n_sums] to the next.

    Raises
    ------
    OverflowError
        If a sum does not fit 63 bits.
    """
    total: Int64 = np.add.reduceat(rows, starts, axis=0)
    if int(rows.max(initial=0)) * len(rows) >= 1 << 63:
        # A sum of non-negative numbers below 2^63 that wraps differs from its float.
        close = np.add.reduceat(rows.astype(np.float64), starts, axis=0)
        if (close >= 2.0**63).any():
            raise OverflowError("a merged counter must stay below 2^63; it does not")
    return total


def carried(sums: Int64) -> Int64:
    """`sums` [n, n_columns] with normal last columns: low parts below 2^40."""
    sums[:, -1] += sums[:, -2] >> SQUARED_BITS
    sums[:, -2] &= (1 << SQUARED_BITS) - 1
    return sums
