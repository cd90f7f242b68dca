"""A canary in Redis as its topic has it, with the pointer of the same moment."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import redis

from rankstream.ranker import Ranker
from rankstream.redis_store.redis_scripts import mark_of
from rankstream.snapshots import CanarySwap, Pointer, SnapshotStore
from rankstream.wire.models.canaries import is_in_canary
from streams.redis_copies.snapshot_copy import SnapshotCopy
from streams.redis_copies.unexpected_entries import SETTLED
from tests.canary_factory import canary_record
from tests.services import RedisService
from tests.snapshot_factory import envelope
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker

KEY = b"m/canary"


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, keep=4, retries=0)
    yield made
    made.close()


@pytest.fixture
def client(redis_server: RedisService) -> Iterator[redis.Redis]:
    """Redis without any rules."""
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def give(copy: SnapshotCopy, *versions: int, epoch: int = 0) -> None:
    """Versions of the topic, as a deployment writes them."""
    for version in versions:
        name = f"m@{epoch}.{version}"
        copy.take(b"m", envelope(version, epoch=epoch, intervention=name))


def push(copy: SnapshotCopy) -> int:
    """Write what is pending; how many versions went in."""
    n_written = 0
    for each in copy.work():
        count = copy.write(each)
        copy.wrote(each, count)
        n_written += count
    return n_written


def look(copy: SnapshotCopy, times: int = 1) -> int:
    """Look at Redis so often, at the end of the topic; how much was lost."""
    lost = 0
    for _ in range(times):
        copy.settle()
        lost += copy.compare(copy.look(copy.models()))
        push(copy)
    return lost


def held(store: SnapshotStore) -> tuple[Pointer, bytes] | None:
    """Pointer and canary in Redis."""
    found = store.newest("m")
    return found and (found.pointer, found.canary or b"")


def keys_of(client: redis.Redis, namespace: str) -> dict[Any, bytes | None]:
    """Everything of the namespace, as bytes."""
    return {key: client.dump(key) for key in client.keys(f"{namespace}:*")}


def test_a_canary_is_the_bytes_of_its_record(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """From its first stage to its promotion, or to its end."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    for record in (canary_record(), canary_record(stage=2), b"", canary_record(12)):
        copy.take(KEY, record or None)
        push(copy)
        assert held(store) == (Pointer(0, 1), record)
        assert client.get(f"{namespace}:canary:m") == (record or None)
        assert copy.work() == []
    give(copy, 12)
    copy.take(KEY, None)
    assert push(copy) == 1
    assert held(store) == (Pointer(0, 12), b"")
    assert look(copy) == 0


