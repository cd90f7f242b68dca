"""Records of `events` that are being filled, one for each partition."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from rankstream.wire.events import SCHEMA
from rankstream.wire.topics import BATCH_BYTES, EVENTS
from streams.native.input_events import Bytes, Int64, gather
from streams.stage import Output

_encode = msgspec.msgpack.Encoder().encode


class EventBatches:
    """What one source writes to `events`.

    Parameters
    ----------
    source
        Its number among all sources.

    Attributes
    ----------
    sequences : [n_partitions]
        Records that were written to each partition.
    """

    def __init__(self, source: int, n_partitions: int) -> None:
        self.sequences = [0] * n_partitions
        self._source = source
        self._pieces: list[list[Any]] = [[] for _ in range(n_partitions)]
        self._lengths = [0] * n_partitions
        self._sizes = [0] * n_partitions

    def holds(self, partition: int) -> bool:
        """Whether something waits for it."""
        return self._lengths[partition] > 0

    def is_beyond(self, partition: int) -> bool:
        """Whether what waits for it is one event that fills a record."""
        return self._sizes[partition] > BATCH_BYTES

    def put(
        self, partition: int, packed: Any, *, n_elements: int = 1, size: int = 0
    ) -> None:
        """Let elements, as bytes or a view, wait for a partition."""
        self._pieces[partition].append(packed)
        self._lengths[partition] += n_elements
        self._sizes[partition] += size

    def add(self, partition: int, element: bytes, size: int) -> Output | None:
        """Let an event wait; the record that has no room for it, if there is one."""
        is_full = self._sizes[partition] + size > BATCH_BYTES
        full = self.flushed(partition) if is_full else None
        self.put(partition, element, size=size)
        return full

    def add_together(
        self, data: Bytes, bounds: Int64, partitions: Int64, sizes: Int64
    ) -> list[tuple[int, Output]]:
        """Let events wait as `add` does for one after the other.

        Parameters
        ----------
        data : [n_bytes]
        bounds : [n, 2]
            Where the element of each begins and ends in it.
        partitions, sizes : [n]
            Where each goes, below 0 for nowhere, and its bytes at most.

        Returns
        -------
        list
            Records that were full, each behind the number of the event for which it
            had no room.
        """
        order = np.argsort(partitions, kind="stable")
        order = order[np.searchsorted(partitions[order], 0) :]
        own = bounds[order]
        gathered = memoryview(gather(data, own).data)
        ends = np.concatenate(([0], np.cumsum(own[:, 1] - own[:, 0]))).tolist()
        targets = np.arange(len(self.sequences) + 1)
        firsts = np.searchsorted(partitions[order], targets).tolist()
        written = []
        for partition, (base, last) in enumerate(itertools.pairwise(firsts)):
            counted = np.cumsum(sizes[order[base:last]])
            for is_full, first, end, size in self._runs(partition, counted):
                full = self.flushed(partition) if is_full else None
                if full is not None:
                    written.append((int(order[base + first]), full))
                piece = gathered[ends[base + first] : ends[base + end]]
                self.put(partition, piece, n_elements=end - first, size=size)
        return written

    def flushed(self, partition: int) -> Output | None:
        """The record of all that waits for a partition, if anything does."""
        n = self._lengths[partition]
        if not n:
            return None
        self.sequences[partition] += 1
        head = map(_encode, (SCHEMA, self._source, self.sequences[partition]))
        value = b"".join([b"\x94", *head, _array_head(n), *self._pieces[partition]])
        self._pieces[partition] = []
        self._lengths[partition] = self._sizes[partition] = 0
        return Output(EVENTS, partition, None, value)

    def _runs(
        self, partition: int, counted: Int64
    ) -> Iterator[tuple[bool, int, int, int]]:
        """Where events are parted: whether a record is full, first, end, bytes.

        `counted` [n] are the bytes of each event and of all before it.
        """
        n, first, before = len(counted), 0, 0
        room = BATCH_BYTES - self._sizes[partition]
        is_full = n > 0 and int(counted[0]) > room
        while first < n:
            room = BATCH_BYTES if is_full else room
            # What is larger than a record has one nevertheless.
            end = max(int(np.searchsorted(counted, before + room, "right")), first + 1)
            yield is_full, first, end, int(counted[end - 1]) - before
            first, before, is_full = end, int(counted[end - 1]), True


def _array_head(length: int) -> bytes:
    """The head of an array in MessagePack, as short as it goes."""
    if length < 16:
        return bytes([0x90 | length])
    n_bytes = 2 if length < 1 << 16 else 4
    return bytes([0xDC if n_bytes == 2 else 0xDD]) + length.to_bytes(n_bytes, "big")
