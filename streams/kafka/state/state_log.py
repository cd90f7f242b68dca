"""The state of a stage's partition: how it is written, and read back."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from aiokafka import TopicPartition

from streams.kafka.clients import Cluster, Consumer
from streams.kafka.group.membership import Membership
from streams.kafka.state.joint_log import JointLog, Part
from streams.kafka.state.open_records import BETWEEN_LOOKS_S, LOOKS_S
from streams.kafka.state.resume_position import SourcePartition, StateRefused
from streams.kafka.whole_batches import FETCH_BYTES, POLL_MS, WHOLE, each_of
from streams.stage import Change, Output
from streams.topology import StageKind, writer_of

FETCH_WAIT_MS = 20
"""A broker holds a fetch back for so long where there is nothing more to read. One of a
topic that was read to its end would hold back the next one of the others."""

log = logging.getLogger("rankstream.state_log")


class StateRead(NamedTuple):
    """The last value of every key, how many records that took, and the source."""

    items: dict[tuple[str, bytes], bytes]
    n_records: int
    source: SourcePartition


class PartitionLog(Protocol):
    """The state of one partition; a test may keep it elsewhere."""

    def join(self, member: Membership | None) -> None:
        """Hear as whom the process has the partition."""

    async def fence(self, timeout_ms: int) -> None:
        """Become the only writer."""

    async def read(self) -> StateRead:
        """Everything that was committed."""

    def gathering(self) -> AbstractContextManager[None]:
        """What others commit waits for what is gathered here, to be one with it."""

    async def write(
        self, outputs: list[Output], changes: list[Change], next_offset: int
    ) -> None:
        """All of it or nothing."""

    async def close(self) -> None:
        """Write no more."""


class StateLog:
    """The state of a stage's partition on Kafka.

    Parameters
    ----------
    joint
        What other partitions of the process are written with; its own by default.
    """

    def __init__(
        self,
        kind: StageKind,
        partition: int,
        cluster: Cluster,
        joint: JointLog | None = None,
    ) -> None:
        self._kind = kind
        self._partition = partition
        self._cluster = cluster
        self._source = cluster.place(kind.source, partition)
        self._joint = joint or JointLog(cluster, (kind,))
        self._member: Membership | None = None
        self._name = writer_of(kind.name, kind.source, str(partition))
        self._timeout_ms = 0

    def join(self, member: Membership | None) -> None:
        """Write as this member; None while the group has none."""
        self._member = member

    async def fence(self, timeout_ms: int) -> None:
        """Become the only writer; aborts what the previous owner had begun."""
        self._timeout_ms = timeout_ms
        await self._joint.take(self._name, self, timeout_ms)

    def gathering(self) -> AbstractContextManager[None]:
        """What others commit waits for what is gathered here, to be one with it."""
        return self._joint.gathering()

    async def read(self) -> StateRead:
        """Read everything that was committed, once nothing more of it can be.

        Raises
        ------
        StateRefused
            Where the state topics have other partitions than the source.
        """
        if self._joint.owns(self._name, self):
            await self._joint.decided(self._source)
        cluster, topics = self._cluster, self._kind.state_topics
        places = {cluster.place(name, self._partition): name for name in topics}
        consumer = self._consumer()
        everything = cluster.clients.consumer(**cluster.client)
        try:
            await _all_of(consumer.start(), everything.start())
            await self._end_what_hangs(consumer, everything, list(places))
            source = await self._described(consumer)
            ends = await consumer.end_offsets(list(places))
            # Only now: a broker answers a connection's requests one after another, and
            # any of these would wait behind a fetch.
            consumer.assign(list(places))
            items, n_records = await _read_to_end(consumer, places, ends)
        finally:
            await _all_of(consumer.stop(), everything.stop())
        return StateRead(items, n_records, source)

    async def write(
        self,
        outputs: list[Output],
        changes: Iterable[Change],
        next_offset: int | None = None,
    ) -> None:
        """All of it, in one transaction; returns when that is committed.

        Parameters
        ----------
        next_offset
            What the consumer group is to have committed by it; None writes as nobody
            of the group. No stage starts there: the broker refuses it to who was voted
            out, and operators look at the lag of the group.
        """
        if not self._joint.owns(self._name, self):
            raise StateRefused(f"{self._kind.source}[{self._partition}] was given away")
        state = (
            Output(topic, self._partition, key, value) for topic, key, value in changes
        )
        records = [*outputs, *state]
        await self._joint.write(Part(records, self._source, next_offset, self._member))

    async def close(self) -> None:
        """Write no more."""
        await self._joint.give(self._name, self)

    def _consumer(self) -> Consumer:
        """Reads what is committed, in whole batches."""
        cluster = self._cluster
        # With "latest", a consumer without a group may begin at the end and read
        # nothing back; a seek would race with that.
        return cluster.clients.consumer(
            **cluster.client,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            key_deserializer=WHOLE,
        )

    async def _end_what_hangs(
        self, committed: Consumer, everything: Consumer, places: list[TopicPartition]
    ) -> None:
        """Abort records of ours that a broker keeps open although nobody commits them.

        No transaction of ours is under way: the broker has just said so. But if a
        partition had no leader while one was committed, it lacks the transaction's
        marker for good (KAFKA-20734). Our next commit would include its records beside
        the same records folded again.
        """

        async def is_decided() -> bool:
            stable, last = await asyncio.gather(
                committed.end_offsets(places), everything.end_offsets(places)
            )
            return stable == last

        async def is_decided_by(time_s: float) -> bool:
            for _ in range(max(1, round(time_s / BETWEEN_LOOKS_S))):
                if await is_decided():
                    return True
                await asyncio.sleep(BETWEEN_LOOKS_S)
            return False

        name = f"{self._kind.source}[{self._partition}]"
        if await is_decided_by(LOOKS_S) or not self._joint.owns(self._name, self):
            return
        log.warning("event=ending-what-hangs partition=%s", name)
        for of_all in (False, True):
            await self._joint.end_what_hangs(
                is_decided, self._timeout_ms, of_all=of_all
            )
            # The broker itself ends what is open for longer.
            if await is_decided_by(self._timeout_ms / 1_000):
                return
        raise RuntimeError(
            f"transactions in the state of {name} must end; one did not: starting again"
        )

    async def _described(self, consumer: Consumer) -> SourcePartition:
        source, place = self._kind.source, self._source
        first = await consumer.beginning_offsets([place])
        end = await consumer.end_offsets([place])
        counts = {
            topic: len(
                consumer.partitions_for_topic(self._cluster.place(topic, 0).topic) or ()
            )
            for topic in (source, *self._kind.state_topics)
        }
        n_partitions = counts.pop(source)
        for topic, count in counts.items():
            if count != n_partitions:
                raise StateRefused(
                    f"{topic} must have as many partitions as {source}, "
                    f"{n_partitions}; it has {count}: run `rankstream topics check`"
                )
        return SourcePartition(
            f"{place.topic}[{place.partition}]",
            self._cluster.topic_ids.get(source, ""),
            n_partitions,
            first[place],
            end[place],
        )


async def _all_of(*works: Coroutine[Any, Any, None]) -> None:
    """Do them beside each other, to their ends; raises what one of them did."""
    ends = await asyncio.gather(*works, return_exceptions=True)
    for error in ends:
        if isinstance(error, BaseException):
            raise error


async def _read_to_end(
    consumer: Consumer,
    places: Mapping[TopicPartition, str],
    ends: Mapping[TopicPartition, int],
) -> tuple[dict[tuple[str, bytes], bytes], int]:
    items: dict[tuple[str, bytes], bytes] = {}
    n_records = 0
    left = {place for place in places if ends[place] > 0}
    while left:
        fetched = await consumer.getmany(*left, timeout_ms=POLL_MS)
        for place, batches in fetched.items():
            records, topic = each_of(batches), places[place]
            n_records += len(records)
            for record in records:
                value = record.value
                if value is None:
                    items.pop((topic, record.key), None)
                else:
                    items[topic, record.key] = value
        # The position steps over what transactions leave in the log.
        left = {each for each in left if await consumer.position(each) < ends[each]}
    return items, n_records