def test_a_damaged_record_is_counted_and_is_no_canary(
    store: SnapshotStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is read now or after a start, sessions are served what was served."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    bad = (b"garbage", canary_record(model="n"), canary_record(schema=9), b"\x90")
    for number, record in enumerate(bad, 1):
        copy.take(KEY, canary_record())
        push(copy)
        copy.take(KEY, record)
        push(copy)
        assert held(store) == (Pointer(0, 1), b"")
        assert copy.counters()["snapshots_rejected"] == number
    assert "event=snapshot-rejected key=b'm/canary' reason=canary" in caplog.text
    copy.take(KEY, canary_record())
    push(copy)
    assert held(store) == (Pointer(0, 1), canary_record())


def test_a_model_may_be_called_as_a_canary_is(store: SnapshotStore) -> None:
    """Its snapshots are no canaries."""
    copy = SnapshotCopy(store, keep=4)
    copy.take(b"m/canary", envelope(3, model="m/canary"))
    push(copy)
    assert store.standing(["m/canary", "m"]) == {"m/canary": Pointer(0, 3)}
    assert copy.counters()["snapshots_rejected"] == 0


DAMAGES: dict[str, Callable[[redis.Redis, str], object]] = {
    "removed": lambda client, key: client.delete(key),
    "a list": lambda client, key: (client.delete(key), client.lpush(key, "x")),
    "garbage": lambda client, key: client.set(key, "x"),
    "empty": lambda client, key: client.set(key, ""),
    "a longer one": lambda client, key: client.append(key, "x"),
    "another byte": lambda client, key: client.setrange(key, 200, b"\xff"),
    "an older stage": lambda client, key: client.set(key, canary_record()),
    "a stage to come": lambda client, key: client.set(key, canary_record(stage=7)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("is_fresh", [False, True], ids=["running", "started anew"])
@pytest.mark.parametrize("has_one", [False, True], ids=["without", "with"])
def test_whatever_was_done_to_a_canary_is_mended(
    store: SnapshotStore, client: redis.Redis, namespace: str,
    damage: Callable[[redis.Redis, str], object], *, is_fresh: bool, has_one: bool,
) -> None:  # fmt: skip
    """Once the topic was read to an end that was asked for later, byte for byte."""
    copies = [SnapshotCopy(store, keep=4) for _ in range(2)]
    for copy in copies:
        give(copy, 1)
        copy.take(KEY, canary_record(stage=2) if has_one else None)
    push(copies[0])
    before = keys_of(client, namespace)
    damage(client, f"{namespace}:canary:m")
    copy = copies[is_fresh]
    look(copy, 1 if is_fresh else SETTLED + 1)
    assert keys_of(client, namespace) == before
    assert look(copy, SETTLED + 1) == 0


def test_an_emptied_redis_gets_pointer_and_canary_at_once(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """In one script, with the next look; also where the canary was to change."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    copy.take(KEY, canary_record())
    push(copy)
    before = keys_of(client, namespace)
    client.delete(*before)
    assert copy.compare(copy.look(copy.models())) == 1
    (work,) = copy.work()
    copy.wrote(work, copy.write(work))
    assert keys_of(client, namespace) == before
    copy.take(KEY, canary_record(stage=2))
    client.delete(*before)
    assert copy.compare(copy.look(copy.models())) == 1
    push(copy)
    assert held(store) == (Pointer(0, 1), canary_record(stage=2))
    assert copy.counters()["redis_refills"] == 2


def test_a_reader_sees_a_promotion_or_what_was_before(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """Promoted again and again while rankers read: never the pointer without it."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    push(copy)
    done, bad = threading.Event(), list[object]()
    seen: list[set[tuple[int, int]]] = [set(), set()]
    inside = next(
        name for name in map(str, range(100)) if is_in_canary(name, "m@0.2", 0.5)
    )

    def read(which: int) -> None:
        reader = SnapshotStore(redis_server.url, namespace=namespace)
        ranker = Ranker("m", store=reader)
        while not done.is_set():
            ranker.refresh()
            if ranker.pointer is None:
                continue
            of = int(ranker.canary.partition("/")[0].rpartition(".")[2] or 0)
            seen[which].add((ranker.version, of))
            # A canary of version n goes out beside n - 1, and ends with its promotion.
            if of and of != ranker.version + 1:
                bad.append((ranker.version, of))
            ranker.rank(np.ones((2, 3)), session=inside)
        bad.extend(ranker.failures)
        reader.close()

    threads = [threading.Thread(target=read, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for version in itertools.count(2):
        copy.take(KEY, canary_record(version))
        push(copy)
        give(copy, version)
        copy.take(KEY, None)
        push(copy)
        n_seen = min(len({of > 0 for _, of in each}) * len(each) for each in seen)
        if n_seen > 200 or version > 20_000:
            break
    done.set()
    for thread in threads:
        thread.join()
    assert not bad
    assert n_seen > 200


def test_rankers_hear_of_a_canary_alone(store: SnapshotStore) -> None:
    """Its change is told on the channel of the pointer; writing it again is not."""
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    push(copy)
    told: list[bytes] = []
    with store._client.pubsub(ignore_subscribe_messages=True) as listening:
        listening.subscribe(store._pointer_of("m"))
        listening.get_message(timeout=PATIENCE_S)
        for record in (canary_record(), canary_record(), canary_record(stage=2), None):
            copy.take(KEY, record)
            push(copy)
            look(copy)
        while len(told) < 3:
            message = listening.get_message(timeout=PATIENCE_S)
            assert message is not None
            told.append(message["data"])
        assert listening.get_message(timeout=0.5) is None
    assert told == [b"0.1"] * 3


def test_a_publisher_that_is_behind_replaces_no_later_canary(
    store: SnapshotStore,
) -> None:
    """It writes only over what it knew, and the one ahead is not undone."""
    ahead, behind = (SnapshotCopy(store, keep=4) for _ in range(2))
    for copy in (ahead, behind):
        give(copy, 1)
        copy.take(KEY, canary_record())
        push(copy)
    ahead.take(KEY, canary_record(stage=2))
    push(ahead)
    ahead.take(KEY, canary_record(stage=3))
    push(ahead)
    behind.take(KEY, canary_record(stage=2))
    push(behind)
    assert held(store) == (Pointer(0, 1), canary_record(stage=3))
    assert look(behind, SETTLED) == 0
    assert held(store) == (Pointer(0, 1), canary_record(stage=3))
    behind.take(KEY, canary_record(stage=3))
    assert look(behind, SETTLED + 1) == look(ahead, SETTLED + 1) == 0
    assert held(store) == (Pointer(0, 1), canary_record(stage=3))


def test_what_comes_again_is_shown_at_its_end_only(store: SnapshotStore) -> None:
    """After an outage the topic is read from its beginning; old canaries stay old.

    So do those that were removed meanwhile, whose removal is compacted away.
    """
    copy = SnapshotCopy(store, keep=4)
    give(copy, 1)
    copy.take(KEY, canary_record(stage=3))
    push(copy)
    copy.begin_anew()
    copy.is_behind = True
    for record in (canary_record(), canary_record(stage=2)):
        copy.take(KEY, record)
        give(copy, 1)
        look(copy, SETTLED + 1)
        assert held(store) == (Pointer(0, 1), canary_record(stage=3))
    give(copy, 9)
    look(copy, 2)
    assert held(store) == (Pointer(0, 1), canary_record(stage=3))
    copy.take(KEY, None)
    copy.is_behind = False
    push(copy)
    assert held(store) == (Pointer(0, 9), b"")
    copy.take(KEY, canary_record(12))
    push(copy)
    copy.begin_anew()
    give(copy, 9)
    push(copy)
    assert held(store) == (Pointer(0, 9), b"")


@pytest.mark.parametrize("seed", range(20))
def test_any_interleaving_ends_as_the_topic_has_it(
    store: SnapshotStore, client: redis.Redis, namespace: str, seed: int
) -> None:
    """Two publishers at their own pace, and one who spoils Redis in between."""
    rng = np.random.default_rng(seed)
    topic: list[tuple[bytes, bytes | None]] = []
    for version in range(1, 9):
        name = f"m@0.{version}"
        topic.append((b"m", envelope(version, intervention=name)))
        stages = [canary_record(version + 1, stage=n) for n in (1, 2)]
        topic += [(KEY, stage) for stage in stages[: rng.integers(3)]]
        topic.append((KEY, None))
    topic += [(KEY, canary_record(20, stage=n)) for n in range(1, 1 + rng.integers(3))]
    copies = [SnapshotCopy(store, keep=4) for _ in range(2)]
    reached = [0, 0]
    damages = list(DAMAGES.values())
    while min(reached) < len(topic):
        which = int(rng.integers(2))
        copy, step = copies[which], int(rng.integers(1, 5))
        for key, value in topic[reached[which] : reached[which] + step]:
            copy.take(key, value)
        reached[which] += step
        act = rng.integers(4)
        if act == 0:
            push(copy)
        elif act == 1:
            look(copy)
        elif act == 2 and rng.random() < 0.3:
            damages[rng.integers(len(damages))](client, f"{namespace}:canary:m")
        elif act == 3 and rng.random() < 0.1:
            client.delete(*client.keys(f"{namespace}:*") or ["none"])
    for copy in copies * 2:
        look(copy, SETTLED + 1)
    wanted = topic[-1][1] if topic[-1][0] == KEY else None
    assert held(store) == (Pointer(0, 8), wanted or b"")
    assert [look(copy, SETTLED + 1) for copy in copies] == [0, 0]


def test_a_swap_is_of_what_was_known_only(store: SnapshotStore) -> None:
    """By the mark of what Redis holds; the versions beside it go in all the same."""
    first, second = canary_record(), canary_record(stage=2)
    store.publish_with("m", [envelope(1)], CanarySwap(mark_of(second), first))
    assert held(store) == (Pointer(0, 1), b"")
    store.publish_with("m", [], CanarySwap("", first))
    assert held(store) == (Pointer(0, 1), first)
    store.publish_with("m", [envelope(2)], CanarySwap("", second))
    assert held(store) == (Pointer(0, 2), first)
    store.publish_with("m", [], CanarySwap(mark_of(first), second))
    assert held(store) == (Pointer(0, 2), second)
    store.publish_with("m", [], CanarySwap(None, b""))
    assert held(store) == (Pointer(0, 2), b"")
