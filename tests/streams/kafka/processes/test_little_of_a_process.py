"""A worker's processes have little: memory that ends, descriptors that are counted."""

import contextlib
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.broker import Broker
from deploy.redis_server import Redis
from tests.live_lists import LiveLists, applied, assert_all_applied, joined, soon
from tests.services import KafkaService, RedisService
from tests.tcp_gate import Gate
from tests.worker_process import (
    WorkerProcess,
    configured,
    running,
    settings_of,
    waited_until,
)

pytestmark = pytest.mark.broker

ROLES = ("ingest", "fold", "publish")
WORDS = tuple(word for role in ROLES for word in ("--role", role))

N_CUT = 200
"""Connections that are cut at least, however long clients take to connect again."""

CUT_EVERY_S = 0.5
STEADY_S = 2.0
MOST_DESCRIPTORS = 256
SLACK = 5


def leave_no_more_memory(process: psutil.Process) -> None:
    """Let it have no more than it uses: what is merely reserved does not count."""
    _, most = resource.prlimit(process.pid, resource.RLIMIT_DATA)
    has: int = process.memory_info().data
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (has, most))


def awaited(worker: WorkerProcess, role: str) -> psutil.Process:
    """The process of a role that works."""
    for _ in range(600):
        child = worker.child(role)
        if child is not None:
            return child
        time.sleep(0.1)
    raise AssertionError(f"{role} must run")


def test_a_process_that_runs_out_of_memory_is_started_again(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """It ends and says so; nothing is lost or double.

    The fold's, which keeps every list until its window closes; ingestion keeps none.
    """
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings, log = settings_of(config), tmp_path / "worker.log"
    ended = "event=child-ended role=fold "
    with (
        running(config, log, *WORDS[:4]) as worker,
        LiveLists(settings, padding=4_000) as lists,
    ):
        for _ in range(2):
            before, n_ended = joined(settings), worker.said().count(ended)
            waited_until(lambda: joined(settings) > before + 200, log)  # noqa: B023
            leave_no_more_memory(awaited(worker, "fold"))
            waited_until(lambda: worker.said().count(ended) > n_ended, log)  # noqa: B023
        lists.finish()
        everything = 2 * lists.n_lists
        waited_until(lambda: applied(settings) >= everything, log)
        assert worker.stop()[0] == 0
    assert_all_applied(settings, lists)


@pytest.fixture
def gates() -> Iterator[tuple[Gate, Gate]]:
    """Where Kafka and Redis are reached."""
    with Gate(None) as kafka, Gate(None) as redis:
        yield kafka, redis


def descriptors(worker: WorkerProcess) -> dict[str, int]:
    """How many files and sockets each process has open."""
    while True:
        with contextlib.suppress(psutil.NoSuchProcess):  # one was just started again
            return {role: awaited(worker, role).num_fds() for role in ROLES}


def steady_descriptors(worker: WorkerProcess) -> dict[str, int]:
    """The same, once all have connected to whatever they connect to."""
    now = descriptors(worker)

    def are_steady() -> bool:
        nonlocal now
        before = now
        time.sleep(STEADY_S)
        now = descriptors(worker)
        return all(abs(now[role] - before[role]) <= 1 for role in ROLES)

    waited_until(are_steady, worker.log)
    return now


def ended(worker: WorkerProcess) -> set[str]:
    """Roles of which a process ended."""
    return set(re.findall(r"event=child-ended role=(\w+)", worker.said()))


def test_descriptors_return_after_many_lost_connections(
    gates: tuple[Gate, Gate], tmp_path: Path
) -> None:
    """To what they were in the same processes; nothing is lost or double.

    Few end, as a client may give up on a machine that has much else to do.
    """
    to_kafka, to_redis = gates
    advertised = f"advertised.listeners=PLAINTEXT://127.0.0.1:{to_kafka.port}\n"
    broker = Broker(tmp_path / "kafka", more=advertised)
    redis, log = Redis(tmp_path / "redis"), tmp_path / "worker.log"
    try:
        broker.start()
        redis.start()
        to_kafka.lead_to(broker.port)
        to_redis.lead_to(redis.port)
        config = configured(
            tmp_path,
            f"127.0.0.1:{to_kafka.port}",
            f"redis://127.0.0.1:{to_redis.port}/0",
            "cut",
            soon(),
        )
        settings = settings_of(config)
        with running(config, log, *WORDS) as worker, LiveLists(settings) as lists:
            for role in ROLES:
                limits = (MOST_DESCRIPTORS, MOST_DESCRIPTORS)
                awaited(worker, role).rlimit(resource.RLIMIT_NOFILE, limits)
            waited_until(lambda: joined(settings) > 200, log)
            before, n_cut = steady_descriptors(worker), 0

            def are_cut() -> bool:
                nonlocal n_cut
                n_cut += to_kafka.cut() + to_redis.cut()
                time.sleep(CUT_EVERY_S)
                return n_cut > N_CUT

            waited_until(are_cut, log)
            known = joined(settings)
            waited_until(lambda: joined(settings) > known + 200, log)

            def are_back() -> bool:
                now = descriptors(worker)
                same = before.keys() - ended(worker)
                return all(abs(now[role] - before[role]) <= SLACK for role in same)

            waited_until(are_back, log)
            lists.finish()
            everything = 2 * lists.n_lists
            waited_until(lambda: applied(settings) >= everything, log)
            assert worker.stop()[0] == 0
        assert len(ended(worker)) < len(ROLES), worker.said()
        assert_all_applied(settings, lists)
    finally:
        redis.kill()
        broker.kill()
