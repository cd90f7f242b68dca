"""Topics read from outside: committed records only, up to their present end."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from producers.brokers.broker_rights import refusals, undescribed, why_denied
from producers.brokers.cluster import connected_admin
from producers.brokers.connection import client_options, topics_command
from producers.brokers.lets_nobody_in import hearing, why_away
from producers.readiness import Waiting, wait_for_kafka
from rankstream.settings import Settings
from rankstream.wire.events import ACTIVE, Frontier, decode_event_record
from rankstream.wire.topics import EVENTS, MAX_RECORD_BYTES, full_name

POLL_MS = 500

ANSWER_MS = 10_000
"""How long a broker may take to say how far a group has read."""


class TopicUnreadable(RuntimeError):
    """A topic is not there, not as the settings say, or cannot be read.

    Operator action: run the command that the message names.
    """


class Record(NamedTuple):
    """A record as it stands in a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class TopicReader:
    """A consumer without a group; a context manager.

    Names of topics are without the namespace, which is that of the settings.

    Parameters
    ----------
    waiting
        Says that the cluster is waited for.
    is_stopped
        Ends waits and reads.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        waiting: Waiting | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._namespace = settings.namespace
        self._is_stopped = is_stopped
        wait_for_kafka(settings.kafka, waiting or Waiting(), is_stopped=is_stopped)
        options = client_options(settings.kafka) | {
            "group_id": None,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            "reconnect_backoff_max_ms": 2_000,
            "fetch_max_wait_ms": 100,
            "max_partition_fetch_bytes": MAX_RECORD_BYTES,
        }
        with self._translated():
            self._consumer = KafkaConsumer(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self._consumer.close(autocommit=False)

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic; none where it does not exist."""
        name = full_name(self._namespace, topic)
        with self._translated():
            return sorted(self._consumer.partitions_for_topic(name) or ())

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """First offset and the offset after the last committed record, by partition.

        Raises
        ------
        TopicUnreadable
            Where the topic does not exist.
        """
        found = self.partitions(topic)
        if not found:
            raise self._missing(topic)
        places = [self._place(topic, each) for each in found]
        with self._translated():
            first = self._consumer.beginning_offsets(places)
            last = self._consumer.end_offsets(places)
        return {each.partition: (first[each], last[each]) for each in places}

    def written(self, topic: str) -> dict[int, int]:
        """The offset behind the last record by partition, committed yet or not."""
        places = [self._place(topic, each) for each in self.partitions(topic)]
        with self._another(group=None) as consumer:
            ends = consumer.end_offsets(places)
        return {each.partition: end for each, end in ends.items()}

    def records(
        self,
        topic: str,
        starts: Mapping[int, int] | None = None,
        ends: Mapping[int, int] | None = None,
    ) -> Iterator[Record]:
        """Records up to the end as it is at the call, partition by partition.

        Parameters
        ----------
        starts
            Partitions and the first offset to read; the whole topic if not given.
        ends
            Offsets to read up to, where these are not the last committed ones: what is
            not committed there is waited for.
        """
        bounds = self.bounds(topic)
        if starts is None:
            starts = {partition: first for partition, (first, _) in bounds.items()}
        for partition, start in sorted(starts.items()):
            if partition in bounds:
                first, end = bounds[partition]
                end = (ends or {}).get(partition, end)
                place = self._place(topic, partition)
                yield from self._partition(place, max(first, start), end)

    def committed(
        self, group: str, topic: str, partitions: Iterable[int]
    ) -> dict[int, int]:
        """How far a group has read these partitions; those that it never read lack.

        A group is named without joining it.
        """
        found = {}
        with self._another(group) as consumer:
            for partition in partitions:
                offset = consumer.committed(
                    self._place(topic, partition), timeout_ms=ANSWER_MS
                )
                if offset is not None:
                    found[partition] = offset
        return found

    def last_records(self, topic: str, n_offsets: int) -> Iterator[Record]:
        """What stands at the last offsets of each partition, oldest first."""
        starts = {
            partition: last - n_offsets
            for partition, (_, last) in self.bounds(topic).items()
        }
        yield from self.records(topic, starts)

    def check_topics(self, expected: Mapping[str, int]) -> None:
        """Refuse where topics are missing or have another number of partitions.

        Raises
        ------
        TopicUnreadable
            With the command that helps.
        """
        for topic, n_partitions in expected.items():
            found = len(self.partitions(topic))
            if not found:
                raise self._missing(topic)
            if found != n_partitions:
                raise TopicUnreadable(
                    f"{full_name(self._namespace, topic)} must have the "
                    f"{n_partitions} partitions of the settings; got {found}: "
                    f"run {self._command('check')}"
                )

    def _missing(self, topic: str) -> TopicUnreadable:
        name = full_name(self._namespace, topic)
        with self._translated():
            client = connected_admin(self._settings, ANSWER_MS)
            try:
                unseen = undescribed(client, [name])
            finally:
                client.close()
        if unseen:
            return TopicUnreadable(refusals(unseen, self._settings)[0])
        return TopicUnreadable(
            f"topic {name} must exist; it does not: run {self._command('create')}"
        )

    def _command(self, action: str) -> str:
        return f"`{topics_command(self._settings, action)}`"

    def _place(self, topic: str, partition: int) -> TopicPartition:
        return TopicPartition(full_name(self._namespace, topic), partition)

    def _partition(
        self, place: TopicPartition, start: int, end: int
    ) -> Iterator[Record]:
        consumer = self._consumer
        if start >= end:
            return
        consumer.assign([place])
        consumer.seek(place, start)
        while not self._is_stopped():
            with self._translated():
                # Transaction markers take offsets too: the position steps over them.
                if consumer.position(place) >= end:
                    return
                polled = consumer.poll(timeout_ms=POLL_MS)
            for record in itertools.chain.from_iterable(polled.values()):
                if record.offset >= end:
                    return
                yield _record(record)

    @contextlib.contextmanager
    def _another(self, group: str | None) -> Iterator[Any]:
        """A consumer that reads nothing, and sees what is not committed too."""
        options = client_options(self._settings.kafka) | {
            "group_id": group,
            "enable_auto_commit": False,
        }
        with self._translated():
            consumer = KafkaConsumer(**options)
            try:
                yield consumer
            finally:
                consumer.close(autocommit=False)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """The client's errors as ours."""
        kafka = self._settings.kafka
        with hearing() as heard:
            try:
                yield
            except KafkaError as error:
                why = why_denied(error, self._settings)
                if not why and heard:
                    said, remedy = why_away(error, heard, kafka)
                    why = f", {said}: {remedy}"
                raise TopicUnreadable(
                    f"Kafka must answer at {kafka.bootstrap}; {error}{why}"
                ) from error


def read_records(
    settings: Settings, name: str, *, from_last: int | None = None
) -> Iterator[Record]:
    """Records up to the end as it was at the start, partition by partition.

    Parameters
    ----------
    from_last
        Only so many offsets at the end of each partition.

    Raises
    ------
    TopicUnreadable
        Where there is no such topic.
    """
    with TopicReader(settings) as reader:
        if from_last is None:
            yield from reader.records(name)
        else:
            yield from reader.last_records(name, from_last)


def read_topic(
    settings: Settings, name: str
) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Partition, offset, key and value of every record; see `read_records`."""
    for record in read_records(settings, name):
        yield record.partition, record.offset, record.key, record.value


def _record(record: Any) -> Record:
    return Record(
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers or ()),
    )


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
