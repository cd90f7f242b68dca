"""A stage slower than its source: what waits lies in Kafka, not in memory."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from streams.topology import group_of
from tests.services import KafkaService
from tests.streams.kafka.toy import PARTITIONS, SOURCE, ToyRun, wait_until
from tests.worker_process import PATIENCE_S

MB = 1 << 20
SIZE = 64 << 10
N_RECORDS = 5_600
"""350 MB, which take nine minutes to fold: filling them takes far less anywhere."""

SLOW_MS = 100
SESSION_S = 60.0
"""No machine is so busy that a member is silent for so long."""

MOST_MB = 200
"""What waits, a fetch of every partition, and what Python keeps of both for a while."""


@pytest.fixture
def run(kafka: KafkaService, namespace: str, tmp_path: Path) -> Iterator[ToyRun]:
    """Topics of the test's own, and its workers."""
    toy = ToyRun(kafka.bootstrap, namespace, tmp_path)
    yield toy
    toy.close()


def fill(run: ToyRun) -> None:
    """Give the source far more than a worker may hold."""
    producer = KafkaProducer(bootstrap_servers=run.bootstrap, acks="all", linger_ms=20)
    for number in range(N_RECORDS):
        partition = number % PARTITIONS
        value = number.to_bytes(8, "big").ljust(SIZE, b".")
        producer.send(run.name(SOURCE), key=b"k", value=value, partition=partition)
        run.sent[partition].append((b"k", number))
    producer.close()


def n_committed(run: ToyRun) -> int:
    """Records of the source that its group has committed."""
    group = group_of(run.namespace, "toy")
    admin = KafkaAdminClient(bootstrap_servers=run.bootstrap)
    found = admin.list_group_offsets({group: None})[group]
    admin.close()
    return sum(max(0, each.offset) for each in found.values())


@pytest.mark.broker
def test_memory_is_flat_while_the_lag_is_large(run: ToyRun) -> None:
    """No rebalance either: a poll that is long in coming is not a member that left."""
    worker = run.start(
        RANKSTREAM_TOY_SLOW_MS=str(SLOW_MS), RANKSTREAM_TOY_SESSION_S=str(SESSION_S)
    )
    run.wait_for(worker, "event=restored")
    wait_until(lambda: run.said(worker).count("event=restored") == PARTITIONS)
    process = psutil.Process(worker.pid)
    before = process.memory_info().rss
    fill(run)
    seen = []
    began_s = time.monotonic()
    while time.monotonic() - began_s < 8.0:
        seen.append(process.memory_info().rss - before)
        time.sleep(0.1)
    assert n_committed(run) < N_RECORDS // 2
    worker.terminate()
    assert worker.wait(PATIENCE_S) == 0
    assert run.said(worker).count("event=restored") == PARTITIONS
    assert max(seen) < MOST_MB * MB, [each // MB for each in seen]
    for partition, sent in run.sent.items():
        passed = run.passed_on(partition)
        assert passed
        assert passed == [number for _, number in sent][: len(passed)]
