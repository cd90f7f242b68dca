"""No stage writes a record that its topic does not take, whatever is sent."""

import asyncio
import fnmatch
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import (
    KafkaSettings,
    LimitSettings,
    ModelSettings,
    Settings,
    SettingsError,
)
from rankstream.wire.bounds import (
    HEAD_BYTES,
    KEY_BYTES,
    LARGEST,
    MAX_CLICK_BYTES,
    MAX_CLICKS_BYTES,
    MAX_ID_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    PART_BYTES,
    WIRE_BYTES,
)
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import (
    BATCH_BYTES,
    CLICKS,
    EVALUATIONS,
    INTERACTIONS,
    MAX_EVENT_BYTES,
    MAX_RECORD_BYTES,
    MIB,
    QUERIES,
    full_name,
)
from streams.fold.segments import Segment
from streams.kafka.clients import Cluster
from streams.kafka.state.state_log import StateLog
from streams.learning.learn import Learn
from streams.partition_fold import partition_fold
from streams.stage import Change, Output, Stage
from streams.topology import StageKind, topics_of
from tests.services import KafkaService
from tests.streams.largest_records import ONE, framed, largest_records, state_of

LIMIT = {
    topic.name: int(topic.config["max.message.bytes"])
    for topic in topics_of(KafkaSettings())
}
WRITTEN = sorted(LIMIT.keys() - {QUERIES, CLICKS})
STATIC = {
    "ingest-queries-state", "ingest-clicks-state", "candidates-state", INTERACTIONS,
}  # fmt: skip
"""Of which the largest in this test is far below the bound."""

records = functools.cache(largest_records)


def test_every_topic_that_is_written_has_a_bound_that_it_takes() -> None:
    """With all that the protocol adds."""
    assert sorted(LARGEST) == WRITTEN
    for topic, most in LARGEST.items():
        assert most + WIRE_BYTES <= LIMIT[topic], topic
    empty = Output(EVALUATIONS, 0, b"", b"")
    assert framed(empty) + 40 < WIRE_BYTES


def said_bytes(text: str) -> int:
    """A size as the page writes it: `16 MiB - 1 KiB`, `8 MiB + 64`."""
    units = {"MiB": MIB, "KiB": 1_024, "": 1}
    terms = re.findall(r"([+-]?) ?(\d+) ?(MiB|KiB|)", text)
    return sum(int(f"{sign}{number}") * units[unit] for sign, number, unit in terms)


def test_the_page_tells_the_bounds() -> None:
    """Each topic that we write in one row of the table in `ARCHITECTURE.md`."""
    page = Path(__file__).parents[2] / "ARCHITECTURE.md"
    section = page.read_text(encoding="utf-8").partition("## How large a record may")[2]
    found: dict[str, list[int]] = {}
    for line in section.partition("\n**")[0].splitlines():
        _, names, most, *_ = [*line.split("|"), "", ""]
        for pattern in re.findall(r"`([^`]+)`", names):
            for topic in fnmatch.filter(LARGEST, pattern):
                found.setdefault(topic, []).append(said_bytes(most))
    assert found == {topic: [most] for topic, most in LARGEST.items()}


def test_the_bounds_follow_from_what_is_accepted() -> None:
    """Each from the numbers that ingestion and the folds refuse by."""
    impression, clicks = MAX_EVENT_BYTES, MAX_CLICKS_BYTES
    assert impression + clicks + HEAD_BYTES <= LARGEST[INTERACTIONS]
    assert LARGEST[INTERACTIONS] + WIRE_BYTES <= MAX_RECORD_BYTES
    # What is cut into batches and parts is smaller than what stands alone.
    assert max(BATCH_BYTES, PART_BYTES + KEY_BYTES) < MAX_EVENT_BYTES
    longest = max(
        len(normalised_query(f"a{chr(c)}a").encode("utf-8", "replace")) - 2
        for c in range(0x110000)
    )
    texts = MAX_QUERY_CHARACTERS * longest + MAX_ID_CHARACTERS * 4
    assert texts + 1_024 <= KEY_BYTES
    # Four texts of a click and its query, every character escaped as two.
    assert (4 * MAX_ID_CHARACTERS + MAX_QUERY_CHARACTERS) * 12 <= MAX_CLICK_BYTES
    assert LimitSettings().click_bytes <= MAX_CLICKS_BYTES


