"""The time that the target has reached, from the frontiers in its canonical log."""

from producers.topic_reader import Record, TopicReader
from rankstream.wire.events import ACTIVE, Frontier, decode_event_record
from rankstream.wire.topics import EVENTS

TAIL_RECORDS = 500
"""Last records of each partition of `events` in which frontiers are looked for."""


def reached_ms(reader: TopicReader) -> int | None:
    """The time that the target has reached: what closed before it would be late.

    The least frontier of the sources that are being read, else the largest, of those
    found at the end of the canonical log; None where there is none.
    """
    known = [each for each in _frontiers(reader) if each.at_ms >= 0]
    return _passed_ms(known) if known else None


def newest_ms(reader: TopicReader) -> int | None:
    """The time that no source has passed: what comes after it is late nowhere.

    The largest frontier of those found at the end of the canonical log; None where
    there is none.
    """
    known = (each.at_ms for each in _frontiers(reader) if each.at_ms >= 0)
    return max(known, default=None)


class LogTime:
    """The time of the canonical log, followed as the log grows."""

    def __init__(self, reader: TopicReader) -> None:
        self._reader = reader
        self._starts: dict[int, int] = {}
        self._frontiers: dict[int, Frontier] = {}

    def look(self) -> int:
        """What the join has reached once it has read so far; -1 before it has a time.

        Unlike in `reached_ms`, a source that is read and has no time holds all back.
        """
        reader = self._reader
        starts = self._starts or {
            partition: end - TAIL_RECORDS
            for partition, (_, end) in reader.bounds(EVENTS).items()
        }
        for record in reader.records(EVENTS, starts):
            starts[record.partition] = record.offset + 1
            _note_frontiers(self._frontiers, record)
        self._starts = starts
        return _passed_ms(list(self._frontiers.values()))


def _passed_ms(frontiers: list[Frontier]) -> int:
    """As the join has it: `streams.event_time.Watermark`."""
    active = [each.at_ms for each in frontiers if each.state == ACTIVE]
    if active:
        return min(active)
    return max((each.at_ms for each in frontiers), default=-1)


def _frontiers(reader: TopicReader) -> list[Frontier]:
    """The last one of each source that is found at the end of the canonical log."""
    frontiers: dict[int, Frontier] = {}
    for record in reader.last_records(EVENTS, TAIL_RECORDS):
        _note_frontiers(frontiers, record)
    return list(frontiers.values())


def _note_frontiers(frontiers: dict[int, Frontier], record: Record) -> None:
    where = f"{EVENTS}[{record.partition}]@{record.offset}"
    for element in decode_event_record(record.value or b"", where).elements:
        if isinstance(element, Frontier):
            known = frontiers.get(element.source)
            if known is None or known.at_ms <= element.at_ms:
                frontiers[element.source] = element
