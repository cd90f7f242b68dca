"""Topics of a benchmark run, written beforehand and read afterwards.

What a stage did when is told by the resume positions of its commits: each has
the time at which it was written, and says up to where its partition was done.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from rankstream.lab.benchmarks.pipeline_bed import BenchmarkFailed
from rankstream.settings import Settings
from rankstream.wire.topics import MAX_RECORD_BYTES, MIB, full_name
from streams.ingest.ingest import END_HEADER
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.topology import topics_of

_PLACE = struct.Struct("<HI")
"""Partition and length of a record of a kept log."""


class Entry(NamedTuple):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


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

    async def create() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            await client.create_topics([NewTopic(name, n_partitions, 1)])
        finally:
            await client.close()

    asyncio.run(create())


def delete_topics(settings: Settings) -> None:
    """Delete those of a namespace: the broker would clean them beside the next run."""

    async def delete() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
        await client.start()
        try:
            await client.delete_topics(
                [
                    full_name(settings.namespace, topic.name)
                    for topic in topics_of(settings.kafka)
                ]
            )
        finally:
            await client.close()

    asyncio.run(delete())


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


def read_all(settings: Settings, topic: str, n_partitions: int) -> Iterator[Entry]:
    """Committed records of a topic up to its present end."""
    with asyncio.Runner() as runner:
        batches = _batches(settings, topic, n_partitions)
        while True:
            batch = runner.run(_next_of(batches))
            if batch is None:
                return
            yield from batch


async def _next_of(batches: AsyncIterator[list[Entry]]) -> list[Entry] | None:
    return await anext(batches, None)


async def _batches(
    settings: Settings, topic: str, n_partitions: int
) -> AsyncIterator[list[Entry]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=MAX_RECORD_BYTES + MIB,
    )
    await consumer.start()
    try:
        name = full_name(settings.namespace, topic)
        places = [TopicPartition(name, p) for p in range(n_partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        left = {place for place in places if ends[place]}
        while left:
            fetched = await consumer.getmany(*left, timeout_ms=500)
            yield [
                Entry(r.partition, r.offset, r.timestamp, r.key, r.value)
                for records in fetched.values()
                for r in records
            ]
            for place in list(left):
                if await consumer.position(place) >= ends[place]:
                    left.discard(place)
    finally:
        await consumer.stop()


def progress_of(settings: Settings, topic: str, n_partitions: int) -> list[Progress]:
    """The commits of a stage, from its state topic, by time."""
    found = [
        Progress(
            entry.timestamp_ms, entry.partition, decode_position(entry.value).offset
        )
        for entry in read_all(settings, topic, n_partitions)
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
    """What a stage did from its first commit to its last.

    Parameters
    ----------
    progress
        Commits by time; what the first covers was done before and does not count.
    events_up_to
        Events in records up to an offset of a partition, that one included.
    """
    if len(progress) < 2:
        raise BenchmarkFailed("a run must last for several commits; it was over")
    at: dict[int, int] = {}
    first = progress[0]
    end_ms = first.timestamp_ms
    for mark in progress:
        # A checkpoint of an idle partition is a commit that goes nowhere.
        if mark.offset > at.get(mark.partition, -1):
            at[mark.partition] = mark.offset
            end_ms = mark.timestamp_ms
    n_events = sum(events_up_to(partition, offset) for partition, offset in at.items())
    n_events -= events_up_to(first.partition, first.offset)
    return Part(n_events, first.timestamp_ms, end_ms)
