"""A consumer is stopped at whatever moment, and nobody is cancelled by that."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaAdminClient

from rankstream.settings import KafkaSettings
from streams.kafka.clients import TidyConsumer
from streams.kafka.committed_reader import CommittedBatch, committed_batches
from tests.services import KafkaService

pytestmark = pytest.mark.broker

Stop = Callable[..., Coroutine[Any, Any, None]]

PATIENCE_S = 600.0


@pytest.fixture
def topic(kafka: KafkaService, namespace: str) -> str:
    """A topic of one partition."""
    wanted = {namespace: {"num_partitions": 1, "replication_factor": 1}}
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics(wanted, wait_for_metadata=True)
    admin.close()
    return namespace


async def stop_at_once(consumer: AIOKafkaConsumer, topic: str) -> None:
    """Right after the start, before any of its tasks has begun."""
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.stop()


async def stop_while_fetches_fail(consumer: AIOKafkaConsumer, topic: str) -> None:
    """While one waits before it is tried again."""
    place = TopicPartition(topic, 0)
    await consumer.start()
    consumer.assign([place])
    assert await consumer.position(place) == 0
    failed = asyncio.Event()

    async def send(*_: object, **__: object) -> None:
        failed.set()
        raise KafkaConnectionError

    consumer._client.send = send
    await failed.wait()
    await asyncio.sleep(0)
    await consumer.stop()


async def give_up_the_stop(consumer: AIOKafkaConsumer, topic: str) -> None:
    """As by a limit of time, once it has begun."""
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    stopping = asyncio.ensure_future(consumer.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.wait({stopping})
    assert stopping.cancelled()


STOPS = stop_at_once, stop_while_fetches_fail


def stopped(
    make: Callable[..., AIOKafkaConsumer],
    stop: Stop,
    topic: str,
    bootstrap: str,
) -> tuple[bool, int, int]:
    """Whether who stopped it was cancelled by it; connections and tasks left."""

    async def run() -> tuple[bool, int, int]:
        consumer = make(
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            # Who is held up stops it within that pause all the same.
            retry_backoff_ms=30_000,
        )
        task = asyncio.ensure_future(stop(consumer, topic))
        await asyncio.wait({task}, timeout=PATIENCE_S)
        assert task.done()
        assert task.cancelled() or task.exception() is None
        left = [each for each in consumer._client._conns.values() if each.connected()]
        is_cancelled, tasks = task.cancelled(), len(asyncio.all_tasks()) - 1
        await consumer._client.close()
        return is_cancelled, len(left), tasks

    return asyncio.run(run())


@pytest.mark.parametrize("stop", [*STOPS, give_up_the_stop])
def test_who_stops_a_consumer_is_not_cancelled(
    kafka: KafkaService, topic: str, stop: Stop
) -> None:
    """Neither right after its start nor while its fetches fail; it lets go of all."""
    assert stopped(TidyConsumer, stop, topic, kafka.bootstrap) == (False, 0, 0)


@pytest.mark.parametrize("stop", STOPS)
def test_the_consumer_of_the_library_cancels(
    kafka: KafkaService, topic: str, stop: Stop
) -> None:
    """Where it no longer does, ours is needed no more."""
    is_cancelled, *_ = stopped(AIOKafkaConsumer, stop, topic, kafka.bootstrap)
    assert is_cancelled


def test_a_partition_that_is_not_there_is_waited_for(
    kafka: KafkaService, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Who reads it is told when it comes, and has not ended before."""
    caplog.set_level(logging.WARNING)
    settings = KafkaSettings(bootstrap=kafka.bootstrap)

    async def run() -> CommittedBatch:
        batches = committed_batches(settings, topic, 1)
        first = asyncio.ensure_future(anext(batches))
        async with asyncio.timeout(PATIENCE_S):
            while "event=waiting" not in caplog.text:
                assert not first.done()
                await asyncio.sleep(0.1)
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await asyncio.to_thread(admin.create_partitions, {topic: 2})
        admin.close()
        batch = await asyncio.wait_for(first, PATIENCE_S)
        await batches.aclose()
        return batch

    assert asyncio.run(run()).records == []
