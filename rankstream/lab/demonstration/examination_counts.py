"""Counts of clicks by document and rank, followed while the demonstration runs."""

import numpy as np

from models.bias.examination import ExaminationCurve, estimate_examination
from streams.local import LocalPipeline
from streams.statistics.keys import decode, decode_set
from streams.statistics.newest_scopes import NewestScopes


class ExaminationCounts:
    """Shown and clicked by (query, document) and rank, from the statistics' state."""

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._items: dict[tuple[str, bytes, int], list[str]] = {}
        self._scopes = NewestScopes()
        self._document_of: dict[tuple[str, str], int] = {}

    def take(self, pipeline: LocalPipeline) -> None:
        """Take what changed in the statistics since the last time."""
        for change in pipeline.statistics():
            if self._scopes.take(change.key, change.value) is None and change.value:
                kind, *rest = decode(change.key)
                if kind == "set":
                    query, candidate_set, era = rest
                    items = decode_set(change.value)
                    self._items[query, candidate_set, era] = items

    def estimate(self) -> ExaminationCurve | None:
        """Examination by rank, relative to the first."""
        tables = []
        for name, pairs in self._scopes.pairs():
            items = self._items[name.query, name.candidate_set, name.era]
            rows = [
                self._document_of.setdefault((name.query, item), len(self._document_of))
                for item in items
            ]
            documents = np.array(rows, np.int64)[pairs[:, 0]]
            tables.append(np.column_stack((documents, pairs[:, 1:])))
        if not tables:
            return None
        return estimate_examination(*np.concatenate(tables).T, n_ranks=self._n_ranks)
