"""Examination by rank, from the scopes of `statistics` that changed last."""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.estimators.adaptivity import is_chosen_from_clicks
from producers.topic_reader import Record, TopicReader
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import STATISTICS
from streams.statistics.newest_scopes import NewestScopes
from streams.training.curves.estimated_curve import NO_INTERVAL

N_RANKS = 10
MOST_SCOPES = 4_000
"""Scopes that an estimate rests on: the newest ones."""

FIRST_OFFSETS = 8_000
"""So many of the last records of each partition are read at the start."""


class PositionBias:
    """Keeps the newest scopes, and estimates the position-based model from them.

    `refused` says why scopes were left out, the last time that some were; empty if
    none.

    Parameters
    ----------
    online
        Interventions whose lists a model that learns online may have made; see
        `streams.training.model_lists`.
    """

    def __init__(self, online: Container[str] = ()) -> None:
        self._online = online
        self._scopes = NewestScopes(MOST_SCOPES)
        self._next: dict[int, int] = {}
        self._estimated: list[dict[str, Any]] | None = []
        self.refused = ""

    def read(
        self,
        reader: TopicReader,
        seen: Callable[[Iterable[Record]], Iterable[Record]] = iter,
    ) -> None:
        """Take what is new; it passes through `seen`."""
        if self._next:
            self.take(seen(reader.records(STATISTICS, self._next)))
        else:
            self.take(seen(reader.last_records(STATISTICS, FIRST_OFFSETS)))

    def take(self, records: Iterable[Record]) -> None:
        """Take records of `statistics`; those that are not of scopes pass by."""
        for record in records:
            self._next[record.partition] = record.offset + 1
            try:
                changed = self._scopes.take(record.key or b"", record.value)
            except SchemaRefused as error:
                self.refused = str(error)
                self._estimated = None
                continue
            if changed is not None:
                self._estimated = None

    def estimate(self) -> list[dict[str, Any]]:
        """Examination of ranks 1 .. 10 relative to the first; see `curve_of`.

        Computed again only where counts changed. Empty where clicks cannot tell where
        users look from what they like, as where no item was shown at several ranks.
        Lists of policies that were chosen from clicks, any of them, are left out where
        the others tell as many ranks; else there are no intervals.
        """
        if self._estimated is None:
            counts = [*self._counts()]
            found = _estimate([table for _, table in counts])
            fixed = [table for is_chosen, table in counts if not is_chosen]
            if len(fixed) < len(counts):
                safe = _estimate(fixed)
                if safe.n_known >= found.n_known:
                    found = safe
                else:
                    found = found.without_intervals(NO_INTERVAL)
            self._estimated = curve_of(found)
            self.refused = self._scopes.refused or self.refused
        return self._estimated

    def _counts(self) -> Iterator[tuple[bool, npt.NDArray[np.int64]]]:
        """Whether a scope's policy was chosen from clicks, and what was counted of it.

        Item, rank, shown and clicked; items told apart by set.
        """
        sets: dict[tuple[Any, ...], int] = {}
        for name, pairs in self._scopes.pairs():
            # A closed set numbers its items alike in each era.
            era = name.era if name.is_growing else None
            place = (name.query, name.candidate_set, era)
            counts = pairs[(pairs[:, 1] <= N_RANKS) & (pairs[:, 2] > 0)]
            counts[:, 0] += sets.setdefault(place, len(sets)) << 32
            yield is_chosen_from_clicks(name.intervention, self._online), counts


def _estimate(tables: Iterable[npt.NDArray[np.int64]]) -> ExaminationCurve:
    together = np.concatenate([np.empty((0, 4), np.int64), *tables])
    return estimate_examination(*together.T, n_ranks=N_RANKS)


def curve_of(curve: ExaminationCurve) -> list[dict[str, Any]]:
    """Ratio, ends of its interval and why they are None, rank by rank.

    Empty where no rank has a ratio.
    """
    if np.isnan(curve.ratios).all():
        return []
    columns = zip(curve.ratios, curve.low, curve.high, curve.reasons, strict=True)
    return [
        {
            "ratio": None if np.isnan(ratio) else float(ratio),
            "interval": None if np.isnan(low) else [float(low), float(high)],
            "reason": reason,
        }
        for ratio, low, high, reason in columns
    ]
