"""Decisions in Redis as their topic has them: whole rewrites, each written once."""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import redis

from rankstream.ranker import Ranker
from rankstream.redis_store.decision_scripts import Switched
from rankstream.redis_store.decision_store import EXPIRE_S
from rankstream.snapshots import SnapshotStore
from rankstream.wire.decision_shards import N_SHARDS, shard_number
from rankstream.wire.decisions import (
    decision_key,
    encode_decision,
    manifest_key,
)
from rankstream.wire.routing import route_of_query
from streams.redis_copies.decision_copy import DecisionCopy, DecisionWork, Rewrite
from streams.redis_copies.unexpected_entries import SETTLED
from tests.decision_factory import ITEMS, Records, Written, decision, rewrite
from tests.services import RedisService
from tests.snapshot_factory import envelope

pytestmark = pytest.mark.broker

FEATURES = np.ones((6, 3))
ITEM_NUMBERS = list(range(6))
MANY = {f"query {number}": decision() for number in range(300)}


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, retries=0)
    yield made
    made.close()


@pytest.fixture
def client(redis_server: RedisService) -> Iterator[redis.Redis]:
    """Redis without any rules."""
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def give(copy: DecisionCopy, records: Records) -> list[bool]:
    """More of the topic; what each record said."""
    return [copy.take(key, value) for key, value in records]


def look(copy: DecisionCopy, times: int = 1) -> int:
    """Look at Redis so often, at the end of the topic; how much was to be written."""
    n_written = 0
    for _ in range(times):
        copy.settle()
        n_written += copy.compare(copy.look())
        for each in copy.work():
            copy.wrote(each, copy.write(each))
        assert copy.work() == []
    return n_written


def held(store: SnapshotStore) -> int:
    """The number of the rewrite in force, with all of its shards; 0 of none."""
    store.publish(envelope(1))
    ranker = Ranker("m", store=store, decisions="rule")
    ranker.load()
    assert ranker.failures == {}
    return ranker.rewrite


def keys_of(client: redis.Redis, namespace: str) -> dict[bytes, bytes | None]:
    """Everything of the rule, as bytes."""
    keys: list[Any] = client.keys(f"{namespace}:decisions*")
    return {key: client.dump(key) for key in keys}


