"""A replica takes over where a Redis was, and it is behind.

Users name one address. It is moved to the promoted replica: a name, a virtual address
or a proxy, which is what `Gate` is here. Both servers are real, and replicate.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
import redis

from deploy.redis_server import Redis
from rankstream.experiment_records import ExperimentRecord, running
from rankstream.experiments import Experiments
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings
from rankstream.snapshots import Pointer, SnapshotStore, StoreUnavailable
from tests.streams.kafka.toy import wait_until
from tests.streams.redis_copies.publishing import Publishing
from tests.tcp_gate import Gate, watched
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker

NOW_MS = 1_700_000_000_000
BOOST = ExperimentSettings(rankers={"old": "m", "new": ""})
ENDED = ExperimentSettings(rankers={"a": "", "b": ""}, epoch=4)
BEFORE = {"boost": running(BOOST), "ended": running(ENDED)}
AFTER = {
    "boost": running(msgspec.structs.replace(BOOST, epoch=2)),
    "ended": ExperimentRecord(4),
}


class Pair(NamedTuple):
    """A Redis, its replica, the address that clients know, and the link between."""

    first: Redis
    second: Redis
    address: Gate
    link: Gate

    def store(self) -> SnapshotStore:
        """What a client of the address has; it asks once."""
        url = f"redis://127.0.0.1:{self.address.port}/0"
        return SnapshotStore(url, keep=4, timeout_s=PATIENCE_S, retries=0)

    def follow(self, server: Redis, port: int | None) -> None:
        """Make a server a replica, or none."""
        words = ("127.0.0.1", str(port)) if port else ("NO", "ONE")
        with redis.Redis.from_url(server.url) as client:
            client.execute_command("REPLICAOF", *words)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Both run; the second one follows the first."""
    first, second = Redis(tmp_path / "first"), Redis(tmp_path / "second")
    try:
        first.start()
        second.start()
        with Gate(first.port) as address, Gate(first.port) as link:
            made = Pair(first, second, address, link)
            made.follow(second, link.port)
            yield made
    finally:
        first.kill()
        second.kill()


class Service:
    """What ranks, and what it was served so far; nothing of it may go back."""

    def __init__(self, store: SnapshotStore) -> None:
        self.ranker = Ranker("m", store=store)
        self.experiments = Experiments(store)
        self.version = self.epoch = -1
        self.has_ended = False

    def look(self) -> None:
        """Ask the store, then serve."""
        self.ranker.refresh()
        self.experiments.refresh()
        version = self.ranker.rank(np.ones((2, 3))).version
        boost = self.experiments.of("boost", unit="s", now_ms=NOW_MS)
        ended = self.experiments.of("ended", unit="s", now_ms=NOW_MS)
        assert boost is not None
        assert version >= self.version
        assert boost.settings.epoch >= self.epoch
        assert ended is None or not self.has_ended, "an experiment that ended runs"
        self.version, self.epoch = version, boost.settings.epoch
        self.has_ended = ended is None


def moved(pair: Pair) -> None:
    """The first one dies; the address leads to the second, which is promoted."""
    pair.first.kill()
    pair.address.lead_to(pair.second.port)
    pair.address.cut()


def demoted(pair: Pair) -> None:
    """The first one lives on as a replica, and so do its connections."""
    pair.follow(pair.second, None)
    pair.address.lead_to(pair.second.port)
    pair.follow(pair.first, pair.second.port)


def serves(store: SnapshotStore, version: int) -> bool:
    """Whether this version is the one that is served."""
    return store.standing(["m"]) == {"m": (0, version)}


@pytest.mark.parametrize("fail_over", [moved, demoted])
def test_services_never_go_back_and_the_replica_is_filled(
    pair: Pair, fail_over: Callable[[Pair], None]
) -> None:
    """Versions, epochs and the end of an experiment; new ones go on afterwards."""
    stores = [pair.store() for _ in range(3)]
    publishing, service = Publishing(stores[0]), Service(stores[1])
    replica = SnapshotStore(pair.second.url, keep=4)
    publishing.give(1, 2, 3)
    publishing.show(BEFORE)
    assert publishing.is_level()
    service.look()
    wait_until(lambda: serves(replica, 3))
    pair.link.lead_to(None)
    pair.link.cut()
    publishing.give(4, 5)
    publishing.show(AFTER)
    assert publishing.is_level()
    service.look()
    assert (service.version, service.epoch, service.has_ended) == (5, 2, True)
    assert serves(replica, 3)

    with watched(service.look) as raised:
        fail_over(pair)
        if fail_over is moved:
            wait_until(lambda: service.ranker.trouble == "")
            assert not publishing.is_level()
            with pytest.raises(StoreUnavailable, match=r"READONLY|ReadOnlyError"):
                publishing.turn()
            pair.follow(pair.second, None)
        wait_until(
            lambda: publishing.is_level() and replica.standing(["m"]) == {"m": (0, 5)},
        )
        assert replica.verify("m") == [(Pointer(0, each), "") for each in (2, 3, 4, 5)]
        publishing.give(6)
        wait_until(publishing.is_level)
        wait_until(lambda: service.version == 6)
    assert raised == []
    fresh = Service(stores[2])
    fresh.look()
    assert (fresh.version, fresh.epoch, fresh.has_ended) == (6, 2, True)
    for store in (*stores, replica):
        store.close()
