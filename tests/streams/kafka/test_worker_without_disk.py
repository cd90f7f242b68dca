"""A worker that can write no byte to any file."""

import os
import resource
import time
from pathlib import Path

import pytest

from tests.live_lists import LiveLists, applied, assert_all_applied, joined, soon
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running, settings_of, waited_until

pytestmark = pytest.mark.broker

ROLES = ("--role", "ingest", "--role", "fold")


def without_a_disk() -> None:
    """In a process that is about to become another: write to no file any more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_worker_needs_no_disk(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Not a byte can be written to any file, its own log included: it works, and stops.

    Its state is in Kafka; nothing that it writes elsewhere is needed.
    """
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings, nothing = settings_of(config), tmp_path / "nothing.log"
    nothing.touch()
    environment = {
        **os.environ,
        "TMPDIR": "/dev/full",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    with (
        running(
            config, Path("/dev/full"), *ROLES,
            env=environment, preexec_fn=without_a_disk,
        ) as worker,
        LiveLists(settings) as lists,
    ):  # fmt: skip
        waited_until(lambda: joined(settings) > 200, nothing)
        assert worker.kill("fold")
        time.sleep(3.0)
        lists.finish()
        everything = 2 * lists.n_lists
        waited_until(lambda: applied(settings) >= everything, nothing)
        status, _ = worker.stop()
    assert status == 0
    assert_all_applied(settings, lists)