def test_a_rewrite_is_written_once_and_only_what_changed(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """Shards that a manifest names stay, those of the one before have time."""
    copy = DecisionCopy(store)
    first = rewrite(1, MANY)
    assert give(copy, first.records) == [False] * 300 + [True]
    assert (look(copy), held(store)) == (1, 1)
    assert look(copy, 3) == 0
    second = rewrite(2, MANY | {"query 7": decision(2, order=[0, 1, 2, 3, 4, 5])})
    give(copy, second.records)
    copy.compare(copy.look())
    (work,) = copy.work()
    assert work.shards.keys() == second.shards.keys() - first.shards.keys()
    assert (len(work.shards), copy.write(work), held(store)) == (1, Switched.MOVED, 2)
    of_shards = f"{namespace}:decisions-shard:rule:"
    lives = {
        each: client.ttl(f"{of_shards}{each.hex()}")
        for each in (*first.shards, *second.shards)
    }
    (old,) = first.shards.keys() - second.shards.keys()
    assert EXPIRE_S - 60 < lives.pop(old) <= EXPIRE_S
    assert {*lives.values()} == {-1}
    assert copy.counters()["rewrites_published"] == 1
    assert copy.counters()["rewrites_refilled"] == 0


def test_what_was_written_before_a_switch_leaves_by_itself(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """A writer that was killed leaves the rewrite before, and no litter."""
    copy = DecisionCopy(store)
    give(copy, rewrite(1, MANY).records)
    look(copy)
    before = keys_of(client, namespace)
    second = rewrite(2, {query: decision(2, blocks=[6]) for query in MANY})
    store.put_decision_shards("rule", second.shards)
    litter = keys_of(client, namespace).keys() - before.keys()
    assert len(litter) == len(second.shards)
    assert all(0 < client.ttl(key) <= EXPIRE_S for key in litter)
    assert held(store) == 1
    give(copy, second.records)
    assert (look(copy), held(store)) == (1, 2)
    assert {client.ttl(key) for key in litter} == {-1}


def test_a_switch_is_refused_where_it_would_go_back_or_lead_nowhere(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """Then nothing is changed."""
    copy = DecisionCopy(store)
    give(copy, rewrite(5, MANY).records)
    look(copy)
    before = keys_of(client, namespace)
    older, newer = rewrite(4, {}), rewrite(6)
    assert store.switch_decisions(older.manifest, older.value) is Switched.NEWER
    assert store.switch_decisions(newer.manifest, newer.value) is Switched.MISSING
    assert keys_of(client, namespace) == before
    moved = store.switch_decisions(older.manifest, older.value, is_forced=True)
    assert (moved, held(store)) == (Switched.MOVED, 4)


DAMAGES: dict[str, Callable[[redis.Redis, str, Written], object]] = {
    "pointer removed": lambda client, name, _: client.delete(f"{name}:rule"),
    "pointer a list": lambda client, name, _: (
        client.delete(f"{name}:rule"), client.lpush(f"{name}:rule", "x"),
    ),
    "pointer garbage": lambda client, name, _: client.set(f"{name}:rule", "\xff.."),
    "pointer of before": lambda client, name, _: client.set(f"{name}:rule", "1.ab"),
    "pointer to come": lambda client, name, _: client.set(f"{name}:rule", "99.ab"),
    "manifest removed": lambda client, name, _: client.delete(f"{name}-manifest:rule"),
    "manifest longer": lambda client, name, _: (
        client.append(f"{name}-manifest:rule", "x")
    ),
    "another byte of the manifest": lambda client, name, _: (
        client.setrange(f"{name}-manifest:rule", 9, b"\xff")
    ),
    "a shard removed": lambda client, name, written: (
        client.delete(f"{name}-shard:rule:{next(iter(written.shards)).hex()}")
    ),
    "a shard a list": lambda client, name, written: (
        key := f"{name}-shard:rule:{next(iter(written.shards)).hex()}",
        client.delete(key), client.lpush(key, "x"),
    ),
    "another byte of a shard": lambda client, name, written: (
        client.setrange(
            f"{name}-shard:rule:{list(written.shards)[-1].hex()}", 30, b"\xff"
        )
    ),
    "list of shards a string": lambda client, name, _: (
        client.delete(f"{name}:rule"), client.set(f"{name}-listed:rule", "x"),
    ),
    "all": lambda client, name, _: client.delete(*client.keys(f"{name}*")),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_whatever_was_done_to_decisions_is_mended(
    store: SnapshotStore, client: redis.Redis, namespace: str,
    damage: Callable[[redis.Redis, str, Written], object],
) -> None:  # fmt: skip
    """Byte for byte, once each piece was looked at; by a publisher of before or new."""
    written = rewrite(7, {query: MANY[query] for query in list(MANY)[:20]})
    copies = [DecisionCopy(store) for _ in range(2)]
    for copy in copies:
        give(copy, written.records)
    look(copies[0])
    before = keys_of(client, namespace)
    n_pieces = len(written.shards) + 1
    for n, copy in enumerate(copies):
        damage(client, f"{namespace}:decisions", written)
        assert keys_of(client, namespace) != before
        assert look(copy, n_pieces + SETTLED + 1) == 1
        assert keys_of(client, namespace) == before
        assert copy.counters()["rewrites_refilled"] == 1 - n


def test_a_publisher_that_is_behind_does_not_undo_the_one_ahead(
    store: SnapshotStore,
) -> None:
    """Until it has read to an end that was asked for later."""
    ahead, behind = DecisionCopy(store), DecisionCopy(store)
    for copy in (ahead, behind):
        give(copy, rewrite(1).records)
        look(copy)
    give(ahead, rewrite(2).records)
    look(ahead)
    assert look(behind, SETTLED) == 0
    assert held(store) == 2
    give(behind, rewrite(2).records)
    assert (look(behind, SETTLED + 2), look(ahead), held(store)) == (0, 0, 2)


def shuffled_topic(rng: np.random.Generator) -> tuple[Records, Written, set[int]]:
    """A topic of some rewrites; the last one, and where each transaction ends."""
    records: Records = []
    current: dict[str, Any] = {}
    ends, last = set(), rewrite(1, {})
    for number in range(1, int(rng.integers(3, 7))):
        for query in rng.choice(sorted(MANY), 12, replace=False).tolist():
            key = decision_key("rule", query, b"set" + bytes(13))
            order = rng.permutation(6).tolist() if rng.random() < 0.8 else []
            current[query] = decision(number, order=order, blocks=[])
            value: bytes | None = encode_decision(current[query])
            if rng.random() < 0.3:
                value = None
                del current[query]
            records.append((key, value))
        last = rewrite(number, current)
        records.append((manifest_key("rule"), last.value))
        ends.add(len(records))
    return records, last, ends


def compacted(records: Records, rng: np.random.Generator) -> Records:
    """Some records that a later one of their key replaced are gone."""
    last = {key: at for at, (key, _) in enumerate(records)}
    return [
        record
        for at, record in enumerate(records)
        if last[record[0]] == at or rng.random() < 0.5
    ]


@pytest.mark.parametrize("seed", range(30))
def test_a_topic_is_a_rewrite_only_where_it_is_whole(
    store: SnapshotStore, seed: int
) -> None:
    """However far it was compacted, and read again from its beginning meanwhile."""
    rng = np.random.default_rng(seed)
    records, last, ends = shuffled_topic(rng)
    copy = DecisionCopy(store)
    for at, (key, value) in enumerate(records, 1):
        assert copy.take(key, value) == (at in ends)
    wanted = Rewrite(last.manifest, last.value, last.shards)
    assert [each.rewrite for each in copy.look()] == [wanted]
    assert copy.counters()["rewrites_incomplete"] == 0
    # Read anew, to somewhere in its midst: what was shown stays.
    copy.begin_anew()
    some = compacted(records, rng)
    for key, value in some[: rng.integers(len(some))]:
        assert not copy.take(key, value)
        assert [each.rewrite for each in copy.look()] == [wanted]
    # And once more, to its end.
    for fresh in (copy, DecisionCopy(store)):
        fresh.begin_anew()
        give(fresh, some)
        assert fresh.finish()
        assert [each.rewrite for each in fresh.look()] == [wanted]
        assert not fresh.finish()


def test_a_rewrite_of_which_a_record_is_missing_is_not_taken(
    store: SnapshotStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Or is damaged, or one too many: the last whole one stays in Redis."""
    first, second = rewrite(1, MANY), rewrite(2, MANY | {"more": decision(2)})
    *changed, manifest = second.records
    key, value = changed[-1]
    bad: list[Records] = [
        [manifest],
        [(key, b"garbage"), manifest],
        [(key, value), (changed[0][0], None), manifest],
        [(key, encode_decision(decision(2, items=ITEMS[::-1]))), manifest],
        [(key, value), (b"garbage", b"x"), (None, None), (manifest[0], b"garbage")],
    ]
    for records in bad:
        copy = DecisionCopy(store)
        give(copy, first.records)
        assert not any(give(copy, records))
        look(copy)
        assert held(store) == 1
        assert sum(list(copy.counters().values())[1:]) >= 1
        give(copy, second.records)
        look(copy)
        assert held(store) == 2
        store.forget_decisions("rule")
    assert "event=decision-rejected" in caplog.text


def test_what_holds_evidence_alone_is_in_no_shard(store: SnapshotStore) -> None:
    """The default serves such a query."""
    decisions = {"q": decision(), "undecided": decision(order=[])}
    copy = DecisionCopy(store)
    assert give(copy, rewrite(1, decisions).records)[-1]
    (sight,) = copy.look()
    assert sight.rewrite.shards == rewrite(1, {"q": decision()}).shards


def test_a_rule_that_is_removed_leaves_redis(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """Also where the removal was not read, as the topic was read anew; others stay."""
    copy = DecisionCopy(store)
    copy.begin_anew()
    give(copy, rewrite(1, MANY).records)
    assert copy.finish()
    look(copy)
    assert copy.take(manifest_key("rule"), None)
    assert (look(copy), keys_of(client, namespace)) == (1, {})
    assert look(copy) == 0
    give(copy, rewrite(2, MANY).records)
    look(copy)
    assert held(store) == 2
    copy.begin_anew()
    give(copy, rewrite(1, name="other").records)
    assert copy.finish()
    assert look(copy) == 2
    assert {key.split(b":")[2] for key in keys_of(client, namespace)} == {b"other"}
    # What the topic never knew is left alone.
    stranger = DecisionCopy(store)
    stranger.begin_anew()
    stranger.finish()
    assert (look(stranger), bool(keys_of(client, namespace))) == (0, True)


def rotated(number: int) -> list[int]:
    """The order that all queries have in a rewrite."""
    return ITEM_NUMBERS[:: 1 if number % 2 else -1]


def served_number(ranker: Ranker, queries: list[str]) -> int:
    """The rewrite that all lists of a ranker are of; asserts that it is one."""
    found = set()
    for query in queries:
        made = ranker.rank(
            FEATURES, query_id=query, items=ITEMS, policy="deterministic", seed=1
        )
        number = int(made.intervention.rpartition("@")[2])
        assert made.order.tolist() == rotated(number)
        found.add(number)
    (number,) = found
    return number


QUERIES = [f"query {number}" for number in range(10_000)]

SAMPLE = [*{shard_number(route_of_query(query)): query for query in QUERIES}.values()]
"""One query of each shard."""


def all_changed(first: int) -> Iterator[DecisionWork]:
    """Rewrites in which all queries change, as a publisher writes them."""
    kinds = [
        rewrite(1, dict.fromkeys(QUERIES, decision(order=rotated(number))))
        for number in range(2)
    ]
    for number in itertools.count(first):
        _, _, shards, _ = kind = kinds[number % 2]
        written = rewrite(number, {}, shards=kind.manifest.shards)
        whole = Rewrite(written.manifest, written.value, shards)
        yield DecisionWork("rule", whole, shards, False)


def killed_writer(
    works: Iterator[DecisionWork], store: SnapshotStore, until: Callable[[], object]
) -> None:
    """Write on and on in a process of its own, and kill that."""
    child = os.fork()
    if not child:
        try:
            copy = DecisionCopy(store)
            for work in works:
                copy.write(work)
        finally:
            os._exit(1)
    until()
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def test_a_writer_killed_twenty_times_leaves_the_old_or_the_new(
    store: SnapshotStore, redis_server: RedisService, namespace: str
) -> None:
    """Of 10,000 queries, all of which change each time: never some of both."""
    assert len(SAMPLE) == N_SHARDS
    store.publish(envelope(1))
    works = all_changed(1)
    DecisionCopy(store).write(next(works))
    ranker = Ranker("m", store=store, decisions="rule")
    ranker.load()
    rng, seen = np.random.default_rng(4), [served_number(ranker, SAMPLE)]

    def read_on() -> None:
        # Until some were taken, and then a little more, as far as it may come.
        most = seen[-1] + int(rng.integers(2))
        while seen[-1] < most:
            ranker.refresh()
            seen.append(served_number(ranker, SAMPLE[::16]))
        time.sleep(rng.uniform(0.0, 0.02))

    for _ in range(20):
        while next(works).rewrite.manifest.number < seen[-1]:  # type: ignore[union-attr]
            continue
        own = SnapshotStore(redis_server.url, namespace=namespace, retries=0)
        killed_writer(works, own, read_on)
        fresh = Ranker("m", store=store, decisions="rule")
        fresh.load()
        ranker.refresh()
        assert fresh.failures == ranker.failures == {}
        seen.append(served_number(ranker, SAMPLE[::8]))
        assert served_number(fresh, SAMPLE) == seen[-1]
    assert seen == sorted(seen)
    assert len({*seen}) > 5


def test_an_emptied_redis_is_filled_again(
    store: SnapshotStore, client: redis.Redis, namespace: str
) -> None:
    """With the next look; rankers serve the last rewrite meanwhile, and tell of it."""
    copy, orders = DecisionCopy(store), dict.fromkeys(QUERIES, decision())
    give(copy, rewrite(2, orders).records)
    look(copy)
    store.publish(envelope(1))
    ranker = Ranker("m", store=store, decisions="rule")
    ranker.load()
    before = keys_of(client, namespace)
    client.delete(*before)
    assert not ranker.refresh()
    assert (ranker.failures, served_number(ranker, SAMPLE)) == ({"decisions": 1}, 2)
    assert look(copy) == 1
    assert keys_of(client, namespace) == before
    ranker.refresh()
    assert (ranker.trouble, copy.counters()["rewrites_refilled"]) == ("", 1)
