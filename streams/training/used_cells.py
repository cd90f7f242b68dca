"""Cells of columns whose lists tell of relevance: those of known policies."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from models.counts.scope_record import CAPPED, CONVERTED
from streams.statistics.columns import Columns
from streams.statistics.scopes import STRIDE

IMPRESSIONS, WITHOUT_EXPOSURE = 2, 6
"""Columns of `Columns.cells`."""

Flags = npt.NDArray[np.bool_]


def used_cells(chunk: Columns) -> Flags:
    """Cells all of whose lists have known policies, [n_cells]."""
    cells = chunk.cells
    has_none = chunk.flags[cells[:, 0]] & (CAPPED | CONVERTED) > 0
    return np.asarray(~(has_none | (cells[:, WITHOUT_EXPOSURE] > 0)))


def has_known_policies(chunks: Iterable[Columns]) -> bool:
    """Whether any cell has; reads no further than to the first that does."""
    return any(used_cells(chunk).any() for chunk in chunks)


def used_rows(chunk: Columns, is_used: Flags) -> npt.NDArray[np.int64]:
    """Numbers of the rows of used cells; `is_used` [n_cells]."""
    if is_used.all():
        return np.arange(len(chunk.scope))
    used = chunk.cells[is_used, 0] * STRIDE + chunk.cells[is_used, 1]
    return np.flatnonzero(np.isin(chunk.scope * STRIDE + chunk.group, used))


def counted_scopes(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """Chunks with the scopes alone that they have cells of.

    A batch that is cut into several names all of its scopes in each.
    """
    for chunk in chunks:
        if len(chunk.cells):
            first, last = chunk.cells[[0, -1], 0].tolist()
            yield chunk.of_scopes(first, last + 1)
