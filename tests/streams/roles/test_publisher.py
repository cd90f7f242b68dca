"""Snapshots and experiments reach Redis, whichever server comes, goes or forgets."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import redis
from aiokafka import AIOKafkaProducer

from deploy.redis_server import Redis
from producers.event_producer import send_records
from rankstream.experiment_records import encode_record, running, stored_records
from rankstream.experiments import Experiments
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings, Settings
from rankstream.snapshots import Pointer, SnapshotStore, StoreUnavailable, store_of
from rankstream.wire.topics import DECISIONS, EXPERIMENTS, SNAPSHOTS, full_name
from streams.kafka.committed_reader import client_options, committed_batches
from streams.kafka.reader_role import run_reader_role
from streams.roles.publisher import Publisher
from tests.canary_factory import canary_record
from tests.decision_factory import rewrite
from tests.services import KafkaService
from tests.snapshot_factory import envelope
from tests.worker_process import PATIENCE_S, configured, settings_of

BOOST = """
[experiments.boost]
epoch = {epoch}
rankers = {{ old = "m", new = "" }}
"""
ENDED = """
[experiments.ended]
epoch = 4
rankers = { a = "", b = "" }
"""
NOW_MS = 1_700_000_000_000
PAGE = Path(__file__).parents[3] / "docs" / "topics.md"
PAGE_ROWS = re.findall(r"(?m)^\| `(NAMESPACE:[^`]+)`", PAGE.read_text("utf-8"))


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis of the test's own: it is emptied, killed and started again."""
    server = Redis(tmp_path / "redis")
    (tmp_path / "redis").mkdir()
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def kafka(breakable_kafka: KafkaService) -> KafkaService:
    """A broker of our own, as it is killed."""
    return breakable_kafka


@pytest.fixture
def config(
    kafka: KafkaService, own_redis: Redis, namespace: str, tmp_path: Path
) -> Path:
    """A settings file, with topics."""
    return configured(tmp_path, kafka.bootstrap, own_redis.url, namespace)


def is_redis_up(publisher: Publisher) -> bool:
    """What the page says."""
    return {x.name: bool(x.value) for x in publisher.series()}["redis_up"]


