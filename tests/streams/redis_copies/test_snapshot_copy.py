"""Snapshots in Redis as their topic has them, whatever happened to Redis."""

from collections.abc import Callable, Iterator

import pytest
import redis

from rankstream.snapshots import Pointer, SnapshotStore
from streams.redis_copies import snapshot_copy as module
from streams.redis_copies.snapshot_copy import SnapshotCopy
from streams.redis_copies.unexpected_entries import SETTLED
from tests.services import RedisService
from tests.snapshot_factory import envelope

pytestmark = pytest.mark.broker


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, keep=4, retries=0)
    yield made
    made.close()


def give(copy: SnapshotCopy, *versions: int, epoch: int = 0) -> None:
    """Records of the topic, as the learner writes them."""
    for version in versions:
        key = f"m/{epoch}.{version}".encode()
        copy.take(key, envelope(version, epoch=epoch))


def push(copy: SnapshotCopy) -> int:
    """Write what is pending; how many versions went in."""
    n_written = 0
    for each in copy.work():
        count = copy.write(each)
        copy.wrote(each, count)
        n_written += count
    return n_written


def check(copy: SnapshotCopy) -> int:
    """Look at Redis; of how many models something must be written again."""
    return copy.compare(copy.look(copy.models()))


def test_only_the_last_versions_wait(store: SnapshotStore) -> None:
    """What Redis would drop at once is not sent, nor kept."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, *range(100))
    assert copy.counters()["snapshots_pending"] == 4
    assert push(copy) == 4
    assert push(copy) == 0
    assert store.versions("m") == [(0, version) for version in range(96, 100)]
    counts = copy.counters()
    assert counts["snapshots_coalesced"] == 96
    assert counts["snapshots_published"] == 4
    assert counts["snapshots_pending"] == 0


def test_what_is_dropped_after_it_was_published_was_not_passed_over(
    store: SnapshotStore,
) -> None:
    """Room for new versions is made of those that Redis has."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, *range(4))
    assert push(copy) == 4
    give(copy, *range(4, 7))
    assert copy.counters()["snapshots_coalesced"] == 0
    assert push(copy) == 3


def test_repeats_and_old_versions_change_nothing(store: SnapshotStore) -> None:
    """A topic that is read again from its beginning publishes nothing again."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1, 2, 3)
    assert push(copy) == 3
    give(copy, 1, 2, 3)
    assert push(copy) == 0
    other = SnapshotCopy(store, keep=4)
    give(other, 1, 2, 3, 4)
    assert push(other) == 1


def test_a_repeated_newest_version_takes_no_room(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it replace what was taken first."""
    sizes = [len(envelope(version)) for version in (1, 2)]
    monkeypatch.setattr(module, "KEPT_BYTES", sum(sizes))
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1, 2, 2, 2)
    assert push(copy) == 2
    assert store.versions("m") == [(0, 1), (0, 2)]


def test_a_rollback_is_published_and_not_undone(store: SnapshotStore) -> None:
    """The record under the model's own name is the newest; the old epoch stays out."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1, 2, 3)
    copy.take(b"m", envelope(2, epoch=1))
    give(copy, 4, 5)
    push(copy)
    assert store.standing(["m"]) == {"m": Pointer(1, 2)}


def test_learned_versions_are_served_again_after_a_rollback(
    store: SnapshotStore,
) -> None:
    """In the epoch of the record that said so, until the next rollback."""
    copy = SnapshotCopy(store)
    give(copy, 1, 2, 3)
    copy.take(b"m", envelope(1, epoch=1))
    give(copy, 4)
    copy.take(b"m/follow", envelope(4, epoch=2))
    give(copy, 4, 5)
    push(copy)
    assert store.standing(["m"]) == {"m": (2, 5)}
    copy.take(b"m", envelope(2, epoch=3))
    give(copy, 6)
    push(copy)
    assert store.standing(["m"]) == {"m": (3, 2)}


def test_bad_records_are_counted_and_tombstones_heeded(store: SnapshotStore) -> None:
    """Nothing in the topic stops a copy."""
    copy = SnapshotCopy(store, keep=4)
    copy.take(None, None)
    copy.take(b"\xff/0.1", None)
    copy.take(b"m/0.1", b"garbage")
    copy.take(b"m/0.2", envelope(1))
    copy.take(b"n", envelope(1))
    give(copy, 1, 2, 3)
    copy.take(b"m/0.2", None)
    copy.take(b"m/0.3", None)
    assert push(copy) == 2
    assert store.versions("m") == [(0, 1), (0, 3)]
    assert copy.counters()["snapshots_rejected"] == 3


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        (b"m/0.1234567890123456", {"version": 1_234_567_890_123_456}),
        (b"m", {"version": 1, "epoch": 2**63}),
        (b"m/follow", {"version": 1, "epoch": 10**15}),
    ],
)
def test_a_version_that_no_pointer_names_holds_nothing_up(
    store: SnapshotStore, key: bytes, fields: dict[str, int]
) -> None:
    """It is counted; what is learned and rolled back after it is served."""
    copy = SnapshotCopy(store)
    give(copy, 1, 2)
    push(copy)
    copy.take(key, envelope(**fields))
    assert copy.counters()["snapshots_rejected"] == 1
    give(copy, 3)
    push(copy)
    assert (check(copy), store.standing(["m"])) == (0, {"m": Pointer(0, 3)})
    copy.take(b"m", envelope(2, epoch=1))
    push(copy)
    assert (check(copy), store.standing(["m"])) == (0, {"m": Pointer(1, 2)})


def test_a_redis_that_an_earlier_release_misled_is_brought_back(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """Its pointer is none: it goes, and the last good version is served."""
    forged = "0.1234567890123456"
    with redis.Redis.from_url(redis_server.url) as client:
        client.set(f"{namespace}:pointer:m", forged)
        client.rpush(f"{namespace}:versions:m", forged)
        client.set(f"{namespace}:snapshot:m:{forged}", b"whatever")
    copy = SnapshotCopy(store)
    give(copy, 1, 2)
    check(copy)
    assert push(copy) == 2
    assert store.current("m") == (Pointer(0, 2), envelope(2))
    assert store.versions("m") == [(0, 1), (0, 2)]


def test_an_emptied_redis_is_filled_again(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """The same versions with the same bytes come back, also a single lost payload."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, *range(1, 9))
    push(copy)
    with redis.Redis.from_url(redis_server.url) as client:
        before = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        client.delete(*before)
        assert check(copy) == 1
        assert push(copy) == 4
        after = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        assert after == before
        client.delete(f"{namespace}:snapshot:m:0.8")
        assert check(copy) == 1
        assert push(copy) == 1
        assert {key: client.dump(key) for key in before} == before
    assert check(copy) == 0
    assert copy.counters()["redis_refills"] == 2


