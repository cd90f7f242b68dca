"""Topics of a benchmark run, written beforehand and read afterwards.

What a stage did when is told by the resume positions of its commits: each has
the time at which it was written, and says up to where its partition was done. A role is
done with a log once they reach its end: a resume position is committed in one
transaction with all that it covers. Silence says nothing, as on a busy machine a stage
is silent while it has much left to do.
"""

import asyncio
import struct
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from producers.topic_reader import TopicReader, read_records
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed
from rankstream.settings import Settings
from rankstream.wire.topics import MAX_RECORD_BYTES, MIB
from streams.ingest.ingest import END_HEADER
from streams.kafka.state.resume_position import POSITION_KEY, decode_position, start_of
from streams.worker_roles import kinds_of

PATIENCE_S = 900.0
"""So long no position may move: a worker may compile first, on a busy machine."""

LOOK_S = 0.5

TAIL_RECORDS = 8
"""A transaction ends with the resume position and a marker of Kafka's own.

Reading all of the state would take time from the stage that is measured.
"""

Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""

_PLACE = struct.Struct("<HI")
"""Partition and length of a record of a kept log."""


class Progress(NamedTuple):
    """A commit: its partition is done up to `offset`."""

    timestamp_ms: int
    partition: int
    offset: int


class KeptLog:
    """A log made once, to be written to a topic of each run anew.

    Making a record takes longer than folding it.
    """

    def __init__(self, path: Path, records: Iterable[tuple[int, bytes]]) -> None:
        self._path = path
        with path.open("wb") as file:
            for partition, value in records:
                file.write(_PLACE.pack(partition, len(value)) + value)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """`(partition, value)` in the order in which they were made."""
        with self._path.open("rb") as file:
            while head := file.read(_PLACE.size):
                partition, length = _PLACE.unpack(head)
                yield partition, file.read(length)


def create_topic(bootstrap: str, name: str, n_partitions: int) -> None:
    """A plain topic, for the rival."""
    new = [NewTopic(name, n_partitions, 1)]
    asyncio.run(_administered(bootstrap, lambda client: client.create_topics(new)))


def delete_topics(settings: Settings) -> None:
    """Delete those of a namespace: the broker would clean them beside the next run."""

    async def delete(client: AIOKafkaAdminClient) -> None:
        own = f"{settings.namespace}."
        names = [name for name in await client.list_topics() if name.startswith(own)]
        await client.delete_topics(names)

    asyncio.run(_administered(settings.kafka.bootstrap, delete))


async def _administered(
    bootstrap: str, do: Callable[[AIOKafkaAdminClient], Awaitable[object]]
) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        await do(client)
    finally:
        await client.close()


