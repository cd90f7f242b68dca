"""Exposure rows that a cell has no room for: sums of fixed-point placements.

A placement matrix holds P(item at rank) with axes candidates, ranks. Its fixed
point is round(p * 2^30), so that sums of rows are exact and in no order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.counts import count_tables as t
from models.counts.count_rows import mark_dirty, pair_row
from models.counts.count_tables import Int32, Int64, Tables
from models.kernels.compilation import compiled

Floats = NDArray[np.float64]


class Placements(NamedTuple):
    """Fixed-point placements of many rows, without those that are 0.

    Those of row i stand from `starts[i]` to `starts[i + 1]` in `items`, `ranks` and
    `values` [n_placements]; `starts` [n_rows + 1].
    """

    starts: Int64
    items: Int32
    ranks: Int32
    values: Int64


def fixed_point(probabilities: Floats) -> Int64:
    """round(p * 2^30) of `probabilities` [...], halves to even."""
    return np.rint(probabilities * t.EXPOSURE_ONE).astype(np.int64)


def placements_of(matrices: Floats) -> Placements:
    """Placements of `matrices` [n_rows, n_items, n_ranks] of P(item at rank)."""
    values = fixed_point(matrices)
    row, item, rank = np.nonzero(values)
    starts = np.searchsorted(row, np.arange(matrices.shape[0] + 1))
    return Placements(
        starts.astype(np.int64),
        item.astype(np.int32),
        (rank + 1).astype(np.int32),
        values[row, item, rank],
    )


def placements_of_lists(lists: list[Int32]) -> Placements:
    """Placements of `lists` [n_rows][n_shown] of items that were shown for certain."""
    lengths = np.array([len(one) for one in lists], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    ranks = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths) + 1
    return Placements(
        starts,
        np.concatenate(lists).astype(np.int32),
        ranks.astype(np.int32),
        np.full(int(starts[-1]), t.EXPOSURE_ONE, np.int64),
    )


def tail_shuffle_matrix(first: Int32, n_items: int) -> Floats:
    """P(item at rank): the first ranks fixed, one rank uniform over the rest.

    [n_items, n_ranks], of the items `first` [n_ranks - 1].
    """
    n_ranks = len(first) + 1
    matrix = np.zeros((n_items, n_ranks))
    matrix[:, -1] = 1.0 / (n_items - len(first))
    matrix[first] = 0.0
    matrix[first, np.arange(n_ranks - 1)] = 1.0
    return matrix


@compiled
def add_exposures(tables: Tables, evicted: Int32, rows: Placements) -> None:
    """Sum exposure rows into the pairs of their cells.

    `evicted` [n, 3] columns: cell, number of the row, count.
    """
    pairs, wide = tables.pairs, tables.pairs_wide
    for i in range(evicted.shape[0]):
        cell, which, count = evicted[i, 0], evicted[i, 1], int(evicted[i, 2])
        mark_dirty(tables, cell)
        row = -1
        for entry in range(rows.starts[which], rows.starts[which + 1]):
            item, rank = rows.items[entry], rows.ranks[entry]
            # Rows of the same candidates follow the same chain, once it is there.
            row = pairs[row, t.PAIR_NEXT] if row >= 0 else -1
            if (
                row < 0
                or pairs[row, t.PAIR_RANK] != rank
                or pairs[row, t.PAIR_ITEM] != item
            ):
                row = pair_row(tables, cell, item, rank)
            wide[row, t.EXPOSURE] += count * rows.values[entry]
