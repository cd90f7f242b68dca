"""What scopes of a batch add up to: totals, groups, whole cells, and placements."""

from collections.abc import Iterator

import numpy as np

from models.arrays import Floats
from models.counts.cells import CellSummary
from models.counts.fixed_point import Int64
from models.counts.group_tables import added
from models.counts.list_form import list_tables
from models.counts.placements import DETERMINISTIC, TAIL_SHUFFLE
from models.counts.scope_summaries import by_group, cell_of, renumbered
from streams.statistics.keys import ScopeName
from streams.statistics.placed_rows import placement_in_set
from streams.statistics.scopes import STRIDE, ScopeBatch

EXPOSURE = 8
"""Column of pairs in the general form: exposures of placements that are not kept."""


def impressions_and_clicks(batch: ScopeBatch) -> Iterator[tuple[ScopeName, int, int]]:
    """Totals of each scope, all groups together."""
    lists, totals = batch.lists, batch.general.totals
    n_clicked = np.bitwise_count(lists.masks).astype(np.int64) * lists.mask_counts
    clicked_in = lists.groups[lists.mask_owners] // STRIDE
    general = totals[:, 0] // STRIDE
    n = len(batch.names)
    shown = _summed(lists.groups // STRIDE, lists.shown, n)
    shown += _summed(general, totals[:, 1], n)
    clicked = _summed(clicked_in, n_clicked, n) + _summed(general, totals[:, 3], n)
    yield from zip(batch.names, shown.tolist(), clicked.tolist(), strict=True)


def cells_of(batch: ScopeBatch) -> Iterator[tuple[ScopeName, int]]:
    """Scope and group of all cells, sorted."""
    cells = np.unique(np.concatenate((batch.lists.groups, batch.general.totals[:, 0])))
    for cell in cells.tolist():
        scope, group = divmod(cell, STRIDE)
        yield batch.names[scope], group


def summaries_of_batch(
    batch: ScopeBatch,
) -> Iterator[tuple[ScopeName, int, CellSummary]]:
    """Scope, group and summary of all cells, sorted by the first two."""
    by_id = batch.sorted_items()
    lists = list_tables(batch.lists, _matrices(batch), batch.n_candidates())

    def number_of(groups: Int64, items: Int64) -> Int64:
        return by_id.renumbered(groups // STRIDE, items)

    joint = added([renumbered(each, number_of) for each in (lists, batch.general)])
    for cell, tables in by_group(joint):
        scope, group = divmod(cell, STRIDE)
        items = by_id.items[scope]
        yield batch.names[scope], group, cell_of(items, batch.row_names, tables)


def _summed(owners: Int64, numbers: Int64, n: int) -> Int64:
    sums = np.zeros(n, np.int64)
    np.add.at(sums, owners, numbers)
    return sums


def _matrices(batch: ScopeBatch) -> dict[int, Floats]:
    """P(item at rank) of the rows that lists refer to, by number."""
    rows = np.unique(batch.lists.rows[batch.lists.rows >= 0]).tolist()
    scopes = batch.row_scopes[rows].tolist()
    return {
        row: placement_in_set(batch.rows[row], batch.items[scope])
        for row, scope in zip(rows, scopes, strict=True)
    }


def mixed_scopes(batch: ScopeBatch) -> frozenset[ScopeName]:
    """Scopes of a batch with more than one placement.

    An exposure row is one, and so is a list of fixed ranks; lists of a shuffled last
    rank share theirs where they agree above it. Exposures that were added up, beyond
    what is kept apart, count as several. Clicks are counted of a scope's groups: which
    of several placements one came under cannot be told.
    """
    n = np.bincount(batch.row_scopes, minlength=len(batch.names))
    lists, scopes = batch.lists, batch.list_scopes
    is_fixed = lists.rows == -1 - DETERMINISTIC
    n = n + np.bincount(scopes[is_fixed], minlength=len(n))
    has_candidates = batch.n_candidates() > 0
    heads = set()
    for number in np.flatnonzero(lists.rows == -1 - TAIL_SHUFFLE).tolist():
        first, end = lists.starts[number : number + 2].tolist()
        end -= int(has_candidates[number])
        heads.add((int(scopes[number]), tuple(lists.items[first:end].tolist())))
    for scope, _ in heads:
        n[scope] += 1
    pairs = batch.general.pairs
    n[np.unique(pairs[pairs[:, EXPOSURE] > 0, 0] // STRIDE)] += 2
    return frozenset(batch.names[i] for i in np.flatnonzero(n > 1).tolist())
