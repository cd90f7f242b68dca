"""Each runbook is followed from its page alone, on a shop that runs.

A shop has a namespace, a worker and a log of its own. Its pages are followed one after
another: each finds a worker that runs, and leaves one or says so by its end.
"""

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from kafka import KafkaAdminClient

from deploy.broker import Broker
from deploy.process import ServerFailed
from tests.documented_blocks import TREE
from tests.runbooks.reader import Reader
from tests.services import (
    KafkaService,
    RedisService,
    ServiceMissing,
    our_cluster,
    without,
)
from tests.small_disks import Limited

pytestmark = pytest.mark.broker

ON_A_SHARED_BROKER = (
    "dead-letters.md",
    "rollback.md",
    "backup-and-restore.md",
    "upgrade.md",
    "erase-a-person.md",
)
ON_ITS_OWN = ("disk.md", "move-namespace.md", "lost-topic.md")
ON_THREE = ("lost-broker.md", "more-partitions.md")
"""In the order in which they are followed: the last leaves another shop than it found.
"""

SETTINGS = """namespace = "shop"
[kafka]
bootstrap = "{bootstrap}"
input_partitions = 1
partitions = 2
learner_partitions = 1
replication_factor = {replicas}
[redis]
url = "{redis}"
keep_versions = 1_000
[time]
click_window_ms = 20_000
disorder_ms = 2_000
remember_ms = 10_000
[delivery]
session_timeout_s = 6.0
state_s = 1.0
[models.search]
features = 2
"""
"""A slow machine learns in more commits, each a version; the first of them is kept."""

START = (
    "rankstream topics create --config shop.toml",
    "rankstream worker --config shop.toml > worker.log 2>&1 & worker=$!",
    "for role in ingest fold learn; do "
    'until grep -q "event=ready role=$role" worker.log; do sleep 0.1; done; done',
    "rankstream replay day.jsonl --config shop.toml",
)

READ_BY_NO_STAGE = (
    "training",
    "decisions",
    "evaluations",
    "late",
    "queries.dlq",
    "clicks.dlq",
)

CHECK = "rankstream topics check --config shop.toml"
UNTIL_IT_IS_MISSED = f"until ! {CHECK} > check.log; do :; done"
UNTIL_BROKER_3_IS_MISSED = (
    f"until {CHECK} | tr -s '\\n ' ' ' | grep -q 'shop.events must have all its "
    "replicas in sync; partitions 0 and 1 lack broker 3'; do :; done"
)
UNTIL_THERE_IS_A_LETTER = (
    "until rankstream dlq show queries/0/0 --config shop.toml > letter.log 2>&1; "
    "do :; done"
)
"""Brokers and workers come to know of what was done a moment later."""

N_LISTS = 1_000


def lists_of_a_day() -> Iterator[dict[str, object]]:
    """Lists and clicks; each tenth list is the user u17's."""
    for number in range(N_LISTS):
        at_ms = 1_767_225_600_000 + 500 * number
        query = f"q{number % 20}"
        yield {
            "impression_id": f"i{number}", "query_id": query, "at_ms": at_ms,
            "user": "u17" if number % 10 == 0 else f"guest{number % 90}",
            "model": "search", "policy": "plackett-luce",
            "candidates": ["a", "b", "c"],
            "shown": ["b", "a"] if number % 7 % 2 else ["a", "b"],
            "scores": [1.0, 2.0, 0.0],
            "features": [[1.0, 0.1 * (number % 7)], [0.0, 2.0]],
        }  # fmt: skip
        if number % 3 == 0:
            yield {
                "impression_id": f"i{number}", "query_id": query,
                "at_ms": at_ms + 5, "position": 1 + number % 2,
            }  # fmt: skip


@contextlib.contextmanager
def opened(
    folder: Path,
    bootstrap: str,
    redis: RedisService,
    acts: Mapping[str, Callable[[], None]] = MappingProxyType({}),
    n_brokers: int = 1,
) -> Iterator[Reader]:
    """Somebody before a shop that runs, and has counted a day."""
    name = f"shop-{uuid.uuid4().hex[:8]}"
    text = SETTINGS.format(bootstrap=bootstrap, redis=redis.url, replicas=n_brokers)
    text = text.replace('"shop"', f'"{name}"', 1)
    (folder / "shop.toml").write_text(text, encoding="utf-8")
    lines = map(json.dumps, lists_of_a_day())
    (folder / "day.jsonl").write_text("\n".join(lines), encoding="utf-8")
    others = {each: f"{name}-{each}" for each in ("again", "fresh")}
    namespaces = {"shop": name} | others
    try:
        reader = Reader(folder, namespaces, bootstrap, acts)
    except ServerFailed as error:
        without(ServiceMissing(str(error)), os.environ)
    with reader:
        for line in START:
            reader.type(line)
        yield reader


