"""A consumer with the interface of aiokafka's, on a Kafka in memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import ConsumerRecord

from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Fetched, Stored
from tests.fakes.points import Point

Records = list[ConsumerRecord[bytes | None, bytes | None]]


@dataclass
class _Reading:
    """How far a partition was read, and what its last fetch said."""

    position: int | None = None
    highwater: int | None = None
    stable: int | None = None


class FakeConsumer:
    """The part of `AIOKafkaConsumer` that is used here: partitions are assigned.

    As there, a position that the partition does not have is reset without a word,
    unless `auto_offset_reset` is "none"; and nothing tells that a topic was created
    again. Unlike there, nothing is fetched in advance: `getmany` asks the broker, once.

    Parameters
    ----------
    options
        As for aiokafka; what is not read here has no effect.
    """

    def __init__(self, kafka: FakeKafka, point: Point, **options: Any) -> None:
        self._kafka = kafka
        self._point = point
        self._group: str | None = options.get("group_id")
        self._is_committed = options.get("isolation_level") == "read_committed"
        self._reset: str = options.get("auto_offset_reset", "latest")
        self._readings: dict[TopicPartition, _Reading] = {}
        self._is_closed = False

    async def start(self) -> None:
        """Connect."""
        await self._point("connect consumer")

    async def stop(self) -> None:
        """Read no more."""
        if not self._is_closed:
            self._is_closed = True
            await self._point("stop consumer")

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others."""
        self._readings = {place: _Reading() for place in places}

    def assignment(self) -> set[TopicPartition]:
        """Partitions that are read."""
        return set(self._readings)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Partitions of a topic, None where there is none of that name."""
        n_partitions = self._kafka.n_partitions(topic)
        return None if n_partitions is None else set(range(n_partitions))

    async def beginning_offsets(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The oldest offset of each partition."""
        await self._point("ask for beginnings")
        found = {place: self._kafka.log(place).first for place in places}
        await self._point("ask for beginnings, answered")
        return found

    async def end_offsets(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The end of each partition; of what is stable, for a reader of that."""
        await self._point("ask for ends")
        found = {place: self._end_of(place) for place in places}
        await self._point("ask for ends, answered")
        return found

    async def committed(self, place: TopicPartition) -> int | None:
        """What the group has committed for a partition."""
        if self._group is None:
            raise IllegalOperation("Requires group_id")
        await self._point("ask for committed")
        return self._kafka.groups.get(self._group, {}).get(place)

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Read on from an offset, whether or not the partition has it."""
        self._reading(place).position = offset

    async def position(self, place: TopicPartition) -> int:
        """The offset that is read next."""
        reading = self._reading(place)
        if reading.position is None:
            await self._point("reset")
            if reading.position is None:
                self._reset_to(place, reading)
        assert reading.position is not None
        return reading.position

    def highwater(self, place: TopicPartition) -> int | None:
        """The end of a partition, as of its last fetch."""
        return self._reading(place).highwater

    def last_stable_offset(self, place: TopicPartition) -> int | None:
        """The end of what is stable, as of the last fetch."""
        return self._reading(place).stable

    async def getmany(
        self,
        *places: TopicPartition,
        timeout_ms: int = 0,  # noqa: ARG002  whoever owns the points decides
        max_records: int | None = None,
    ) -> dict[TopicPartition, Records]:
        """Records of each partition from its position on.

        Raises
        ------
        KafkaError
            Where a position cannot be read from, and may not be reset.
        """
        if self._is_closed:
            raise ConsumerStoppedError
        await self._point("fetch")
        found: dict[TopicPartition, Records] = {}
        for place in places or tuple(self._readings):
            reading = self._readings.get(place)
            if reading is None:
                continue
            fetched = self._fetched(place, reading, max_records)
            if fetched is None:
                continue
            reading.position = fetched.position
            reading.highwater, reading.stable = fetched.highwater, fetched.stable
            if fetched.records:
                found[place] = [_record(place, each) for each in fetched.records]
                if max_records is not None:
                    max_records -= len(fetched.records)
                    if max_records == 0:
                        break
        await self._point("fetch, answered")
        return found

    def _fetched(
        self, place: TopicPartition, reading: _Reading, limit: int | None
    ) -> Fetched | None:
        log = self._kafka.find(place)
        if log is None:  # a client goes on asking
            return None
        if reading.position is None:
            self._reset_to(place, reading)
        assert reading.position is not None
        try:
            return log.fetch(
                reading.position, is_committed=self._is_committed, limit=limit
            )
        except OffsetOutOfRangeError:
            if self._reset == "none":
                raise OffsetOutOfRangeError({place: reading.position}) from None
            reading.position = None
            return None

    def _reset_to(self, place: TopicPartition, reading: _Reading) -> None:
        if self._reset == "none":
            raise NoOffsetForPartitionError(place)
        is_first = self._reset == "earliest"
        reading.position = (
            self._kafka.log(place).first if is_first else self._end_of(place)
        )

    def _end_of(self, place: TopicPartition) -> int:
        log = self._kafka.find(place)
        if log is None:
            raise UnknownTopicOrPartitionError(place)
        return log.stable if self._is_committed else log.end

    def _reading(self, place: TopicPartition) -> _Reading:
        if place not in self._readings:
            raise IllegalStateError(f"Partition {place} is not assigned")
        return self._readings[place]


def _record(
    place: TopicPartition, stored: Stored
) -> ConsumerRecord[bytes | None, bytes | None]:
    assert stored.content is not None
    key, value, headers, timestamp_ms = stored.content
    return ConsumerRecord(
        place.topic,
        place.partition,
        stored.offset,
        timestamp_ms,
        0,
        key,
        value,
        None,
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        headers,
    )
