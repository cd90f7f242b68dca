"""No room on the disk of a broker."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.broker import Broker
from producers.topic_reader import read_records
from rankstream.wire.topics import CLICKS, QUERIES
from tests.live_lists import LiveLists, applied, assert_all_applied, joined, soon
from tests.services import RedisService
from tests.session.cases import ALL_CASES
from tests.small_disks import Limited, Mounted, SmallDisk, may_mount
from tests.worker_process import configured, running, settings_of, waited_until

pytestmark = pytest.mark.broker

ROLES = ("--role", "ingest", "--role", "fold")


KINDS: list[type[SmallDisk]] = [Mounted] if may_mount() else [Limited]


@pytest.fixture(params=[Limited, Mounted] if ALL_CASES else KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """The disk of a broker: a small one, or a bound where none may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = request.param(folder)
    yield made
    made.close()


def test_a_broker_whose_disk_is_full_loses_nothing(
    disk: SmallDisk, redis_server: RedisService, tmp_path: Path
) -> None:
    """It takes nothing more. What it acknowledged is there when it was started again.

    What it did not is sent then. The worker waits or starts again, and counts all once.
    """
    broker, log = Broker(disk.folder / "kafka"), tmp_path / "worker.log"
    try:
        broker.start()
        config = configured(
            tmp_path, broker.bootstrap, redis_server.url, "full", soon()
        )
        settings = settings_of(config)
        with running(config, log, *ROLES) as worker, LiveLists(settings) as lists:
            waited_until(lambda: joined(settings) > 200, log)
            assert broker.pid is not None
            disk.fill(broker.pid)
            n_acknowledged = stood_still(lists)
            # It ends itself or hangs; an operator makes room and starts it again.
            broker.kill()
            disk.free()
            broker.start()
            assert n_acknowledged <= sum(
                1 for topic in (QUERIES, CLICKS) for _ in read_records(settings, topic)
            )
            lists.finish()
            everything = 2 * lists.n_lists
            waited_until(lambda: applied(settings) >= everything, log)
            status, _ = worker.stop()
        assert status == 0
        assert "event=refused" not in worker.said()
        assert_all_applied(settings, lists)
    finally:
        broker.kill()


def stood_still(lists: LiveLists) -> int:
    """What is acknowledged, once that was so for a while and more had been sent."""
    for _ in range(20):
        before, n_sent = lists.n_acknowledged, lists.n_lists
        time.sleep(3.0)
        if lists.n_acknowledged == before and lists.n_lists > n_sent:
            return before
    raise AssertionError("a broker without room must acknowledge nothing more")
