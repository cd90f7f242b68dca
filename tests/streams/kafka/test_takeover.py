"""A worker of before was killed; one of this version goes on from what it left."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from kafka import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError

from deploy.process import ServerFailed
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.cli import main
from rankstream.recount.log import recount_topics
from rankstream.settings import Settings, load_settings
from rankstream.wire.events import (
    Click,
    Frontier,
    Impression,
    Interaction,
    decode_event_record,
    decode_interaction_record,
)
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    LATE,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    dead_letters,
    state_topic,
)
from streams.ingest.ingest import Ingest
from streams.kafka.resume_position import (
    POSITION_KEY,
    ResumePosition,
    decode_position,
)
from streams.local import LocalPipeline
from streams.stage import Output, SourceRecord
from tests.services import KafkaService, RedisService, ServiceMissing, without
from tests.streams.kafka.takeover.event_log import (
    N_HALF,
    N_IMPRESSIONS,
    NAMESPACE,
    SETTINGS,
    events,
)
from tests.streams.kafka.takeover.stored import stored_broker
from tests.streams.kafka.toy import wait_until
from tests.streams.test_exactness import last_values
from tests.worker_process import WorkerProcess, running, waited_until

CONFIG = """
namespace = "{namespace}"
[kafka]
bootstrap = "{bootstrap}"
input_partitions = 2
partitions = 2
learner_partitions = 2
[redis]
url = "{redis}"
[delivery]
session_timeout_s = 6.0
"""
ASIDE = (LATE, dead_letters(QUERIES), dead_letters(CLICKS))

InOrder = dict[tuple[int, int], list[Impression | Click]]
"""What ingestion took in: by partition of `events` and source, in order."""


@dataclass(frozen=True)
class Taken:
    """What was found before, and what the new worker said; its settings lead to it."""

    settings: Settings
    positions: dict[int, ResumePosition]
    transactional_ids: set[str]
    n_interactions: int
    n_snapshots: int
    said: str


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaService]:
    """A broker of our own, with what the worker of before left."""
    broker = stored_broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
    except ServerFailed as error:
        without(ServiceMissing(str(error)), os.environ)
    try:
        yield KafkaService(broker.bootstrap, broker)
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def taken(
    stored: KafkaService,
    redis_server: RedisService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Taken:
    """The other half of the events, taken in by a worker of this version."""
    folder = tmp_path_factory.mktemp("worker")
    config, log = folder / "rankstream.toml", folder / "worker.log"
    reached = {"bootstrap": stored.bootstrap, "redis": redis_server.url}
    config.write_text(CONFIG.format(namespace=NAMESPACE, **reached) + SETTINGS)
    settings = load_settings(config, {})
    assert main(["topics", "check", "--config", str(config)]) == 0
    found = Taken(
        settings,
        positions(settings),
        transactional_ids(stored.bootstrap),
        n_closed(settings),
        len(last_values(settings, SNAPSHOTS)),
        "",
    )
    with running(config, log) as worker:
        waited_until(lambda: has_caught_up(worker), 300, log)
        with EventProducer(settings) as producer:
            for sent in events(N_HALF, N_IMPRESSIONS):
                producer.send(sent.topic, sent.value)
            producer.end()
        waited_until(lambda: n_closed(settings) == N_IMPRESSIONS, 60, log)
        status, _ = worker.stop()
        assert status == 0
        return replace(found, said=worker.said())


def positions(settings: Settings, stage: str = "fold") -> dict[int, ResumePosition]:
    """The resume position of each partition of a stage."""
    last = last_values(settings, state_topic(stage))
    return {
        partition: decode_position(value)
        for (partition, key), value in last.items()
        if key == POSITION_KEY
    }


def transactional_ids(bootstrap: str) -> set[str]:
    """Of all producers that the broker has met; it may be reading them yet."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    found: set[str] = set()

    def are_read() -> bool:
        try:
            (listed,) = admin.list_transactions().values()
        except CoordinatorLoadInProgressError:
            return False
        found.update(each.transactional_id for each in listed)
        return True

    try:
        wait_until(are_read, 60.0)
    finally:
        admin.close()
    return found


def taken_in(settings: Settings) -> InOrder:
    """Impressions and clicks of the canonical log."""
    found: InOrder = {}
    for record in read_records(settings, EVENTS):
        _take(found, record.partition, record.value)
    return found


def taken_in_anew(settings: Settings) -> InOrder:
    """The same, by ingestion of this version from the first record on."""
    found: InOrder = {}
    for topic in (QUERIES, CLICKS):
        stages = [Ingest(topic, partition, settings) for partition in range(2)]
        for record in read_records(settings, topic):
            stage = stages[record.partition]
            stage.tick(record.timestamp_ms, at_end=False)
            stage.fold(
                SourceRecord(
                    topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    record.headers,
                )
            )
        for output in (output for stage in stages for output in stage.outputs()):
            if output.topic == EVENTS:
                _take(found, output.partition, output.value)
    return found


def _take(found: InOrder, partition: int, packed: bytes | None) -> None:
    batch = decode_event_record(packed or b"")
    known = found.setdefault((partition, batch.source), [])
    known += [each for each in batch.elements if not isinstance(each, Frontier)]


