"""Sinks of events, and offsets of what was sent, by which dead letters are known."""

from bisect import bisect_right
from typing import Protocol


class EventSink(Protocol):
    """Takes events for their topics; see `producers.event_producer.EventProducer`."""

    def send(
        self,
        kind: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """Take one event."""

    def send_raw(self, kind: str, value: bytes) -> None:
        """Take bytes that may be no event."""


class EventTooLarge(ValueError):
    """An event is larger than ingestion accepts; it was not sent.

    Operator action: send fewer candidates or features with it.
    """


MAX_RUNS = 100_000
"""Runs of offsets of a partition that are kept apart."""


class RecordPosition(Protocol):
    """Where a broker put a record."""

    @property
    def partition(self) -> int:
        """Of its topic."""

    @property
    def offset(self) -> int:
        """In its partition; below 0 where the broker did not say."""


class SentRecords:
    """Offsets of records, by input topic and partition.

    Others may send too, so the records of one sender lie in runs. Beyond `MAX_RUNS` of
    them in a partition, records of others between two runs are taken for its own.

    Attributes
    ----------
    n_unplaced
        Records that a broker has, but did not say where.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        self.n_unplaced = 0

    def add(self, topic: str, place: RecordPosition) -> None:
        """Note a record; those of a partition come in the order of their offsets."""
        if place.offset < 0:
            self.n_unplaced += 1
            return
        starts, ends = self._runs.setdefault((topic, place.partition), ([], []))
        if ends and (place.offset == ends[-1] or len(ends) >= MAX_RUNS):
            ends[-1] = max(ends[-1], place.offset + 1)
        else:
            starts.append(place.offset)
            ends.append(place.offset + 1)

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record there is one of these."""
        starts, ends = self._runs.get((topic, partition), ([], []))
        run = bisect_right(starts, offset) - 1
        return run >= 0 and offset < ends[run]

    def n_from(self, topic: str, partition: int, offset: int) -> int:
        """How many of them stand at this offset of a partition or beyond."""
        starts, ends = self._runs.get((topic, partition), ([], []))
        first = max(0, bisect_right(starts, offset) - 1)
        return sum(
            max(0, end - max(start, offset))
            for start, end in zip(starts[first:], ends[first:], strict=True)
        )

    def starts(self) -> dict[tuple[str, int], int]:
        """The offset of the first record of each partition that has any."""
        return {place: starts[0] for place, (starts, _) in self._runs.items()}

    def ends(self) -> dict[tuple[str, int], int]:
        """The offset after the last record of each partition that has any."""
        return {place: ends[-1] for place, (_, ends) in self._runs.items()}
