"""Snapshots on a real Redis: atomic, forwards only, and never torn for a reader."""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from deploy.redis_server import Redis
from rankstream.ranker import RETRY_S, Ranker
from rankstream.snapshots import (
    BATCH_BYTES,
    Pointer,
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
    decode_snapshot,
    encode_snapshot,
    rolled_back,
)
from tests.services import RedisService
from tests.snapshot_factory import envelope, snapshot
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, keep=4)
    yield made
    made.close()


@pytest.fixture
def client(redis_server: RedisService) -> Iterator[redis.Redis]:
    """Redis without any rules."""
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def until(is_so: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def serves(ranker: Ranker, version: int) -> bool:
    """Whether a ranker has come to a version."""
    return ranker.version == version


def test_a_published_version_is_read_in_one_step(store: SnapshotStore) -> None:
    """Pointer and bytes come together; nothing but the pointer once it is known."""
    assert store.current("m") is None
    assert store.publish(envelope(1))
    assert store.current("m") == (Pointer(0, 1), envelope(1))
    assert store.current("m", Pointer(0, 1)) == (Pointer(0, 1), None)
    assert store.publish(envelope(2))
    assert store.current("m", Pointer(0, 1)) == (Pointer(0, 2), envelope(2))
    assert store.load("m", Pointer(0, 1)) == envelope(1)
    assert store.load("m", Pointer(0, 9)) is None
    assert store.models() == ["m"]
    assert store.verify("m") == [(Pointer(0, 1), ""), (Pointer(0, 2), "")]


def test_the_pointer_moves_forwards_only(store: SnapshotStore) -> None:
    """Stale and repeated versions change nothing; an epoch goes before a version."""
    went_in = [
        store.publish(envelope(version, epoch=epoch))
        for epoch, version in ((0, 9), (0, 10), (0, 9), (0, 10), (1, 3), (0, 11))
    ]
    assert went_in == [True, True, False, False, True, False]
    assert store.versions("m") == [(0, 9), (0, 10), (1, 3)]
    assert store.load("m", Pointer(0, 11)) is None


def test_the_last_versions_stay(store: SnapshotStore) -> None:
    """Old versions leave with their keys, also when many come at once."""
    assert store.publish_all([envelope(version) for version in range(1, 8)]) == 7
    assert store.publish_all([envelope(version) for version in range(5, 10)]) == 2
    kept = [Pointer(0, version) for version in range(6, 10)]
    assert store.versions("m") == kept
    assert [at for at in map(Pointer, [0] * 12, range(12)) if store.load("m", at)] == (
        kept
    )
    with pytest.raises(ValueError, match="one model"):
        store.publish_all([envelope(1), envelope(1, model="n")])
    assert store.publish_all([]) == 0


def test_large_versions_go_in_by_several_scripts(store: SnapshotStore) -> None:
    """No single script carries more than a few megabytes."""
    n_features = BATCH_BYTES // 10
    versions = [envelope(at, n_features=n_features) for at in range(1, 8)]
    assert store.publish_all(versions) == 7
    assert store.current("m") == (Pointer(0, 7), versions[-1])


def test_a_bad_snapshot_does_not_go_in(store: SnapshotStore) -> None:
    """What a reader would refuse is not published."""
    with pytest.raises(SnapshotError):
        store.publish(envelope(1)[:-1])
    assert store.current("m") is None


def test_a_rollback_is_not_undone_by_the_next_version(store: SnapshotStore) -> None:
    """The old model is served in a new epoch, whatever is published in the old one."""
    store.publish_all([envelope(version) for version in (1, 2, 3)])
    assert store.publish(encode_snapshot(rolled_back(snapshot(2), 1)))
    assert not store.publish(envelope(4))
    _, served = store.current("m") or (None, None)
    assert decode_snapshot(served or b"") == snapshot(2, epoch=1)


def test_two_publishers_race(redis_server: RedisService, namespace: str) -> None:
    """Each version goes in once, in order, whoever brings it."""
    stores = [
        SnapshotStore(redis_server.url, namespace=namespace, keep=2_000)
        for _ in range(2)
    ]
    went_in: list[list[int]] = [[], []]

    def publish(which: int) -> None:
        rng = np.random.default_rng(which)
        for version in np.sort(rng.integers(1, 1_000, 700)).tolist():
            if stores[which].publish(envelope(version)):
                went_in[which].append(version)

    threads = [threading.Thread(target=publish, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = [at.version for at in stores[0].versions("m")]
    assert versions == sorted(set(versions))
    assert sorted(went_in[0] + went_in[1]) == versions


def naive_reads(
    client: redis.Redis, prefix: str, done: threading.Event, bad: list[int]
) -> None:
    """Read as a careless client does: the pointer, and then what it points to."""
    while not done.is_set():
        place = client.get(f"{prefix}:pointer:m")
        if isinstance(place, bytes):
            found = client.get(f"{prefix}:snapshot:m:{place.decode()}")
            if not found:
                bad.append(1)


def test_concurrent_readers_see_no_torn_missing_or_older_version(
    redis_server: RedisService, client: redis.Redis, namespace: str
) -> None:
    """Readers in one step are always right; one in two steps misses versions."""
    store = SnapshotStore(redis_server.url, namespace=namespace, keep=1)
    store.publish(envelope(1, n_features=5_000))
    done, bad = threading.Event(), []
    rankers = [
        Ranker("m", store=SnapshotStore(redis_server.url, namespace=namespace))
        for _ in range(3)
    ]
    served: list[list[int]] = [[], [], []]

    def read(which: int) -> None:
        ones = np.full((1, 5_000), 1 / 5_000)
        while not done.is_set():
            rankers[which].refresh()
            ranking = rankers[which].rank(ones)
            served[which].append(ranking.version)
            if abs(float(ranking.scores[0]) / ranking.version - 1.0) > 1e-3:
                bad.append(which)

    wrong: list[int] = []
    careless = threading.Thread(
        target=naive_reads, args=(client, namespace, done, wrong)
    )
    threads = [threading.Thread(target=read, args=(which,)) for which in range(3)]
    threads.append(careless)
    for thread in threads:
        thread.start()
    version, deadline = 1, time.monotonic() + 4.0

    def have_seen() -> bool:
        return bool(wrong) and all(len({*versions}) > 20 for versions in served)

    while time.monotonic() < deadline or not have_seen():
        version += 1
        store.publish(envelope(version, n_features=5_000))
        assert time.monotonic() < deadline + PATIENCE_S
    done.set()
    for thread in threads:
        thread.join()
    assert not bad
    for ranker, versions in zip(rankers, served, strict=True):
        assert ranker.failures == {}
        assert versions == sorted(versions)


def test_a_following_ranker_hears_of_each_move(store: SnapshotStore) -> None:
    """A new version is served soon after it was published."""
    store.publish(envelope(1))
    ranker = Ranker("m", store=store)
    ranker.follow()
    assert ranker.version == 1
    for version in range(2, 30):
        store.publish(envelope(version))
        until(functools.partial(serves, ranker, version))
    ranker.close()
    assert ranker.failures == {}


def test_damage_in_redis_is_refused_and_found(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """A reader keeps the last good version; `verify` names what is bad."""
    store.publish_all([envelope(1), envelope(2)])
    ranker = Ranker("m", store=store)
    ranker.load()
    store.publish(envelope(3))
    place = f"{namespace}:snapshot:m:0.3"
    for there, reason in (
        (envelope(3)[:-1], "length"),
        (envelope(2), "misplaced"),
        (envelope(3, model="n"), "model"),
        (None, "missing"),
    ):
        client.delete(place)
        if there is not None:
            client.set(place, there)
        assert not ranker.refresh()
        assert ranker.failures.pop(reason) == 1
        assert store.verify("m")[-1] == (Pointer(0, 3), reason)
    assert ranker.version == 2
    assert store.standing(["m", "n"]) == {}
    assert store.publish(envelope(3))
    assert store.standing(["m", "n"]) == {"m": Pointer(0, 3)}
    assert store.versions("m") == [(0, 1), (0, 2), (0, 3)]
    assert ranker.refresh()


def test_foreign_keys_are_typed_errors(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """A pointer that is none is refused, and mended by whoever publishes."""
    pointer = f"{namespace}:pointer:m"
    client.set(pointer, "latest")
    ranker = Ranker("m", store=store)
    assert not ranker.refresh()
    assert ranker.failures == {"pointer": 1}
    assert store.publish(envelope(1))
    assert ranker.refresh()
    client.delete(pointer)
    client.lpush(pointer, "x")
    with pytest.raises(SnapshotError, match="got 'list'"):
        store.current("m")
    with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
        store.publish(envelope(2))
    assert not ranker.refresh()
    assert ranker.failures == {"pointer": 2}
    assert ranker.awaited == ""
    assert ranker.version == 1
    assert store.standing(["m"]) == {}
    standing = store.mend(["m", "n"])
    assert standing["m"] == (None, "a pointer of type list", "")
    assert standing["n"] == (None, "", "")
    assert store.publish(envelope(2))
    assert ranker.refresh()
    assert store.mend(["m"]) == {"m": (Pointer(0, 2), "", "")}


def test_a_full_redis_keeps_the_old_snapshot(tmp_path: Path) -> None:
    """Out of memory is an error that leaves everything as it was."""
    server = Redis(tmp_path)
    server.start()
    try:
        store = SnapshotStore(server.url)
        store.publish(envelope(1))
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", "1mb")
        with pytest.raises(StoreUnavailable, match=r"OOM|OutOfMemory"):
            store.publish(envelope(2, n_features=500_000))
        assert store.current("m") == (Pointer(0, 1), envelope(1))
        assert store.versions("m") == [(0, 1)]
        store.close()
    finally:
        server.kill()


def test_a_wrong_password_is_told_without_telling_it(tmp_path: Path) -> None:
    """Errors name the place and the kind, never the secret."""
    server = Redis(tmp_path)
    server.start()
    try:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("requirepass", "right-canary")
        for password in ("", "wrong-canary"):
            with pytest.raises(StoreUnavailable) as caught:
                SnapshotStore(server.url, password=password).ping()
            assert "canary" not in f"{caught.value!r} {caught.value.__cause__!r}"
        good = SnapshotStore(server.url, password="right-canary")  # noqa: S106
        good.ping()
        assert "canary" not in repr(vars(good))
        good.close()
    finally:
        server.kill()


def test_a_ranker_serves_while_redis_is_away(tmp_path: Path) -> None:
    """The last good version is served, and following goes on when Redis is back."""
    server = Redis(tmp_path)
    server.start()
    store = SnapshotStore(server.url, timeout_s=PATIENCE_S)
    hasty = SnapshotStore(server.url, timeout_s=0.5)
    try:
        store.publish(envelope(5))
        ranker = Ranker("m", store=hasty)
        ranker.follow()
        server.kill()
        gone_s = time.monotonic()
        while time.monotonic() < gone_s + 2.5 or not ranker.failures:
            assert ranker.rank(np.ones((2, 3))).version == 5
            time.sleep(0.01)
        most = 3 + (time.monotonic() - gone_s) / RETRY_S
        assert ranker.failures["unavailable"] <= most
        assert ranker.silence_s > 1.0
        with pytest.raises(StoreUnavailable):
            store.publish(envelope(6))
        server.start()
        assert store.publish(envelope(4))
        time.sleep(1.2)
        assert ranker.version == 5
        assert store.publish(envelope(6))
        until(lambda: ranker.version == 6)
        server.pause()
        with pytest.raises(StoreUnavailable):
            hasty.ping()
        assert ranker.rank(np.ones((2, 3))).version == 6
        server.resume()
        store.publish(envelope(7))
        until(lambda: ranker.version == 7)
        ranker.close()
        hasty.close()
        store.close()
    finally:
        server.kill()


def test_a_ranker_refuses_what_the_service_cannot_give(store: SnapshotStore) -> None:
    """As wide as its first snapshot or as it was told; the last good one is served."""
    store.publish(envelope(1))
    told = Ranker("m", store=store, n_features=3)
    rankers = [Ranker("m", store=store), told]
    for ranker in rankers:
        ranker.load()
    store.publish(envelope(9, n_features=4))
    for ranker in rankers:
        assert not ranker.refresh()
        assert ranker.failures == {"features": 1}
        assert "features must number 3; version 0.9 needs 4" in ranker.trouble
        for _ in range(5):
            assert ranker.rank(np.ones((2, 3))).version == 1
    other = Ranker("m", store=store)
    other.load()
    assert other.version == 9
    assert store.discard("m", Pointer(0, 8)) is False
    assert store.discard("m", Pointer(0, 9)) is True
    store.publish_all([envelope(1), envelope(2)])
    for ranker in rankers:
        assert ranker.refresh()
        assert (ranker.version, ranker.trouble) == (2, "")


def test_a_ranker_says_that_redis_was_emptied(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """It serves on what it has, and is well again with the pointer."""
    ranker = Ranker("m", store=store)
    assert not ranker.refresh()
    assert (ranker.failures, ranker.trouble) == ({}, "")
    store.publish(envelope(1))
    assert ranker.refresh()
    client.delete(*client.keys(f"{namespace}:*"))
    assert not ranker.refresh()
    assert ranker.failures == {"emptied": 1}
    assert ranker.trouble == "emptied: Redis must hold 'm'; it holds none any more"
    assert ranker.rank(np.ones((2, 3))).version == 1
    store.publish(envelope(1))
    assert not ranker.refresh()
    assert (ranker.failures, ranker.trouble) == ({"emptied": 1}, "")


def test_documents_of_several_kinds_are_written_at_once(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """Whatever lay there: a key of another type is empty for readers, and replaced."""
    client.set(f"{namespace}:a", "x")
    assert store.documents("a") == store.documents("b") == {}
    store.put_documents({"a": {"one": b"1", "two": None}, "b": {"three": b""}})
    assert (store.documents("a"), store.documents("b")) == (
        {"one": b"1"},
        {"three": b""},
    )
    store.put_documents({"a": {"one": None, "two": b"2"}})
    assert store.documents("a") == {"two": b"2"}
