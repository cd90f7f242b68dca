"""Records that a broker keeps open although their transaction is over."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType

from tests.services import KafkaService
from tests.streams.kafka.toy import OUT, SOURCE, STATE, ToyRun, wait_until
from tests.worker_process import PATIENCE_S

VERIFICATION = "transaction.partition.verification.enable"
NODE = "1"


@pytest.fixture
def run(kafka: KafkaService, namespace: str, tmp_path: Path) -> Iterator[ToyRun]:
    """Topics of the test's own, on a broker that takes what no transaction knows."""
    verify(kafka.bootstrap, "false")
    toy = ToyRun(kafka.bootstrap, namespace, tmp_path)
    yield toy
    toy.close()
    verify(kafka.bootstrap, "true")


def verify(bootstrap: str, value: str) -> None:
    """Have the broker ask its coordinator about each partition of a transaction."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    node = ConfigResource(ConfigResourceType.BROKER, NODE, {VERIFICATION: value})
    admin.alter_configs([node])
    admin.close()


async def leave_open(run: ToyRun, records: dict[str, bytes]) -> None:
    """Write to partition 0 of topics what no coordinator will ever end."""
    producer = AIOKafkaProducer(
        bootstrap_servers=run.bootstrap,
        transactional_id=run.name(f"rankstream-toy-{SOURCE}-0"),
    )
    await producer.start()
    await producer.begin_transaction()
    for topic, value in records.items():
        place = TopicPartition(run.name(topic), 0)
        # As if the coordinator had been told, and had forgotten.
        producer._txn_manager._txn_partitions.add(place)
        future = await producer.send(
            place.topic, partition=0, key=b"sequence", value=value
        )
        await future
    # Its end would end the transaction.
    producer._sender.sender_task.cancel()
    await producer.client.close()
    producer._closed = True


def reaches_end(run: ToyRun, topic: str) -> bool:
    """Whether readers of committed records can read all of partition 0."""
    place = TopicPartition(run.name(topic), 0)
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = KafkaConsumer(
            bootstrap_servers=run.bootstrap, isolation_level=isolation
        )
        ends.append(consumer.end_offsets([place])[place])
        consumer.close()
    return bool(ends[0] == ends[1])


def work(run: ToyRun) -> str:
    """Let a worker fold some records and stop; what it said."""
    with run.load(per_s=1_000):
        worker = run.start()
        run.wait_for(worker, "event=restored")
        time.sleep(1.0)
    run.wait_for_all()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    return run.said(worker)


def test_what_hangs_is_aborted_at_the_next_start(run: ToyRun) -> None:
    """The next commit would bring it in: an output twice, and a state that was not."""
    assert "ending-what-hangs" not in work(run)
    sequence = len(run.passed_on(0))
    again = msgspec.msgpack.encode((sequence + 1, [7, 7, 7]))
    asyncio.run(leave_open(run, {OUT: again, STATE: again}))
    assert not reaches_end(run, STATE)

    assert "event=ending-what-hangs partition=toy[0]" in work(run)
    assert run.verdict() == {"lost": 0, "double": 0, "wrong": 0}
    wait_until(lambda: reaches_end(run, STATE) and reaches_end(run, OUT))
