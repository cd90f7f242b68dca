"""Counts of clicks by document and rank, followed while the demonstration runs."""

import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from streams.fold.scope_pairs import ScopePairs
from streams.fold.statistics_keys import ScopeName, decode, decode_set
from streams.local import LocalPipeline


class ExaminationCounts:
    """Shown and clicked by (query, document) and rank, from the statistics' state."""

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._items: dict[tuple[str, bytes, int], list[str]] = {}
        self._scopes = ScopePairs()
        self._counts: dict[ScopeName, npt.NDArray[np.int64]] = {}
        self._document_of: dict[tuple[str, str], int] = {}

    def take(self, pipeline: LocalPipeline) -> None:
        """Take what changed in the statistics since the last time."""
        changed: set[ScopeName] = set()
        for change in pipeline.statistics():
            name = self._scopes.take(change.key, change.value)
            if name is not None:
                changed.add(name)
            elif change.value:
                kind, *rest = decode(change.key)
                if kind == "set":
                    query, candidate_set, era = rest
                    items = decode_set(change.value)
                    self._items[query, candidate_set, era] = items
        for name in changed:
            self._count(name)

    def _count(self, name: ScopeName) -> None:
        self._counts.pop(name, None)
        pairs = self._scopes.pairs(name)
        if pairs is not None:
            items = self._items[name.query, name.candidate_set, name.era]
            rows = [
                self._document_of.setdefault((name.query, item), len(self._document_of))
                for item in items
            ]
            documents = np.array(rows, np.int64)[pairs[:, 0]]
            self._counts[name] = np.stack((documents, *pairs[:, 1:4].T))

    def estimate(self) -> ExaminationCurve | None:
        """Examination by rank, relative to the first."""
        if not self._counts:
            return None
        documents, ranks, shown, clicked = np.concatenate(
            list(self._counts.values()), axis=1
        )
        return estimate_examination(
            documents, ranks, shown, clicked, n_ranks=self._n_ranks
        )