class Passed:
    """What the fold passed on: interactions in order, and what it put aside."""

    def __init__(self) -> None:
        self.interactions: dict[tuple[int, int], list[Interaction]] = {}
        self.numbers: dict[tuple[int, int], list[int]] = {}
        self.aside: Counter[tuple[str, int, bytes]] = Counter()

    def take(self, topic: str, partition: int, packed: bytes | None) -> None:
        """Take a record of one of its outputs."""
        if topic in ASIDE:
            self.aside[topic, partition, packed or b""] += 1
        elif topic == INTERACTIONS:
            batch = decode_interaction_record(packed or b"")
            place, rows = (batch.source, partition), batch.interactions
            self.interactions.setdefault(place, []).extend(rows)
            numbers = range(batch.first_sequence, batch.first_sequence + len(rows))
            self.numbers.setdefault(place, []).extend(numbers)


def passed_on(settings: Settings) -> Passed:
    """What lies in the topics; of the dead letters those that the fold wrote."""
    found = Passed()
    for topic in (INTERACTIONS, *ASIDE):
        for record in read_records(settings, topic):
            if record.value != b"no JSON":
                found.take(topic, record.partition, record.value)
    return found


def folded_anew(settings: Settings) -> tuple[LocalPipeline, Passed]:
    """The canonical log, folded by this version from its first record on."""
    found = Passed()

    def keep(output: Output) -> None:
        found.take(output.topic, output.partition, output.value)

    pipeline = LocalPipeline(settings, now=lambda: 0, on_output=keep)
    for record in read_records(settings, EVENTS):
        pipeline.fold_events(record.partition, record.value or b"")
    pipeline.flush()
    for fold in pipeline.folds:
        fold.settle()
    return pipeline, found


def learned_anew(settings: Settings) -> tuple[dict[bytes, bytes], bytes]:
    """Every snapshot that the interactions give, and the last one."""
    given: dict[bytes, bytes] = {}

    def keep(output: Output) -> None:
        if output.topic == SNAPSHOTS and output.key and output.value:
            given[output.key] = output.value

    pipeline = LocalPipeline(settings, now=lambda: 0, on_output=keep)
    pipeline.start()
    for record in read_records(settings, INTERACTIONS):
        pipeline.fold_interactions(record.partition, record.value or b"")
    return given, pipeline.snapshots[b"m"]


def has_caught_up(worker: WorkerProcess) -> bool:
    """Whether both partitions of the fold are where they were; fails on a refusal."""
    said = worker.said()
    assert not re.search("event=(refused|failed)", said), said
    return said.count("event=caught-up") == 2


def n_closed(settings: Settings) -> int:
    """Interactions that came out."""
    return sum(len(each) for each in passed_on(settings).interactions.values())


def test_a_worker_goes_on_from_the_state_of_an_older_release(
    taken: Taken, stored: KafkaService
) -> None:
    """From its resume positions, behind its checkpoints, as the same producers."""
    assert 0 < taken.n_interactions < N_HALF
    assert sorted(taken.positions) == [0, 1]
    for partition, at in taken.positions.items():
        name = rf"partition=events\[{partition}\]"
        (line,) = re.findall(rf"event=restored {name} .*", taken.said)
        assert 0 < at.checkpoint_offset < at.offset
        assert f"checkpoint={at.checkpoint_offset} position={at.offset}" in line
        assert re.search(rf"event=caught-up {name} offset={at.offset}", taken.said)
    assert "refused" not in taken.said
    assert len(taken.transactional_ids) == 8
    assert transactional_ids(stored.bootstrap) == taken.transactional_ids


def test_nothing_is_lost_and_nothing_double_over_a_takeover(taken: Taken) -> None:
    """By what was sent to both workers."""
    everything = events(0, N_IMPRESSIONS)
    sent = Counter((each.topic, each.outcome) for each in everything)
    found = passed_on(taken.settings)
    rows = [row for each in found.interactions.values() for row in each]
    names = {row.impression.impression_id for row in rows}
    pipeline, _ = folded_anew(taken.settings)
    counts = pipeline.counters()

    assert len(names) == len(rows) == sent[QUERIES, "applied"] == N_IMPRESSIONS
    assert sum(len(row.clicks) for row in rows) == sent[CLICKS, "applied"]
    for numbers in found.numbers.values():
        assert numbers == list(range(1, len(numbers) + 1))
    assert counts["duplicate"] == sent[QUERIES, "duplicate"]
    assert counts["late"] == sent[CLICKS, "late"]
    assert counts["orphan"] == sent[CLICKS, "orphan"]
    assert counts["pending"] == 0
    letters = list(read_records(taken.settings, dead_letters(CLICKS)))
    assert len(letters) == sent[CLICKS, "letter"]
    assert recount_topics(taken.settings).as_dict()["differences"] == []


def test_a_takeover_gives_what_one_worker_gives_for_the_whole_log(
    taken: Taken,
) -> None:
    """Canonical log, interactions, what is put aside, sums and models: to the byte."""
    settings = taken.settings
    pipeline, anew = folded_anew(settings)
    found = passed_on(settings)
    changes = [
        (fold.partition, change) for fold in pipeline.folds for change in fold.changes()
    ]

    assert taken_in(settings) == taken_in_anew(settings)
    assert found.interactions == anew.interactions
    assert found.aside == anew.aside
    for topic in (STATISTICS, PREFERENCES):
        assert last_values(settings, topic) == {
            (partition, change.key): change.value
            for partition, change in changes
            if change.topic == topic and change.value is not None
        }

    given, newest = learned_anew(settings)
    written = last_values(settings, SNAPSHOTS)
    n_learned = sum(
        row.impression.model == "m"
        for each in found.interactions.values()
        for row in each
    )
    assert len(written) > taken.n_snapshots > 1
    assert written == {(_, key): given[key] for _, key in written}
    assert written[0, f"m/0.{n_learned}".encode()] == newest
