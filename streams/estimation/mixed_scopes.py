"""Scopes whose lists had other probabilities from one to the next.

Clicks are counted of a scope's groups, not of its exposure rows: which of several
placements a click came under cannot be told from columns.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from models.counts.placements import DETERMINISTIC, TAIL_SHUFFLE
from streams.statistics.columns import ColumnReader, Columns
from streams.statistics.keys import ScopeName
from streams.statistics.scopes import STRIDE, ScopeBatch

EXPOSURE = 8
"""Column of pairs in the general form: exposures of placements that are not kept."""


class MarkedColumns(NamedTuple):
    """Columns, and those of their scopes that had several placements."""

    columns: Columns
    mixed: frozenset[ScopeName]


def marked_columns(
    batches: Iterator[ScopeBatch], reader: ColumnReader
) -> Iterator[MarkedColumns]:
    """Columns of batches, in their order.

    Raises
    ------
    ValueError
        As `streams.statistics.columns.ColumnReader.read`.
    """
    for batch in batches:
        mixed = mixed_scopes(batch)
        for chunk in reader.of_batch(batch):
            yield MarkedColumns(chunk, mixed)


def mixed_scopes(batch: ScopeBatch) -> frozenset[ScopeName]:
    """Scopes of a batch with more than one placement.

    An exposure row is one, and so is a list of fixed ranks; lists of a shuffled last
    rank share theirs where they agree above it. Exposures that were added up, beyond
    what is kept apart, count as several.
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
