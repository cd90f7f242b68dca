"""Snapshots from their topic to Redis, while either of them comes and goes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from deploy.redis_server import Redis
from rankstream.settings import Settings, load_settings
from rankstream.snapshots import Pointer, SnapshotStore, StoreUnavailable
from rankstream.wire.topics import SNAPSHOTS, full_name
from streams.kafka.committed_reader import client_options, committed_batches
from streams.roles import publisher as module
from streams.roles.publisher import Publisher, publish_snapshots
from tests.services import KafkaService, RedisService
from tests.snapshot_factory import envelope

pytestmark = pytest.mark.broker


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, keep=4, retries=0)
    yield made
    made.close()


def give(publisher: Publisher, *versions: int, epoch: int = 0) -> None:
    """Records of the topic, as the learner writes them."""
    for version in versions:
        key = f"m/{epoch}.{version}".encode()
        publisher.take(key, envelope(version, epoch=epoch))


async def until(is_so: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait for something to become true, without holding up the loop."""
    deadline = time.monotonic() + timeout_s
    while not await asyncio.to_thread(is_so):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_only_the_last_versions_wait(store: SnapshotStore) -> None:
    """What Redis would drop at once is not sent, nor kept."""
    publisher = Publisher(store, keep=4)
    give(publisher, *range(100))
    assert publisher.counters()["snapshots_pending"] == 4
    assert publisher.push_pending() == 4
    assert publisher.push_pending() == 0
    assert store.versions("m") == [(0, version) for version in range(96, 100)]
    counts = publisher.counters()
    assert counts["snapshots_coalesced"] == 96
    assert counts["snapshots_published"] == 4
    assert counts["snapshots_pending"] == 0


def test_what_is_dropped_after_it_was_published_was_not_passed_over(
    store: SnapshotStore,
) -> None:
    """Room for new versions is made of those that Redis has."""
    publisher = Publisher(store, keep=4)
    give(publisher, *range(4))
    assert publisher.push_pending() == 4
    give(publisher, *range(4, 7))
    assert publisher.counters()["snapshots_coalesced"] == 0
    assert publisher.push_pending() == 3


def test_repeats_and_old_versions_change_nothing(store: SnapshotStore) -> None:
    """A topic that is read again from its beginning publishes nothing again."""
    publisher = Publisher(store, keep=4)
    give(publisher, 1, 2, 3)
    assert publisher.push_pending() == 3
    give(publisher, 1, 2, 3)
    assert publisher.push_pending() == 0
    other = Publisher(store, keep=4)
    give(other, 1, 2, 3, 4)
    assert other.push_pending() == 1


