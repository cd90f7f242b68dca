"""One consistent cut per partition, checkpointed in a Kafka transaction.

A *checkpoint* writes a stage's outputs and the marker (up to where they reach), and at
a *cut* also the state that changed, in one transaction of a producer whose id names the
partition. Taking a partition over is: initialise that producer (which fences whoever
had it), read the state back, go on behind the marker. Records between the last cut and
the marker are folded again with their outputs dropped: a stage is a pure function of
its log, and the fingerprint in the marker proves that it was.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from rankstream.settings import DeliverySettings
from rankstream.topics import MAX_RECORD_BYTES, MIB, full_name
from streams.stage import Change, Output, SourceRecord, Stage

MARKER = b"marker"
"""Key of the marker in the state topic."""

SCHEMA = 1

BULK = 64
"""More state records than this are packed into batches of our own."""

log = logging.getLogger("rankstream.checkpoint")

_encode = msgspec.msgpack.Encoder().encode


class StateRefused(RuntimeError):
    """The state of a partition does not belong to its log, or is missing.

    Operator action: the message names the command that repairs it.
    """


@dataclass(frozen=True)
class StageKind:
    """A stage of the pipeline, before it has a partition.

    Parameters
    ----------
    state_topics
        Where its state lies; the first holds the marker.
    cut_always
        Write the state at every checkpoint: for small states, and for the one stage
        that hears a clock.
    """

    name: str
    source: str
    state_topics: tuple[str, ...]
    build: Callable[[int], Stage]
    cut_always: bool = False


class Marker(msgspec.Struct, frozen=True, array_like=True):
    """How far a partition is: outputs up to `offset`, state as of `cut_offset`."""

    schema: int
    offset: int
    cut_offset: int
    fingerprint: bytes
    cut_fingerprint: bytes
    topic_id: str
    number: int


decode_marker = msgspec.msgpack.Decoder(Marker).decode


@dataclass(frozen=True)
class Cluster:
    """How to reach Kafka, and which topics are meant.

    Parameters
    ----------
    client
        Options that every aiokafka client takes.
    topic_ids
        Ids of the source topics as they were when the process started.
    """

    namespace: str
    client: Mapping[str, Any]
    topic_ids: Mapping[str, str]


class Checkpointer:
    """A stage on one partition of its source.

    Not for use after an error: whoever runs it ends the process, and the next owner's
    producer closes what was open.
    """

    def __init__(
        self,
        kind: StageKind,
        partition: int,
        cluster: Cluster,
        delivery: DeliverySettings,
    ) -> None:
        self.kind = kind
        self.partition = partition
        self.stage = kind.build(partition)
        self.folded = -1
        self.seconds = 0.0
        self.lock = asyncio.Lock()
        self._cluster = cluster
        self._delivery = delivery
        self._writing = asyncio.Lock()
        self._marker: Marker | None = None
        # A partition has a marker before anything of it is acknowledged.
        self._written = -2
        self._cut = -1
        self._cut_fingerprint = self.stage.fingerprint()
        self._cut_at_s = time.monotonic()
        self._records_since_cut = 0
        self._number = 0
        self._events: list[Any] = []
        self._is_dirty = False
        self._producer: AIOKafkaProducer | None = None
        self._left_at: dict[TopicPartition, int] | None = None
        self.counts: dict[str, int] = {}

    @property
    def name(self) -> str:
        """Topic and partition, for log lines."""
        return f"{self.kind.source}[{self.partition}]"

    @property
    def is_silent(self) -> bool:
        """Whether records before the marker are being folded again."""
        return self._marker is not None

    @property
    def n_unacknowledged(self) -> int:
        """Records that were folded and are not in a committed checkpoint."""
        return len(self._events)

    @property
    def next_offset(self) -> int:
        """Where to read on."""
        return self.folded + 1

    async def open(self, committed: int | None) -> None:
        """Fence, and read the state back.

        Parameters
        ----------
        committed
            What the consumer group committed for the partition, if anything.

        Raises
        ------
        StateRefused
            Where state and log do not belong together.
        """
        self._producer = self._new_producer()
        await self._producer.start()
        log.info("event=restoring partition=%s", self.name)
        started = time.monotonic()
        items, n_records = await self._read_state()
        packed = items.pop((self.kind.state_topics[0], MARKER), None)
        marker = decode_marker(packed) if packed is not None else None
        await self._check(marker, committed)
        self.stage.restore(
            Change(topic, key, value) for (topic, key), value in items.items()
        )
        if marker is not None:
            self._resume(marker)
        log.info(
            "event=restored partition=%s records=%d keys=%d cut=%d marker=%d "
            "seconds=%.2f",
            self.name, n_records, len(items), self._cut, self._written,
            time.monotonic() - started,
        )  # fmt: skip

    async def reopen(self) -> bool:
        """Take a closed partition again; False if somebody else wrote meanwhile."""
        self._producer = self._new_producer()
        await self._producer.start()
        if self._left_at is not None and await self._state_ends() == self._left_at:
            log.info("event=kept partition=%s", self.name)
            return True
        await self.close()
        return False

    def fold(self, record: SourceRecord, event: Any) -> None:
        """Take a record; `event` is acknowledged when a checkpoint covers it."""
        self._events.append(event)
        if record.offset <= self.folded:
            return
        self.folded = record.offset
        self.stage.fold(record)
        self._records_since_cut += 1
        self._is_dirty = True
        if self._marker is not None and record.offset >= self._marker.offset:
            self._catch_up(self._marker)

    async def checkpoint(
        self, now_ms: int, *, at_end: bool, final: bool = False
    ) -> bool:
        """Write what is new, if anything; False if there was nothing to write."""
        async with self._writing:
            async with self.lock:
                if self.is_silent or self._producer is None:
                    return False
                self.stage.tick(now_ms, at_end=at_end)
                await asyncio.to_thread(self.stage.settle)
                outputs = self.stage.outputs()
                is_cut = self._is_cut_due(final=final)
                is_new = self.folded > self._written or (self._is_dirty and is_cut)
                if not (outputs or is_new):
                    return False
                changes, events = self._gathered(is_cut=is_cut)
            started = time.monotonic()
            await self._write(outputs, changes)
            self.seconds = time.monotonic() - started
            for event in events:
                event.ack()
            return True

    async def close(self) -> None:
        """Let go of the producer, and remember how the state was left."""
        async with self._writing:
            producer, self._producer = self._producer, None
            if producer is None:
                return
            await producer.stop()
        is_whole = self._cut == self.folded and not self._events and not self.is_silent
        self._left_at = await self._state_ends() if is_whole else None

    def _gathered(self, *, is_cut: bool) -> tuple[list[Change], list[Any]]:
        """Everything that the checkpoint covers, before anything else is folded."""
        fingerprint = self.stage.fingerprint()
        changes: list[Change] = []
        if is_cut:
            changes = list(self.stage.changes())
            self._cut, self._cut_fingerprint = self.folded, fingerprint
            self._cut_at_s = time.monotonic()
            self._records_since_cut = 0
            self._is_dirty = False
            if not self.kind.cut_always:
                log.info(
                    "event=cut partition=%s offset=%d records=%d",
                    self.name, self._cut, len(changes),
                )  # fmt: skip
        self._written = self.folded
        self._number += 1
        marker = Marker(
            SCHEMA, self.folded, self._cut, fingerprint, self._cut_fingerprint,
            self._topic_id(), self._number,
        )  # fmt: skip
        changes.append(Change(self.kind.state_topics[0], MARKER, _encode(marker)))
        self.counts = self.stage.counters()
        events, self._events = self._events, []
        return changes, events

    def _is_cut_due(self, *, final: bool) -> bool:
        if self.kind.cut_always:
            return True
        if not self._is_dirty:
            return False
        since_s = time.monotonic() - self._cut_at_s
        return (
            final
            or since_s >= self._delivery.state_s
            or self._records_since_cut >= self._delivery.state_records
        )

    def _resume(self, marker: Marker) -> None:
        if marker.schema != SCHEMA:
            raise StateRefused(
                f"the marker of {self.name} must have schema {SCHEMA}; got "
                f"{marker.schema}: run the version that wrote it, stop it gracefully"
            )
        self._cut = self.folded = marker.cut_offset
        self._cut_fingerprint = marker.cut_fingerprint
        self._written = marker.offset
        self._number = marker.number
        if self.stage.fingerprint() != marker.cut_fingerprint:
            raise StateRefused(
                f"the state of {self.name} must match its marker; it does not: fold "
                "the log from its beginning in a new --namespace"
            )
        if marker.offset > marker.cut_offset:
            self._marker = marker

    def _catch_up(self, marker: Marker) -> None:
        self.stage.outputs()
        if self.stage.fingerprint() != marker.fingerprint:
            raise StateRefused(
                f"folding {self.name} again up to offset {marker.offset} must give the "
                "same; it did not: was it written by another version? Run that one and "
                "stop it gracefully, or fold the log in a new --namespace"
            )
        self._marker = None
        log.info("event=caught-up partition=%s offset=%d", self.name, marker.offset)

    async def _check(self, marker: Marker | None, committed: int | None) -> None:
        """Refuse what does not belong together."""
        if marker is None:
            if committed:
                raise StateRefused(
                    f"{self.name} must have a marker beside its commits; it has none: "
                    "the state topic was emptied; use a new --namespace, or delete the "
                    "consumer group to count from the beginning"
                )
            return
        if marker.topic_id != self._topic_id():
            raise StateRefused(
                f"{self.name} must be the topic that its state was counted from; its "
                f"id is {self._topic_id()}, not {marker.topic_id}: it was created "
                "anew; use a new --namespace"
            )
        first, end = await self._bounds()
        if end < marker.offset + 1 or first > marker.cut_offset + 1:
            raise StateRefused(
                f"{self.name} must still hold offset {marker.cut_offset + 1}; it holds "
                f"{first} to {end - 1}: it was truncated; use a new --namespace"
            )

    def _topic_id(self) -> str:
        return self._cluster.topic_ids.get(self.kind.source, "")

    async def _bounds(self) -> tuple[int, int]:
        place = self._place(self.kind.source)
        consumer = self._new_consumer()
        await consumer.start()
        try:
            first = await consumer.beginning_offsets([place])
            end = await consumer.end_offsets([place])
        finally:
            await consumer.stop()
        return first[place], end[place]

    async def _state_ends(self) -> dict[TopicPartition, int]:
        places = [self._place(name) for name in self.kind.state_topics]
        consumer = self._new_consumer()
        await consumer.start()
        try:
            return dict(await consumer.end_offsets(places))
        finally:
            await consumer.stop()

    async def _read_state(self) -> tuple[dict[tuple[str, bytes], bytes], int]:
        """The last value of every key, and how many records that took."""
        places = {self._place(name): name for name in self.kind.state_topics}
        consumer = self._new_consumer()
        await consumer.start()
        items: dict[tuple[str, bytes], bytes] = {}
        n_records = 0
        try:
            consumer.assign(list(places))
            ends = await consumer.end_offsets(list(places))
            left = {place for place in places if ends[place] > 0}
            while left:
                fetched = await consumer.getmany(*left, timeout_ms=500)
                for place, records in fetched.items():
                    n_records += len(records)
                    _take(items, places[place], records)
                for place in list(left):
                    if await consumer.position(place) >= ends[place]:
                        left.discard(place)
        finally:
            await consumer.stop()
        return items, n_records

    def _place(self, topic: str) -> TopicPartition:
        return TopicPartition(full_name(self._cluster.namespace, topic), self.partition)

    def _new_consumer(self) -> AIOKafkaConsumer:
        # With "latest", a consumer without a group may begin at the end and read
        # nothing back.
        return AIOKafkaConsumer(
            **self._cluster.client,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=MAX_RECORD_BYTES + MIB,
            fetch_max_bytes=4 * MAX_RECORD_BYTES,
        )

    def _new_producer(self) -> AIOKafkaProducer:
        name = f"{self.kind.name}-{self.kind.source}-{self.partition}"
        return AIOKafkaProducer(
            **self._cluster.client,
            transactional_id=full_name(self._cluster.namespace or "rankstream", name),
            transaction_timeout_ms=self._delivery.transaction_timeout_ms,
            acks="all",
            max_request_size=MAX_RECORD_BYTES + MIB,
            max_batch_size=MIB,
            linger_ms=0,
        )

    async def _write(self, outputs: list[Output], changes: list[Change]) -> None:
        producer = self._producer
        if producer is None:
            raise StateRefused(f"{self.name} was given away while it was written")
        topics = {output.topic for output in outputs} | set(self.kind.state_topics)
        name_of = {topic: full_name(self._cluster.namespace, topic) for topic in topics}
        await producer.begin_transaction()
        sent: list[Any] = []
        for output in outputs:
            sent.append(
                await producer.send(
                    name_of[output.topic],
                    partition=output.partition,
                    key=output.key,
                    value=output.value,
                    headers=list(output.headers),
                )
            )
        for topic in self.kind.state_topics:
            of_topic = [change for change in changes if change.topic == topic]
            sent += await self._write_state(producer, name_of[topic], of_topic)
        await asyncio.gather(*sent)
        await producer.commit_transaction()

    async def _write_state(
        self, producer: AIOKafkaProducer, topic: str, changes: list[Change]
    ) -> list[Any]:
        if len(changes) <= BULK:
            return [
                await producer.send(
                    topic, partition=self.partition, key=change.key, value=change.value
                )
                for change in changes
            ]
        sent = []
        batch = producer.create_batch()
        for change in changes:
            while (
                batch.append(key=change.key, value=change.value, timestamp=None) is None
            ):
                batch.close()
                sent.append(
                    await producer.send_batch(batch, topic, partition=self.partition)
                )
                batch = producer.create_batch()
        batch.close()
        sent.append(await producer.send_batch(batch, topic, partition=self.partition))
        return sent


def _take(
    items: dict[tuple[str, bytes], bytes], topic: str, records: Iterable[Any]
) -> None:
    for record in records:
        if record.value is None:
            items.pop((topic, record.key), None)
        else:
            items[topic, record.key] = record.value