@pytest.mark.parametrize("topic", WRITTEN)
def test_the_largest_record_that_events_can_cause_fits_its_topic(topic: str) -> None:
    """No larger than its bound, and hardly smaller: it is what is tested."""
    size = framed(records()[topic])
    assert size <= LARGEST[topic] + WIRE_BYTES
    assert size <= LIMIT[topic]
    if topic not in STATIC:
        assert size > 0.85 * LARGEST[topic]
    if topic == INTERACTIONS:
        assert size > MAX_EVENT_BYTES + MAX_CLICKS_BYTES // 4


def test_state_that_grows_with_open_windows_comes_back_from_its_parts() -> None:
    """A long window has many checkpoints, each with a segment or two."""
    fold = partition_fold(0, ONE)
    living = [Segment("open", n, 2**40 + n, 0) for n in range(200_000)]
    fold._segments.living = living
    state = {out.key: out.value for out in state_of(fold) if out.topic == "fold-state"}
    again = partition_fold(0, ONE)
    again.restore(
        Change("fold-state", key or b"", value) for key, value in state.items()
    )
    assert again._segments.living == living
    fold._segments.living = living[:10]
    state |= {out.key: out.value for out in state_of(fold)}
    left = {key: value for key, value in state.items() if value is not None}
    assert len(left) <= 3


def test_sequence_numbers_in_parts_come_back() -> None:
    """Of very many sources; those of a few stay one record, as they were."""
    learn = Learn(0, ONE)
    learn._sequences = dict.fromkeys(range(100_000), 2**40)
    state = {out.key: out.value for out in state_of(learn)}
    assert len(state) > 2
    again = Learn(0, ONE)
    again.restore(Change("learn-state", key or b"", v) for key, v in state.items())
    assert again.fingerprint() == learn.fingerprint()
    again._sequences = {7: 2**40}
    state |= {out.key: out.value for out in state_of(again)}
    left = {key: value for key, value in state.items() if value is not None}
    assert left == {b"sequences": msgspec.msgpack.encode([1, [(7, 2**40)], 0])}


def test_a_model_in_parts_comes_back() -> None:
    """The same version, byte for byte."""
    model = ModelSettings(features=40, kind="neural", hidden=[9_000], learner="pdgd")
    settings = Settings(models={"m": model}, kafka=KafkaSettings(learner_partitions=1))
    learn = Learn(0, settings)
    learn.models["m"].version = 7
    state = list(state_of(learn))
    again = Learn(0, settings)
    again.restore(Change(out.topic, out.key or b"", out.value) for out in state)
    assert len(state) > 3
    assert again.fingerprint() == learn.fingerprint()
    assert again.models["m"].snapshot() == learn.models["m"].snapshot()


def test_a_model_that_fits_no_record_is_a_wrong_setting() -> None:
    """It is told at the start, before anything was learned."""
    model = ModelSettings(features=136, kind="neural", hidden=[2_000, 2_000])
    settings = Settings(models={"m": model}, kafka=KafkaSettings(learner_partitions=1))
    with pytest.raises(SettingsError, match=r"models\.m must fit a record"):
        Learn(0, settings)


@pytest.fixture
def cluster(kafka: KafkaService, namespace: str) -> Iterator[Cluster]:
    """Topics as `topics create` makes them, of a partition each."""
    one = KafkaSettings(
        bootstrap=kafka.bootstrap,
        input_partitions=1,
        partitions=1,
        learner_partitions=1,
    )
    admin = TopicAdmin(Settings(namespace=namespace, kafka=one), topics_of(one))
    admin.create()
    yield Cluster(namespace, {"bootstrap_servers": kafka.bootstrap}, admin.topic_ids())
    admin.close()


def unbuilt(_settings: Settings, _partition: int) -> Stage:
    """A stage of which only the log is used."""
    raise NotImplementedError


@pytest.mark.broker
def test_a_broker_takes_the_largest_record_of_every_topic(cluster: Cluster) -> None:
    """As stages write them: in a transaction, by the client that they use."""
    largest = records()

    async def run() -> dict[str, int]:
        log = StateLog(StageKind("bounds", QUERIES, (), unbuilt), 0, cluster)
        await log.fence(60_000)
        try:
            await log.write(list(largest.values()), [])
        finally:
            await log.close()
        return await sizes_on(cluster)

    assert asyncio.run(run()) == {
        topic: len(record.value or b"") for topic, record in largest.items()
    }


async def sizes_on(cluster: Cluster) -> dict[str, int]:
    """How large the value of the one record of each topic is, as a reader has it."""
    found: dict[str, int] = {}
    consumer = AIOKafkaConsumer(
        **cluster.client,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        for topic in WRITTEN:
            place = TopicPartition(full_name(cluster.namespace, topic), 0)
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            found[topic] = len((await consumer.getone(place)).value or b"")
    finally:
        await consumer.stop()
    return found
