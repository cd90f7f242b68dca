"""Counts of clicks by document and rank, followed while the demonstration runs."""

import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.counts.cells import decode_cell
from streams.fold.statistics_keys import decode, decode_set
from streams.local import LocalPipeline


class ExaminationCounts:
    """Shown and clicked by (query, document) and rank, from the statistics' state."""

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._items: dict[tuple[str, bytes], list[str]] = {}
        self._cells: dict[bytes, npt.NDArray[np.int64]] = {}
        self._document_of: dict[tuple[str, str], int] = {}

    def take(self, pipeline: LocalPipeline) -> None:
        """Take what changed in the statistics since the last time."""
        for change in pipeline.statistics():
            if change.value is None:
                self._cells.pop(change.key, None)
                continue
            kind, *rest = decode(change.key)
            if kind == "set":
                self._items[rest[0], rest[1]] = decode_set(change.value)
            elif kind == "cell":
                items = self._items[rest[0], rest[1]]
                cell = decode_cell(change.value, items)
                rows = [
                    self._document_of.setdefault(
                        (rest[0], item), len(self._document_of)
                    )
                    for item in cell.items
                ]
                documents = np.array(rows, np.int64)[cell.column("item")]
                columns = ("rank", "shown", "clicked")
                counts = [documents, *(cell.column(name) for name in columns)]
                self._cells[change.key] = np.stack(counts)

    def estimate(self) -> ExaminationCurve | None:
        """Examination by rank, relative to the first."""
        if not self._cells:
            return None
        documents, ranks, shown, clicked = np.concatenate(
            list(self._cells.values()), axis=1
        )
        return estimate_examination(
            documents, ranks, shown, clicked, n_ranks=self._n_ranks
        )
