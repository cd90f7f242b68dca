"""What a batch says of where it stands, on a real broker."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient

from rankstream.settings import KafkaSettings
from streams.kafka.committed_reader import (
    CommittedBatch,
    client_options,
    committed_batches,
)
from tests.services import KafkaService
from tests.worker_process import PATIENCE_S


@pytest.fixture(scope="module")
def kafka(breakable_kafka: KafkaService) -> KafkaService:
    """A broker of our own, as it is paused."""
    return breakable_kafka


@pytest.fixture
def topic(kafka: KafkaService, namespace: str) -> str:
    """A topic of one partition."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics({namespace: {"num_partitions": 1, "replication_factor": 1}})
    admin.close()
    return namespace


Batches = AsyncGenerator[CommittedBatch, None]


async def some(batches: Batches, number: int) -> list[CommittedBatch]:
    """The next batches."""
    return [await anext(batches) for _ in range(number)]


async def until_settled(batches: Batches) -> list[tuple[bytes | None, bytes | None]]:
    """Read on until a batch is settled; what was read."""
    records = []
    async for batch in batches:
        records += batch.records
        if batch.is_settled:
            assert batch.at_end
            return records
    raise AssertionError("batches must not end")


async def never_settled(batches: Batches) -> None:
    """All is at the end for a while, and nothing is settled."""
    await some(batches, 3)  # the answers that were under way
    found = await some(batches, 5)
    assert all(each.at_end and not each.is_settled for each in found)


def test_an_open_transaction_or_a_silent_broker_settles_nothing(
    kafka: KafkaService, topic: str
) -> None:
    """At the end of what was committed is not at the end of what may come."""
    settings = KafkaSettings(bootstrap=kafka.bootstrap)

    async def scenario() -> None:
        batches = committed_batches(settings, topic)
        producer = AIOKafkaProducer(**client_options(settings), transactional_id=topic)
        async with contextlib.aclosing(batches):
            assert (await anext(batches)).is_first
            assert await until_settled(batches) == []
            assert not (await anext(batches)).is_first
            await producer.start()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"value", key=b"key", partition=0)
            await never_settled(batches)
            await producer.commit_transaction()
            await producer.stop()
            found: list[tuple[bytes | None, bytes | None]] = []
            while not found:
                found += await until_settled(batches)
            assert found == [(b"key", b"value")]
            assert kafka.broker is not None
            kafka.broker.pause()
            try:
                await never_settled(batches)
            finally:
                kafka.broker.resume()
            assert await until_settled(batches) == []

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
