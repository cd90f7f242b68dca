"""What comes as a trickle is gathered at the broker; all else is read at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.protocol.fetch import FetchRequest
from kafka import KafkaAdminClient

from streams.kafka.gathered_fetches import GatheringConsumer
from tests.services import KafkaService

pytestmark = pytest.mark.broker

FOREVER_S = 3_600.0
PATIENCE_S = 600.0
SMALL = 8_192

Send = Callable[[int], Awaitable[None]]


class Counted(GatheringConsumer):
    """Counts its fetches, between two of which it would wait for ever."""

    apart_s = FOREVER_S

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.n_fetches = 0
        send = self._client.send

        async def counted(node_id: int, request: Any, **options: Any) -> Any:
            self.n_fetches += isinstance(request, FetchRequest)
            return await send(node_id, request, **options)

        self._client.send = counted

    async def read(self, n_records: int) -> None:
        """Wait until so many records have come."""
        while n_records > 0:
            fetched = await self.getmany(timeout_ms=100)
            n_records -= sum(len(records) for records in fetched.values())


def reading(
    kafka: KafkaService,
    topic: str,
    read: Callable[[Counted, Send], Awaitable[None]],
    n_there: int = 0,
) -> int:
    """Tasks that are left once somebody has read a topic that has so many records."""
    wanted = {topic: {"num_partitions": 1, "replication_factor": 1}}
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics(wanted, wait_for_metadata=True)
    admin.close()

    async def run() -> int:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
        consumer = Counted(
            bootstrap_servers=kafka.bootstrap,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=20,
            max_partition_fetch_bytes=SMALL,
        )

        async def send(n_records: int) -> None:
            for _ in range(n_records):
                await producer.send_and_wait(topic, bytes(SMALL // 2))

        async with asyncio.timeout(PATIENCE_S):
            await producer.start()
            await consumer.start()
            try:
                await send(n_there)
                consumer.assign([TopicPartition(topic, 0)])
                await read(consumer, send)
            finally:
                await consumer.stop()
                await producer.stop()
        return len(asyncio.all_tasks()) - 1

    return asyncio.run(run())


def test_what_comes_behind_all_that_was_read_is_not_asked_for_at_once(
    kafka: KafkaService, namespace: str
) -> None:
    """Whoever stops meanwhile leaves nothing behind."""

    async def read(consumer: Counted, send: Send) -> None:
        await consumer.read(1)
        n_fetches = consumer.n_fetches
        await send(1)
        assert not await consumer.getmany(timeout_ms=500)
        assert consumer.n_fetches == n_fetches

    assert reading(kafka, namespace, read, n_there=1) == 0


def test_what_an_answer_had_no_room_for_is_asked_for_at_once(
    kafka: KafkaService, namespace: str
) -> None:
    """A log that waits is read without a pause."""

    async def read(consumer: Counted, _: Send) -> None:
        await consumer.read(20)

    assert reading(kafka, namespace, read, n_there=20) == 0


def test_the_first_record_behind_a_silence_is_waited_for_at_the_broker(
    kafka: KafkaService, namespace: str
) -> None:
    """Whoever sends a single event sees it as soon as ever."""

    async def read(consumer: Counted, send: Send) -> None:
        while consumer.n_fetches < 3:
            assert not await consumer.getmany(timeout_ms=100)
        await send(1)
        await consumer.read(1)

    assert reading(kafka, namespace, read) == 0


def test_what_is_assigned_anew_is_asked_for_at_once(
    kafka: KafkaService, namespace: str
) -> None:
    """Nothing is known of a partition before its first answer."""

    async def read(consumer: Counted, _: Send) -> None:
        await consumer.read(1)
        assert not await consumer.getmany(timeout_ms=500)
        consumer.assign(sorted(consumer.assignment()))
        await consumer.read(1)

    assert reading(kafka, namespace, read, n_there=1) == 0