@pytest.fixture(scope="module")
def running(
    kafka: KafkaService,
    redis_server: RedisService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reader]:
    """On a broker that others use too."""
    folder = tmp_path_factory.mktemp("shared")
    with opened(folder, kafka.bootstrap, redis_server) as reader:
        yield reader


@pytest.fixture(scope="module")
def own(
    breakable_kafka: KafkaService,
    kafka: KafkaService,
    redis_server: RedisService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reader]:
    """On a broker that may be broken, with another one to go to."""
    broker, folder = breakable_kafka.broker, tmp_path_factory.mktemp("own")
    assert broker is not None
    acts = {"kafka-server-start.sh": broker.start}
    with opened(folder, breakable_kafka.bootstrap, redis_server, acts) as reader:
        text = (folder / "shop.toml").read_text(encoding="utf-8")
        (folder / "there.toml").write_text(
            text.replace(breakable_kafka.bootstrap, kafka.bootstrap), encoding="utf-8"
        )
        yield reader


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[Broker]]:
    """Three of one cluster."""
    try:
        with our_cluster() as nodes:
            yield nodes
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture(scope="module")
def three(
    brokers: list[Broker],
    redis_server: RedisService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reader]:
    """On a cluster of three."""
    bootstrap = ",".join(each.bootstrap for each in brokers)
    acts = {"kafka-server-start.sh": brokers[2].start}
    folder = tmp_path_factory.mktemp("three")
    with opened(folder, bootstrap, redis_server, acts, 3) as reader:
        yield reader


def in_pages(name: str) -> str:
    """Where a page is."""
    return f"docs/runbooks/{name}"


def test_topics_that_no_stage_reads_may_be_lost(
    running: Reader, kafka: KafkaService
) -> None:
    """As the last rows of lost-topic.md say: created again, all goes on."""
    running.type("kill -TERM $worker; wait $worker")
    admin = KafkaAdminClient(bootstrap_servers=[kafka.bootstrap])
    admin.delete_topics([running.named(f"shop.{each}") for each in READ_BY_NO_STAGE])
    admin.close()
    for line in START[:3]:
        running.type(line)
    running.type("rankstream recount --config shop.toml")


@pytest.mark.parametrize("page", ON_A_SHARED_BROKER)
def test_a_runbook_of_a_shop_that_runs(page: str, running: Reader) -> None:
    """Nothing of it touches others on the same broker."""
    if page == "dead-letters.md":
        now_ms = int(time.time() * 1_000)
        (running.folder / "bad.jsonl").write_text(
            json.dumps({"impression_id": "n1", "query_id": "q1", "at_ms": now_ms,
                        "shown": "a"}), encoding="utf-8"
        )  # fmt: skip
        running.type("rankstream feed bad.jsonl --config shop.toml")
        running.type(UNTIL_THERE_IS_A_LETTER)
    running.follow(in_pages(page))


@pytest.mark.parametrize("page", ON_ITS_OWN)
def test_a_runbook_that_needs_a_broker_of_its_own(
    page: str, own: Reader, breakable_kafka: KafkaService
) -> None:
    """It is full, is left, or loses a topic."""
    broker = breakable_kafka.broker
    assert broker is not None
    if page == "disk.md":
        assert broker.pid is not None
        Limited(own.folder).fill(broker.pid)
        own.type(
            "rankstream feed day.jsonl --config shop.toml > feed.log 2>&1 & feed=$!"
        )
        time.sleep(3.0)  # it takes nothing: it ends, or hangs and is ended
        broker.kill()
    if page == "lost-topic.md":
        admin = KafkaAdminClient(bootstrap_servers=[broker.bootstrap])
        admin.delete_topics([own.named("shop.interactions")])
        admin.close()
        own.type(UNTIL_IT_IS_MISSED)
    own.follow(in_pages(page))
    if page == "disk.md":
        said = own.type("wait $feed; cat feed.log")
        assert "1,334 events acknowledged" in said


@pytest.mark.parametrize("page", ON_THREE)
def test_a_runbook_of_a_cluster(
    page: str, three: Reader, brokers: list[Broker]
) -> None:
    """One of its brokers is gone for good, with its disk."""
    if page == "lost-broker.md":
        brokers[2].kill()
        shutil.rmtree(brokers[2].folder / "data")
        three.type(UNTIL_BROKER_3_IS_MISSED)
    three.follow(in_pages(page))
    if page == "more-partitions.md":
        said = three.type("rankstream backup later --config shop.toml # ends with 2")
        assert "must have had its partitions from its beginning" in said


def test_every_runbook_is_followed() -> None:
    """And no other is."""
    there = {path.name for path in (TREE / "docs" / "runbooks").glob("*.md")}
    followed = (*ON_A_SHARED_BROKER, *ON_ITS_OWN, *ON_THREE)
    assert there - {"index.md"} == {*followed}