def test_a_repeated_newest_version_takes_no_room(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it replace what was taken first."""
    sizes = [len(envelope(version)) for version in (1, 2)]
    monkeypatch.setattr(module, "KEPT_BYTES", sum(sizes))
    publisher = Publisher(store, keep=4)
    give(publisher, 1, 2, 2, 2)
    assert publisher.push_pending() == 2
    assert store.versions("m") == [(0, 1), (0, 2)]


def test_a_rollback_is_published_and_not_undone(store: SnapshotStore) -> None:
    """The record under the model's own name is the newest; the old epoch stays out."""
    publisher = Publisher(store, keep=4)
    give(publisher, 1, 2, 3)
    publisher.take(b"m", envelope(2, epoch=1))
    give(publisher, 4, 5)
    publisher.push_pending()
    assert store.standing(["m"]) == {"m": Pointer(1, 2)}


def test_learned_versions_are_served_again_after_a_rollback(
    store: SnapshotStore,
) -> None:
    """In the epoch of the record that said so, until the next rollback."""
    publisher = Publisher(store)
    give(publisher, 1, 2, 3)
    publisher.take(b"m", envelope(1, epoch=1))
    give(publisher, 4)
    publisher.take(b"m/follow", envelope(4, epoch=2))
    give(publisher, 4, 5)
    publisher.push_pending()
    assert store.standing(["m"]) == {"m": (2, 5)}
    publisher.take(b"m", envelope(2, epoch=3))
    give(publisher, 6)
    publisher.push_pending()
    assert store.standing(["m"]) == {"m": (3, 2)}


def test_bad_records_are_counted_and_tombstones_heeded(store: SnapshotStore) -> None:
    """Nothing in the topic stops a publisher."""
    publisher = Publisher(store, keep=4)
    publisher.take(None, None)
    publisher.take(b"\xff/0.1", None)
    publisher.take(b"m/0.1", b"garbage")
    publisher.take(b"m/0.2", envelope(1))
    publisher.take(b"n", envelope(1))
    give(publisher, 1, 2, 3)
    publisher.take(b"m/0.2", None)
    publisher.take(b"m/0.3", None)
    assert publisher.push_pending() == 2
    assert store.versions("m") == [(0, 1), (0, 3)]
    assert publisher.counters()["snapshots_rejected"] == 3


def test_an_emptied_redis_is_filled_again(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """The same versions with the same bytes come back, also a single lost payload."""
    publisher = Publisher(store, keep=4)
    give(publisher, *range(1, 9))
    publisher.push_pending()
    with redis.Redis.from_url(redis_server.url) as client:
        before = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        client.delete(*before)
        assert publisher.check() == 1
        assert publisher.push_pending() == 4
        after = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        assert after == before
        client.delete(f"{namespace}:snapshot:m:0.8")
        assert publisher.check() == 1
        assert publisher.push_pending() == 1
        assert {key: client.dump(key) for key in before} == before
    assert publisher.check() == 0
    assert publisher.counters()["redis_refills"] == 2


def test_a_redis_of_an_older_time_is_brought_forward(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """One that comes back without its last writes gets them again."""
    publisher = Publisher(store, keep=4)
    give(publisher, 1)
    publisher.push_pending()
    with redis.Redis.from_url(redis_server.url) as client:
        older = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        give(publisher, 2, 3)
        publisher.push_pending()
        client.delete(*client.keys(f"{namespace}:*"))
        for key, value in older.items():
            client.restore(key, 0, value)
    assert store.standing(["m"]) == {"m": Pointer(0, 1)}
    assert publisher.check() == 1
    assert publisher.push_pending() == 2
    assert store.standing(["m"]) == {"m": Pointer(0, 3)}


def test_a_redis_that_comes_and_goes(tmp_path: Path) -> None:
    """Away, back and empty, flushed: the newest version is there soon after."""
    server = Redis(tmp_path)
    server.start()
    store = SnapshotStore(server.url, keep=4, retries=0, timeout_s=0.5)

    def served() -> Pointer | None:
        try:
            return store.standing(["m"]).get("m")
        except StoreUnavailable:
            return None

    async def scenario() -> dict[str, int]:
        stop = asyncio.Event()
        publisher = Publisher(store, keep=4)
        running = asyncio.create_task(publisher.run(stop))
        give(publisher, 1)
        await asyncio.sleep(0.1)
        assert served() is None
        publisher.caught_up()
        await until(lambda: served() == (0, 1))
        server.kill()
        gone_s = time.monotonic()
        for version in range(2, 200):
            give(publisher, version)
            await asyncio.sleep(0.01)
        failures = publisher.counters()["publish_failures"]
        assert 1 <= failures <= 2 * (time.monotonic() - gone_s) + 1
        server.start()
        await until(lambda: served() == (0, 199))
        assert len(store.versions("m")) == 4
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        await until(lambda: len(store.versions("m")) == 4)
        assert served() == (0, 199)
        give(publisher, 200)
        stop.set()
        await running
        assert served() == (0, 200)
        return publisher.counters()

    try:
        counts = asyncio.run(scenario())
    finally:
        server.kill()
        store.close()
    assert counts["snapshots_pending"] == 0
    assert counts["redis_refills"] >= 1


async def create_topic(settings: Settings) -> None:
    """The compacted topic of snapshots."""
    admin = AIOKafkaAdminClient(**client_options(settings.kafka))
    await admin.start()
    name = full_name(settings.namespace, SNAPSHOTS)
    await admin.create_topics([NewTopic(name, 1, 1)])
    await admin.close()


async def produce(settings: Settings, versions: range, *, commit: bool) -> None:
    """One transaction of snapshots, committed or aborted."""
    producer = AIOKafkaProducer(
        **client_options(settings.kafka),
        transactional_id=f"{settings.namespace}-learn",
    )
    await producer.start()
    topic = full_name(settings.namespace, SNAPSHOTS)
    await producer.begin_transaction()
    for version in versions:
        key = f"m/0.{version}".encode()
        await producer.send_and_wait(topic, envelope(version), key=key, partition=0)
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    await producer.stop()


def test_committed_snapshots_reach_redis(
    kafka: KafkaService, redis_server: RedisService, namespace: str
) -> None:
    """Committed versions are published soon, aborted ones never; losses are mended."""
    variables = {
        "RANKSTREAM_NAMESPACE": namespace,
        "RANKSTREAM_KAFKA__BOOTSTRAP": f"'{kafka.bootstrap}'",
        "RANKSTREAM_REDIS__URL": f"'{redis_server.url}'",
    }
    settings = load_settings(None, variables)
    store = SnapshotStore(redis_server.url, namespace=namespace)

    def served() -> Pointer | None:
        return store.standing(["m"]).get("m")

    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(publish_snapshots(settings, stop))
        await asyncio.sleep(0.5)
        await create_topic(settings)
        await produce(settings, range(1, 60), commit=True)
        await until(lambda: served() == (0, 59))
        assert len(store.versions("m")) == settings.redis.keep_versions
        await produce(settings, range(100, 103), commit=False)
        await produce(settings, range(60, 62), commit=True)
        await until(lambda: served() == (0, 61))
        with redis.Redis.from_url(redis_server.url) as client:
            client.delete(*client.keys(f"{namespace}:*"))
        await until(lambda: served() == (0, 61))
        if kafka.broker is not None:
            await asyncio.to_thread(kafka.broker.kill)
            await asyncio.sleep(2.0)
            await asyncio.to_thread(kafka.broker.start)
        await produce(settings, range(62, 64), commit=True)
        await until(lambda: served() == (0, 63))
        stop.set()
        await running

    asyncio.run(scenario())
    assert Pointer(0, 100) not in store.versions("m")
    store.close()


def test_reading_waits_for_a_broker() -> None:
    """Where nobody answers, a reader waits instead of failing."""
    nowhere = msgspec.structs.replace(Settings().kafka, bootstrap="127.0.0.1:1")

    async def scenario() -> None:
        batches = committed_batches(nowhere, "snapshots")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(batches), 1.5)
        await batches.aclose()

    asyncio.run(scenario())
