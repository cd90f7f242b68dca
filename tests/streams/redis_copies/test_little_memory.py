"""A Redis whose memory others use up: it evicts what is ours, or takes no more."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from deploy.redis_server import Redis
from rankstream.experiment_records import (
    ExperimentRecord,
    running,
    stored_records,
)
from rankstream.experiments import Experiments
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings
from rankstream.snapshots import SnapshotStore, StoreUnavailable
from tests.streams.redis_copies.publishing import Publishing

pytestmark = pytest.mark.broker

MB = 1 << 20
ROOM_BYTES = 4 * MB
"""Beyond what an empty Redis takes."""

FOREIGN_BYTES = 4_096
BOOST = ExperimentSettings(rankers={"old": "m", "new": ""})
RECORDS = {"boost": running(BOOST), "ended": ExperimentRecord(4)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    """A Redis with little memory."""
    made = Redis(tmp_path)
    made.start()
    with redis.Redis.from_url(made.url) as client:
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", used + ROOM_BYTES)
    yield made
    made.kill()


@pytest.fixture
def client(server: Redis) -> Iterator[redis.Redis]:
    """Another application of that Redis."""
    with redis.Redis.from_url(server.url) as made:
        yield made


@pytest.fixture
def store(server: Redis) -> Iterator[SnapshotStore]:
    """Ours."""
    made = SnapshotStore(server.url, namespace="shop", keep=4, retries=0)
    yield made
    made.close()


def flood(client: redis.Redis, n_bytes: int) -> int:
    """What another application writes; how many of its records were taken."""
    with client.pipeline(transaction=False) as writing:
        for number in range(n_bytes // FOREIGN_BYTES):
            writing.set(f"foreign:{number}", b"x" * FOREIGN_BYTES)
        answers = writing.execute(raise_on_error=False)
    return sum(answer is True for answer in answers)


def ours(client: redis.Redis) -> list[bytes | str]:
    """Keys of ours that are there."""
    return client.keys("shop:*")


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random"])
def test_what_was_evicted_is_put_back_and_services_go_on(
    store: SnapshotStore, client: redis.Redis, policy: str
) -> None:
    """Whichever keys went, and however often; readers keep the last good ones."""
    client.config_set("maxmemory-policy", policy)
    publishing = Publishing(store)
    publishing.give(1, 2, 3)
    publishing.show(RECORDS)
    publishing.turn()
    ranker, followed = Ranker("m", store=store), Experiments(store)
    ranker.load()
    assert followed.refresh()
    n_evicted = 0
    for version in range(4, 8):
        before = ours(client)
        # Redis tells no nearer how long a key was not used.
        time.sleep(1.1)
        flood(client, 4 * ROOM_BYTES)
        n_evicted += len(set(before) - set(ours(client)))
        ranker.refresh()
        followed.refresh()
        assert ranker.rank([[1.0, 2.0, 3.0]]).version == version - 1
        assert followed.of("boost", unit="s", now_ms=0) is not None
        assert followed.of("ended", unit="s", now_ms=0) is None
        client.delete(*client.keys("foreign:*"))
        publishing.turn()
        assert publishing.is_level()
        assert store.standing(["m"]) == {"m": (0, version - 1)}
        assert stored_records(store) == (RECORDS, {})
        ranker.refresh()
        assert followed.refresh()
        assert (ranker.trouble, followed.trouble) == ("", "")
        publishing.give(version)
        publishing.turn()
        assert ranker.refresh()
    assert n_evicted > 4
    assert publishing.publisher.counters()["redis_refills"] >= 1


def test_where_nothing_is_evicted_all_waits_for_room(
    store: SnapshotStore, client: redis.Redis
) -> None:
    """What is there stays and is served; the newest comes once there is room."""
    publishing = Publishing(store)
    publishing.give(1, 2)
    publishing.show(RECORDS)
    publishing.turn()
    before = {key: client.dump(key) for key in ours(client)}
    assert flood(client, 2 * ROOM_BYTES) < 2 * ROOM_BYTES // FOREIGN_BYTES
    # What the flood's own buffers took is free again by now.
    client.config_set("maxmemory", client.info("memory")["used_memory"] - MB)
    later = running(msgspec.structs.replace(BOOST, epoch=2))
    publishing.show(RECORDS | {"boost": later})
    ranker = Ranker("m", store=store)
    for version in range(3, 20):
        publishing.give(version)
        with pytest.raises(StoreUnavailable, match=r"OOM|OutOfMemory"):
            publishing.turn()
    assert {key: client.dump(key) for key in ours(client)} == before
    ranker.load()
    assert (ranker.version, ranker.trouble) == (2, "")
    assert publishing.publisher.counters()["snapshots_pending"] == 4

    assert publishing.publisher.counters()["publish_failures"] == 17
    client.delete(*client.keys("foreign:*"))
    assert publishing.is_level()
    assert ranker.refresh()
    assert store.versions("m") == [(0, version) for version in range(16, 20)]
    assert stored_records(store).records["boost"] == later


def test_a_model_too_large_for_redis_holds_nothing_else_back(
    store: SnapshotStore, client: redis.Redis
) -> None:
    """Others and experiments go in, whatever comes first."""
    publishing = Publishing(store)
    publishing.give(1, model="large", n_features=2 * ROOM_BYTES // 4)
    publishing.give(1)
    publishing.show(RECORDS)
    with pytest.raises(StoreUnavailable, match=r"OOM|OutOfMemory"):
        publishing.turn()
    assert store.standing(["large", "m"]) == {"m": (0, 1)}
    assert stored_records(store) == (RECORDS, {})
    client.config_set("maxmemory", 16 * ROOM_BYTES)
    publishing.turn()
    assert store.standing(["large", "m"]) == {"large": (0, 1), "m": (0, 1)}