def test_a_redis_of_an_older_time_is_brought_forward(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """One that comes back without its last writes gets them again."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    push(copy)
    with redis.Redis.from_url(redis_server.url) as client:
        older = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        give(copy, 2, 3)
        push(copy)
        client.delete(*client.keys(f"{namespace}:*"))
        for key, value in older.items():
            client.restore(key, 0, value)
    assert store.standing(["m"]) == {"m": Pointer(0, 1)}
    assert check(copy) == 1
    assert push(copy) == 2
    assert store.standing(["m"]) == {"m": Pointer(0, 3)}


Damage = Callable[[redis.Redis, str], object]

DAMAGES: dict[str, Damage] = {
    "no version": lambda client, name: client.set(f"{name}:pointer:m", "latest"),
    "too long": lambda client, name: client.set(f"{name}:pointer:m", f"0.{10**20}"),
    "a list": lambda client, name: (
        client.delete(f"{name}:pointer:m"), client.lpush(f"{name}:pointer:m", "0.8"),
    ),
    "an older version": lambda client, name: client.set(f"{name}:pointer:m", "0.6"),
    "a version that never was": lambda client, name: client.set(
        f"{name}:pointer:m", "0.7777"
    ),
    "no pointer": lambda client, name: client.delete(f"{name}:pointer:m"),
    "no versions": lambda client, name: client.delete(f"{name}:versions:m"),
    "versions of no list": lambda client, name: client.set(f"{name}:versions:m", "x"),
    "garbage in the versions": lambda client, name: client.rpush(
        f"{name}:versions:m", "x"
    ),
    "no snapshot": lambda client, name: client.delete(f"{name}:snapshot:m:0.8"),
    "a snapshot of no string": lambda client, name: (
        client.delete(f"{name}:snapshot:m:0.8"),
        client.lpush(f"{name}:snapshot:m:0.8", "x"),
    ),
    "no models": lambda client, name: client.delete(f"{name}:models"),
    "models of no set": lambda client, name: client.set(f"{name}:models", "m"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("is_fresh", [False, True], ids=["running", "started anew"])
def test_whatever_was_done_to_redis_is_mended(
    store: SnapshotStore, redis_server: RedisService, namespace: str,
    damage: Damage, *, is_fresh: bool,
) -> None:  # fmt: skip
    """Soon all keys are what they were, byte for byte."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, *range(1, 9))
    push(copy)
    with redis.Redis.from_url(redis_server.url) as client:
        before = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        damage(client, namespace)
        if is_fresh:
            copy = SnapshotCopy(store, keep=4)
            give(copy, *range(1, 9))
        check(copy)
        push(copy)
        after = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
    assert after == before
    assert store.verify("m") == [((0, version), "") for version in range(5, 9)]
    assert check(copy) == 0


def test_a_forged_version_beyond_the_last_is_taken_back(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """Not before the end of the topic was asked for after it was seen."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, *range(1, 9))
    push(copy)
    with redis.Redis.from_url(redis_server.url) as client:
        before = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
        assert store.publish(envelope(777, n_features=4))
        copy.settle()
        assert check(copy) == 0
        for _ in range(SETTLED - 1):
            copy.settle()
            assert (check(copy), push(copy)) == (0, 0)
        assert store.standing(["m"]) == {"m": (0, 777)}
        copy.settle()
        assert (check(copy), push(copy)) == (1, 4)
        after = {key: client.dump(key) for key in client.keys(f"{namespace}:*")}
    assert after == before
    assert check(copy) == 0


def test_what_another_publisher_read_before_us_stays(store: SnapshotStore) -> None:
    """It moves on, or we read it too: nothing is taken back."""
    copy, other = SnapshotCopy(store, keep=4), SnapshotCopy(store, keep=4)
    give(copy, 1)
    give(other, *range(1, 20))
    push(copy)
    push(other)
    for version in range(20, 30):
        assert check(copy) == 0
        copy.settle()
        give(other, version)
        push(other)
    give(copy, *range(1, 30))
    for _ in range(SETTLED + 1):
        copy.settle()
        assert check(copy) == 0
    assert push(copy) == 0
    assert store.standing(["m"]) == {"m": (0, 29)}


def test_a_rollback_that_we_have_not_read_yet_stays(store: SnapshotStore) -> None:
    """The command writes to Redis as soon as its record is in the topic."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1, 2, 3)
    push(copy)
    store.publish(envelope(1, epoch=1))
    assert check(copy) == 0
    copy.take(b"m", envelope(1, epoch=1))
    for _ in range(SETTLED + 1):
        copy.settle()
        assert check(copy) == 0
    assert store.standing(["m"]) == {"m": (1, 1)}
