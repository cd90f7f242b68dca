"""Examination by rank, from the cells of `statistics` that changed last."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.counts.cells import decode_pairs
from producers.topic_reader import Record, TopicReader
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import STATISTICS
from streams.fold.statistics_keys import check_value
from streams.state_pieces import is_split

N_RANKS = 10
MOST_CELLS = 4_000
"""Cells that an estimate rests on: the newest ones."""

FIRST_OFFSETS = 8_000
"""So many of the last records of each partition are read at the start."""

_decode_key = msgspec.msgpack.Decoder().decode


class PositionBias:
    """Keeps the newest cells, and estimates the position-based model from them.

    `refused` says why cells were left out, the last time that some were; empty if none.
    """

    def __init__(self) -> None:
        self._cells: dict[bytes, npt.NDArray[np.int64]] = {}
        self._sets: dict[tuple[str, bytes], int] = {}
        self._next: dict[int, int] = {}
        self._estimated: list[dict[str, Any]] | None = []
        self.refused = ""

    def read(self, reader: TopicReader) -> None:
        """Take what is new."""
        if self._next:
            self.take(reader.records(STATISTICS, self._next))
        else:
            self.take(reader.last_records(STATISTICS, FIRST_OFFSETS))

    def take(self, records: Iterable[Record]) -> None:
        """Take records of `statistics`; those that are not whole cells pass by."""
        for record in records:
            self._next[record.partition] = record.offset + 1
            key = record.key or b""
            if self._cells.pop(key, None) is not None:
                self._estimated = None
            if not record.value or key[1:6] != b"\xa4cell" or is_split(record.value):
                continue
            try:
                check_value("cell", key, record.value)
            except SchemaRefused as error:
                self.refused = str(error)
                continue
            _, query, candidate_set, _, _ = _decode_key(key)
            number = self._sets.setdefault((query, candidate_set), len(self._sets))
            counts = decode_pairs(record.value, ("item", "rank", "shown", "clicked"))
            counts[:, 0] += number << 32
            self._cells[key] = counts[counts[:, 1] <= N_RANKS]
            self._estimated = None
        while len(self._cells) > MOST_CELLS:
            del self._cells[next(iter(self._cells))]

    def estimate(self) -> list[dict[str, Any]]:
        """Examination of ranks 1 .. 10 relative to the first; see `curve_of`.

        Computed again only where counts changed. Empty where clicks cannot tell where
        users look from what they like, as where no item was shown at several ranks.
        """
        if self._estimated is None:
            together = np.concatenate([np.empty((0, 4), int), *self._cells.values()])
            found = estimate_examination(*together.T, n_ranks=N_RANKS)
            self._estimated = curve_of(found)
        return self._estimated


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