async def until(is_so: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    """Wait for something to become true, without holding up the loop."""
    deadline = time.monotonic() + timeout_s
    while not await asyncio.to_thread(is_so):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


Records = list[tuple[str, bytes | None]]


async def produce(settings: Settings, versions: range, *, commit: bool = True) -> None:
    """One transaction of snapshots, committed or aborted."""
    records: Records = [(f"m/0.{version}", envelope(version)) for version in versions]
    await deploy(settings, *records, commit=commit)


async def deploy(
    settings: Settings, *records: tuple[str, bytes | None], commit: bool = True
) -> None:
    """One transaction of records of the topic, committed or aborted."""
    producer = AIOKafkaProducer(
        **client_options(settings.kafka),
        transactional_id=f"{settings.namespace}-learn",
    )
    await producer.start()
    topic = full_name(settings.namespace, SNAPSHOTS)
    await producer.begin_transaction()
    for key, value in records:
        await producer.send_and_wait(topic, value, key=key.encode(), partition=0)
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    await producer.stop()


@contextlib.asynccontextmanager
async def publishing(
    settings: Settings, store: SnapshotStore
) -> AsyncIterator[Publisher]:
    """A publisher that runs for as long as the context lasts."""
    publisher = Publisher(
        store, keep=settings.redis.keep_versions, namespace=settings.namespace
    )
    stop = asyncio.Event()
    role = asyncio.create_task(
        run_reader_role(settings.kafka, publisher.sources, publisher, stop)
    )
    try:
        yield publisher
    finally:
        stop.set()
        await role


def keys_of(server: Redis) -> dict[bytes, bytes | None]:
    """Everything that Redis holds, as bytes."""
    with redis.Redis.from_url(server.url) as client:
        return {key: client.dump(key) for key in client.keys("*")}


def named_by_the_page(namespace: str, keys: Iterable[bytes]) -> list[str]:
    """Rows of the table in `docs/topics.md` that have a key; each key is of one."""
    found = set()
    for key in keys:
        (row,) = [
            row
            for row in PAGE_ROWS
            if re.fullmatch(
                re.sub("[A-Z]+", "[^:]+", row.replace("NAMESPACE", namespace)),
                key.decode(),
            )
        ]
        found.add(row)
    return [row for row in PAGE_ROWS if row in found]


def send_decisions(settings: Settings) -> None:
    """A rewrite of a rule."""
    decided = [(key or b"", value or b"") for key, value in rewrite().records]
    send_records(settings, DECISIONS, decided)


def flush(server: Redis) -> None:
    """What an operator may do by mistake."""
    with redis.Redis.from_url(server.url) as client:
        client.flushall()


def publish_experiments(config: Path, *tables: str) -> None:
    """By the command, with these tables in the settings."""
    whole = config.with_name("whole.toml")
    whole.write_text(config.read_text() + "".join(tables))
    assert main(["experiments", "publish", "--config", str(whole)]) == 0


def test_committed_snapshots_reach_redis(
    config: Path, own_redis: Redis, kafka: KafkaService
) -> None:
    """Soon; aborted ones never. While either server is away nothing is lost."""
    settings = settings_of(config)
    store = store_of(settings, retries=0)

    def served() -> Pointer | None:
        try:
            return store.standing(["m"]).get("m")
        except StoreUnavailable:
            return None

    async def scenario() -> dict[str, int]:
        async with publishing(settings, store) as publisher:
            await produce(settings, range(1, 60))
            await until(lambda: served() == (0, 59))
            assert len(store.versions("m")) == settings.redis.keep_versions
            await produce(settings, range(100, 103), commit=False)
            await produce(settings, range(60, 62))
            await until(lambda: served() == (0, 61))
            assert Pointer(0, 100) not in store.versions("m")
            own_redis.kill()
            gone_s = time.monotonic()
            for version in range(62, 66):
                await produce(settings, range(version, version + 1))
                await asyncio.sleep(0.5)
            await until(lambda: publisher.counters()["publish_failures"] > 0)
            failures = publisher.counters()["publish_failures"]
            assert failures <= 2 * (time.monotonic() - gone_s) + 1
            assert not is_redis_up(publisher)
            own_redis.start()
            await until(lambda: served() == (0, 65))
            await until(lambda: is_redis_up(publisher))
            assert len(store.versions("m")) == settings.redis.keep_versions
            assert kafka.broker is not None
            await asyncio.to_thread(kafka.broker.kill)
            flush(own_redis)
            await until(lambda: served() == (0, 65))
            await asyncio.to_thread(kafka.broker.start)
            await produce(settings, range(66, 68))
            await until(lambda: served() == (0, 67))
            await produce(settings, range(68, 69))
        return publisher.counters()

    counts = asyncio.run(scenario())
    assert counts["redis_refills"] >= 1
    store.close()


def test_an_emptied_redis_is_filled_and_services_go_on(
    config: Path, own_redis: Redis
) -> None:
    """Models, experiments and removals come back; what was removed stays away.

    So does a canary, until it is promoted: nobody sees the one without the other.
    """
    settings = settings_of(config)
    store, other = store_of(settings, retries=0), store_of(settings)
    client, ranker = Experiments(other), Ranker("m", store=other)

    def runs() -> int:
        running_now = client.of("boost", unit="s", now_ms=NOW_MS)
        return running_now.settings.epoch if running_now else 0

    async def scenario() -> None:
        publish_experiments(config, BOOST.format(epoch=1), ENDED)
        publish_experiments(config, BOOST.format(epoch=2))
        async with publishing(settings, store):
            await produce(settings, range(1, 4))
            await deploy(settings, ("m/canary", canary_record()))
            await asyncio.to_thread(send_decisions, settings)
            client.follow()
            ranker.follow()
            await until(lambda: runs() == 2 and ranker.canary == "m@0.9/1")
            assert ranker.version == 3

            def rows() -> list[str]:
                return named_by_the_page(settings.namespace, keys_of(own_redis))

            await until(lambda: rows() == PAGE_ROWS)
            before = keys_of(own_redis)
            for _ in range(3):
                flush(own_redis)
                # Looked at while empty, and once more when it is full again.
                client.refresh()
                ranker.refresh()
                assert runs() == 2
                assert ranker.rank(np.ones((2, 3))).version == 3
                assert ranker.canary in ("m@0.9/1", "")
                await until(lambda: keys_of(own_redis) == before)
                assert runs() == 2
            await until(lambda: client.trouble == ranker.trouble == "")
            await until(lambda: ranker.canary == "m@0.9/1")
            await deploy(
                settings,
                ("m", envelope(9, epoch=1, intervention="m@1.9")),
                ("m/canary", None),
            )
            await until(lambda: ranker.version == 9)
            assert ranker.canary == ""
            publish_experiments(config)
            await until(lambda: runs() == 0)
            flush(own_redis)
            await until(lambda: len(stored_records(store).records) == 2)
            client.refresh()
            assert runs() == 0

    asyncio.run(scenario())
    fresh = Experiments(other)
    assert fresh.refresh()
    assert fresh.of("boost", unit="s", now_ms=NOW_MS) is None
    again = config.with_name("again.toml")
    again.write_text(config.read_text() + BOOST.format(epoch=2))
    assert main(["experiments", "publish", "--config", str(again)]) == 2
    client.close()
    ranker.close()
    other.close()
    store.close()


def test_what_was_forged_in_redis_is_put_back(config: Path, own_redis: Redis) -> None:
    """Pointers and experiments, also those beyond all that was published."""
    settings = settings_of(config)
    store = store_of(settings, retries=0)
    boost = ExperimentSettings(rankers={"old": "m", "new": ""}, epoch=2)
    name = settings.namespace
    forgeries: list[Callable[[redis.Redis], object]] = [
        lambda made: made.set(f"{name}:pointer:m", "latest"),
        lambda made: made.set(f"{name}:pointer:m", "0.99"),
        lambda made: made.delete(f"{name}:canary:m"),
        lambda made: made.set(f"{name}:canary:m", canary_record(stage=2)),
        lambda made: made.set(f"{name}:canary:m", "x"),
        lambda made: made.hset(f"{name}:experiments", "boost", "{"),
        lambda made: made.hset(
            f"{name}:experiments",
            "boost",
            msgspec.json.encode(msgspec.structs.replace(boost, share=0.5)),
        ),
        lambda made: made.hset(
            f"{name}:experiments",
            "boost",
            msgspec.json.encode(msgspec.structs.replace(boost, epoch=9)),
        ),
        lambda made: made.hset(f"{name}:removed-experiments", "boost", "9"),
        lambda made: made.set(f"{name}:experiments", "x"),
        lambda made: made.set(f"{name}:removed-experiments", "x"),
        lambda _: store.publish(envelope(99, n_features=4)),
    ]

    async def scenario() -> None:
        publish_experiments(config, BOOST.format(epoch=2), ENDED)
        publish_experiments(config, BOOST.format(epoch=2))
        async with publishing(settings, store):
            await produce(settings, range(1, 4))
            await deploy(settings, ("m/canary", canary_record()))
            await until(lambda: store.standing(["m"]) == {"m": (0, 3)})
            await until(lambda: bool((store.newest("m") or (0, 0, b""))[2]))
            before = keys_of(own_redis)
            with redis.Redis.from_url(own_redis.url) as made:
                for forge in forgeries:
                    # At once, as the publisher may look at any moment.
                    with made.pipeline() as writing:
                        forge(writing)
                        for key in before:
                            writing.dump(key)
                        assert writing.execute()[-len(before) :] != [*before.values()]
                    await until(lambda: keys_of(own_redis) == before)

    asyncio.run(scenario())
    store.close()


def written_by_an_older_release(
    settings: Settings, own_redis: Redis
) -> ExperimentSettings:
    """An experiment that runs, which is given, and one that ended, in Redis alone."""
    boost = ExperimentSettings(rankers={"old": "m", "new": ""}, epoch=2)
    with redis.Redis.from_url(own_redis.url) as client:
        client.hset(
            f"{settings.namespace}:experiments", "boost", msgspec.json.encode(boost)
        )
        client.hset(f"{settings.namespace}:removed-experiments", "ended", "4")
    return boost


def test_what_older_releases_wrote_to_redis_alone_stays(
    config: Path, own_redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """The publisher says what helps. Nonsense in the topic stops nobody."""
    settings = settings_of(config)
    store = store_of(settings, retries=0)
    boost = written_by_an_older_release(settings, own_redis)

    async def scenario() -> None:
        other = encode_record("other", running(msgspec.structs.replace(boost, epoch=1)))
        newer = other.replace(b'"schema":1', b'"schema":2')
        records = [(b"other", other), (b"newer", newer), (b"bad", b"\xff")]
        await asyncio.to_thread(send_records, settings, EXPERIMENTS, records)
        async with publishing(settings, store) as publisher:
            await until(lambda: "other" in stored_records(store).records)
            await until(lambda: "experiment='boost'" in caplog.text)
            assert publisher.counters()["experiments_rejected"] == 2
            before = stored_records(store).records
            assert sorted(before) == ["boost", "ended", "other"]

    asyncio.run(scenario())
    assert "run `rankstream experiments publish`" in caplog.text
    assert "must have schema 1; got 2" in caplog.text
    store.close()


def test_what_an_older_release_published_is_brought_to_the_topic(
    config: Path, own_redis: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unchanged for clients; afterwards an emptied Redis gets it again."""
    settings = settings_of(config)
    store = store_of(settings, retries=0)
    written_by_an_older_release(settings, own_redis)
    before = keys_of(own_redis)
    publish_experiments(config, BOOST.format(epoch=2))
    assert capsys.readouterr().out == "boost: unchanged\n"
    assert keys_of(own_redis) == before

    async def scenario() -> None:
        flush(own_redis)
        async with publishing(settings, store):
            await until(lambda: keys_of(own_redis) == before)

    asyncio.run(scenario())
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
