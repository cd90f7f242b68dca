"""Cells as an export writes them: what was counted, and what was expected."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from models.counts.cells import CellSummary
from models.counts.scope_record import CONVERTED
from streams.statistics.columns import Columns
from streams.statistics.keys import Row
from streams.statistics.reader import CellName, Statistics
from streams.statistics.scopes import STRIDE, ScopeBatch
from streams.statistics.summaries import summaries_of_batch


class ExportedCell(NamedTuple):
    """A cell with what its rows need.

    Parameters
    ----------
    name
        Which cell.
    cell
        What it counted.
    expected
        Expected times by number of the item (as in `cell`) and rank, sorted.
    entries
        Entries of the batch's lists that are the cell's.
    batch, scope
        Where it is from, and the number of its scope there.
    classes
        Names of reward classes by number.
    """

    name: CellName
    cell: CellSummary
    expected: dict[tuple[int, int], float]
    entries: list[int]
    batch: ScopeBatch
    scope: int
    classes: tuple[str, ...]

    @property
    def flags(self) -> int:
        """Of its scope."""
        return int(self.batch.heads[self.scope, 0])

    @property
    def is_converted(self) -> bool:
        """Whether an earlier release counted it, so that exposures are refused."""
        return bool(self.flags & CONVERTED)

    @property
    def last_ms(self) -> int:
        """When its scope was last shown, epoch milliseconds."""
        return int(self.batch.heads[self.scope, 1])

    @property
    def items(self) -> tuple[str, ...]:
        """Candidates of its scope, by number in the set."""
        return self.batch.items[self.scope]

    def row(self, name: bytes) -> Row:
        """An exposure row of its scope."""
        first, end = np.searchsorted(
            self.batch.row_scopes, (self.scope, self.scope + 1)
        )
        return self.batch.rows[self.batch.row_names.index(name, int(first), int(end))]


def exported_cells(
    statistics: Statistics, on_columns: Callable[[Columns], None] = lambda _: None
) -> Iterator[ExportedCell]:
    """All cells, sorted; `on_columns` is shown the columns, which come in between."""
    classes = statistics.counted[0].classes if statistics.counted else ()
    reader = statistics.column_reader()
    for batch in statistics.batches():
        groups = batch.lists.groups
        order = np.argsort(groups, kind="stable")
        sorted_groups = groups[order]
        number = {name: i for i, name in enumerate(batch.names)}
        expected = _expected(_shown(reader.of_batch(batch), on_columns))
        for name, group, cell in summaries_of_batch(batch):
            scope = number[name]
            own = scope * STRIDE + group
            first, end = np.searchsorted(sorted_groups, (own, own + 1))
            entries = order[first:end].tolist()
            yield ExportedCell(
                CellName(*name, group),
                cell,
                next(expected),
                entries,
                batch,
                scope,
                classes,
            )


def _shown(
    chunks: Iterable[Columns], on_columns: Callable[[Columns], None]
) -> Iterator[Columns]:
    for chunk in chunks:
        on_columns(chunk)
        yield chunk


def _expected(chunks: Iterable[Columns]) -> Iterator[dict[tuple[int, int], float]]:
    """What each cell is expected to show, cell after cell."""
    for chunk in chunks:
        cells = chunk.cells[:, 0] * STRIDE + chunk.cells[:, 1]
        rows = chunk.scope * STRIDE + chunk.group
        starts = np.searchsorted(rows, cells).tolist()
        ends = np.searchsorted(rows, cells, side="right").tolist()
        for start, end in zip(starts, ends, strict=True):
            of_cell = slice(start, end)
            columns = (chunk.item, chunk.rank, chunk.expected)
            items, ranks, sums = (column[of_cell].tolist() for column in columns)
            places = zip(items, ranks, strict=True)
            yield {p: n for p, n in zip(places, sums, strict=True) if n}
