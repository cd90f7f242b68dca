"""The clock of a worker's machine jumps while it works; the broker's does not."""

import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from rankstream.operations.cli import main
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES, full_name
from streams.kafka.processes.child_end import CONFIGURATION_EXIT
from streams.native.compiler import compiler
from streams.topology import topics_of
from tests.live_lists import LiveLists, applied, assert_all_applied, joined, soon
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

HOUR_S = 3_600
SOURCE = Path(__file__).with_name("shifted_clock.c")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the clock is shifted by Linux' LD_PRELOAD"
)


class ShiftedClock:
    """A wall clock for processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shift"
        self.shift(0)
        library = folder / "shifted_clock.so"
        command = [*compiler(), "-shared", "-fPIC", "-O1", str(SOURCE)]
        subprocess.run([*command, "-o", str(library), "-ldl"], check=True)
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "SHIFTED_CLOCK": str(self._file),
        }

    def shift(self, seconds: float) -> None:
        """Jump, in all of them at once: so far ahead of what is true."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", round(seconds * 1e9)))


def test_the_wall_clock_jumps_and_others_count_on(tmp_path: Path) -> None:
    """Or the other test would show nothing."""
    clock = ShiftedClock(tmp_path)
    clock.shift(2 * HOUR_S)
    found = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time(), time.monotonic())"],
        env=clock.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    wall_s, monotonic_s = map(float, found.stdout.split())
    assert abs(wall_s - time.time() - 2 * HOUR_S) < 60
    assert abs(monotonic_s - time.monotonic()) < 60


@pytest.mark.broker
def test_jumps_of_a_workers_clock_change_nothing(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Two hours forward, then back, then behind: nothing is refused, late or expired.

    Two, as a broker refuses records of a client that is more than one ahead.
    """
    clock, log = ShiftedClock(tmp_path), tmp_path / "worker.log"
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings = settings_of(config)
    roles = ("--role", "ingest", "--role", "fold")
    with (
        running(config, log, *roles, env=clock.environment) as worker,
        LiveLists(settings) as lists,
    ):
        for shift_s in (2 * HOUR_S, 0, -2 * HOUR_S):
            before = joined(settings)
            waited_until(lambda: joined(settings) > before + 200, log)  # noqa: B023
            clock.shift(shift_s)
        before = joined(settings)
        waited_until(lambda: joined(settings) > before + 200, log)
        # One that starts with a wrong clock goes on, too.
        waited_until(lambda: worker.kill("fold"), log)
        waited_until(lambda: worker.kill("ingest"), log)
        lists.finish()
        everything = 2 * lists.n_lists
        waited_until(lambda: applied(settings) >= everything, log)
        assert worker.stop()[0] == 0
    assert_all_applied(settings, lists)
    said = worker.said()
    assert said.count("event=child-ended") == 2, said
    (told_s, *_) = map(int, re.findall(r"event=clock-differs .* (\d+) s ahead", said))
    assert abs(told_s - 2 * HOUR_S) < 60


@pytest.mark.broker
def test_times_of_the_worker_itself_may_be_refused_and_that_is_said(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """In topics of before, which `--alter` corrects: then the same worker goes on."""
    clock, log = ShiftedClock(tmp_path), tmp_path / "worker.log"
    clock.shift(2 * HOUR_S)
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings = settings_of(config)
    as_before(settings)
    roles = ("--role", "ingest", "--role", "fold")
    environment = clock.environment
    with LiveLists(settings) as lists:
        with running(config, log, *roles, env=environment) as worker:
            assert worker.process.wait(PATIENCE_S) == CONFIGURATION_EXIT
            said = worker.said()
        assert "event=topics-at-risk" in said
        assert "the brokers must take the time that this machine gives" in said
        assert "run `rankstream topics create --alter`" in said
        assert main(["topics", "create", "--alter", "--config", str(config)]) == 0
        with running(config, log, *roles, env=environment) as worker:
            waited_until(lambda: joined(settings) > 200, log)
            lists.finish()
            everything = 2 * lists.n_lists
            waited_until(lambda: applied(settings) >= everything, log)
            assert worker.stop()[0] == 0
    assert_all_applied(settings, lists)


def as_before(settings: Settings) -> None:
    """Give all topics but the inputs what releases of before gave them."""
    older = {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(HOUR_S * 1_000),
    }
    client = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    client.alter_configs(
        [
            ConfigResource(
                ConfigResourceType.TOPIC,
                full_name(settings.namespace, topic.name),
                older,
            )
            for topic in topics_of(settings.kafka)
            if topic.name not in (QUERIES, CLICKS)
        ]
    )
    client.close()