def new_producer(bootstrap: str) -> AIOKafkaProducer:
    """A producer for logs whose offsets have no gaps."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        max_request_size=MAX_RECORD_BYTES,
        max_batch_size=MIB,
        linger_ms=5,
    )


def preload(
    bootstrap: str,
    records: Iterable[tuple[str, int, bytes]],
    *,
    ended: Iterable[tuple[str, int]] = (),
) -> None:
    """Write `(full name of the topic, partition, value)` in the given order.

    Parameters
    ----------
    ended
        Partitions of the input topics that get an end record at last.
    """

    async def write() -> None:
        producer = new_producer(bootstrap)
        await producer.start()
        try:
            for topic, partition, value in records:
                await producer.send(topic, value, partition=partition)
            for topic, partition in ended:
                headers = [END_HEADER]
                await producer.send(topic, b"", partition=partition, headers=headers)
            await producer.flush()
        finally:
            await producer.stop()

    asyncio.run(write())


def progress_of(settings: Settings, topic: str) -> list[Progress]:
    """The commits of a stage, from its state topic, by time."""
    found = [
        Progress(
            entry.timestamp_ms, entry.partition, decode_position(entry.value).offset
        )
        for entry in read_records(settings, topic)
        if entry.key == POSITION_KEY and entry.value is not None
    ]
    return sorted(found)


class Part(NamedTuple):
    """The measured part of a run; milliseconds since 1970."""

    n_events: int
    start_ms: int
    end_ms: int

    @property
    def lasted_s(self) -> float:
        """Seconds, over 0."""
        return max(1, self.end_ms - self.start_ms) / 1_000.0

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.n_events / self.lasted_s


def part_of(progress: list[Progress], events_up_to: Callable[[int, int], int]) -> Part:
    """What a stage did once each partition had committed, up to its last commit.

    What a partition had committed by then does not count. What it had folded since, a
    checkpoint at most, does: the more of them a log takes, the less that is.

    Parameters
    ----------
    progress
        Commits by time, of all partitions.
    events_up_to
        Events in records up to an offset of a partition, that one included.
    """
    firsts: dict[int, int] = {}
    for mark in progress:
        firsts.setdefault(mark.partition, mark.timestamp_ms)
    start_ms = max(firsts.values(), default=0)
    before, _ = last_moved([each for each in progress if each.timestamp_ms <= start_ms])
    at, end_ms = last_moved(progress)
    if end_ms <= start_ms:
        raise BenchmarkFailed("a run must last for several commits; it was over")

    def n_events(offsets: dict[int, int]) -> int:
        return sum(events_up_to(*place) for place in offsets.items())

    return Part(n_events(at) - n_events(before), start_ms, end_ms)


def last_moved(progress: list[Progress]) -> tuple[dict[int, int], int]:
    """Where each partition got to, and when the last of them moved, ms since 1970.

    `progress` is by time; 0 where there is none.
    """
    at: dict[int, int] = {}
    moved_ms = 0
    for mark in progress:
        # A checkpoint of an idle partition is a commit that goes nowhere.
        if mark.offset > at.get(mark.partition, -1):
            at[mark.partition] = mark.offset
            moved_ms = mark.timestamp_ms
    return at, moved_ms


class ResumePositions:
    """Up to where the stages of a role have committed outputs and state.

    Parameters
    ----------
    reader
        Must be open for as long as this is called.

    Attributes
    ----------
    seen
        Commits by state topic, of which compaction leaves the last one only.
    """

    def __init__(self, reader: TopicReader, role: str) -> None:
        self._reader = reader
        self._kinds = kinds_of(role)
        self._known: dict[tuple[str, int], int] = {}
        self.seen: defaultdict[str, set[Progress]] = defaultdict(set)

    def ends(self) -> dict[tuple[str, int], int]:
        """The offset behind the last record of each partition that has any."""
        return {
            (kind.source, partition): end
            for kind in self._kinds
            for partition, (first, end) in self._reader.bounds(kind.source).items()
            if end > first
        }

    def __call__(self) -> Offsets:
        """The first offset of each partition that its state does not cover."""
        for kind in self._kinds:
            for record in self._reader.last_records(kind.state_topics[0], TAIL_RECORDS):
                if record.key == POSITION_KEY and record.value is not None:
                    position, at = decode_position(record.value), record.partition
                    self._known[kind.source, at] = start_of(position)
                    mark = Progress(record.timestamp_ms, at, position.offset)
                    self.seen[kind.state_topics[0]].add(mark)
        return self._known


def await_end(
    settings: Settings, role: str, check: Callable[[], Any]
) -> dict[str, list[Progress]]:
    """Wait until a role has folded its sources up to their present end.

    All that it writes is committed then, its state included. Returns the commits that
    were seen meanwhile, by state topic and time.

    Parameters
    ----------
    check
        Raises where there is nothing to wait for any more.

    Raises
    ------
    BenchmarkFailed
        Where nothing moves for `PATIENCE_S`.
    """
    with TopicReader(settings) as reader:
        positions = ResumePositions(reader, role)
        await_positions(positions.ends(), positions, check)
        return {topic: sorted(marks) for topic, marks in positions.seen.items()}


def await_positions(
    ends: Offsets,
    positions: Callable[[], Offsets],
    check: Callable[[], Any],
    *,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Any] = time.sleep,
) -> None:
    """Wait until every position is at its end or behind it.

    Raises
    ------
    BenchmarkFailed
        Where none moves for `patience_s` seconds; names what was reached.
    """
    moved_s, known = clock(), dict[tuple[str, int], int]()
    while True:
        check()
        now = dict(positions())
        if all(now.get(place, -1) >= end for place, end in ends.items()):
            return
        if now != known:
            moved_s, known = clock(), now
        elif clock() - moved_s >= patience_s:
            raise BenchmarkFailed(_stuck(ends, now, patience_s))
        sleep(LOOK_S)


def _stuck(ends: Offsets, now: Offsets, patience_s: float) -> str:
    """What was reached and what was not."""
    reached: list[str] = []
    missing: list[str] = []
    for (topic, partition), end in sorted(ends.items()):
        got = now.get((topic, partition))
        into = missing if got is None or got < end else reached
        at = "no position" if got is None else f"{got:,}"
        into.append(f"{topic}[{partition}] at {at} of {end:,}")
    return (
        "resume positions must reach the end of their log; none moved for "
        f"{patience_s:,.0f} s: not at the end: {', '.join(missing)}; at the end: "
        f"{', '.join(reached) or 'none'}; give the machine to the benchmark alone"
    )
