"""Examination by rank, from the cells of `statistics` that changed last."""

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from models.bias.examination import estimate_examination
from models.statistics import decode_pairs
from producers.topic_reader import Record, TopicReader
from rankstream.topics import STATISTICS

N_RANKS = 10
MOST_CELLS = 4_000
"""Cells that an estimate rests on: the newest ones."""

FIRST_OFFSETS = 8_000
"""So many of the last records of each partition are read at the start."""

_decode_key = msgspec.msgpack.Decoder().decode


class PositionBias:
    """Keeps the newest cells, and estimates the position-based model from them."""

    def __init__(self) -> None:
        self._cells: dict[bytes, npt.NDArray[np.int64]] = {}
        self._sets: dict[tuple[str, bytes], int] = {}
        self._next: dict[int, int] = {}

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
            self._cells.pop(key, None)
            if not record.value or record.value[0] != 1 or key[1:6] != b"\xa4cell":
                continue
            _, query, candidate_set, _, _ = _decode_key(key)
            number = self._sets.setdefault((query, candidate_set), len(self._sets))
            counts = decode_pairs(record.value, ("item", "rank", "shown", "clicked"))
            counts[:, 0] += number << 32
            self._cells[key] = counts[counts[:, 1] <= N_RANKS]
        while len(self._cells) > MOST_CELLS:
            del self._cells[next(iter(self._cells))]

    def estimate(self) -> list[float | None]:
        """Examination of ranks 1 .. 10 relative to the first.

        Empty where no item was shown at several ranks: then clicks cannot tell where
        users look from what they like. None for ranks that nothing was shown at.
        """
        if not self._cells:
            return []
        together = np.concatenate(list(self._cells.values()))
        _, documents = np.unique(together[:, 0], return_inverse=True)
        places = np.unique(np.column_stack((documents, together[:, 1])), axis=0)
        n_ranks_of = np.bincount(places[:, 0])
        is_telling = n_ranks_of[documents] > 1
        if not is_telling.any() or not together[is_telling, 3].any():
            return []
        estimated = estimate_examination(
            documents[is_telling],
            *together[is_telling, 1:].T,
            n_ranks=N_RANKS,
            n_iterations=40,
        )
        return [None if np.isnan(each) else float(each) for each in estimated]
