"""Workers on a real broker that are killed: nothing lost, nothing twice, same bytes."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    QUERIES,
    SNAPSHOTS,
    full_name,
)
from streams.local import LocalPipeline
from streams.topology import STAGES, group_of
from tests.learned_log import learned_anew
from tests.services import KafkaService, RedisService
from tests.session.cases import n_cases
from tests.worker_process import (
    SHORT_TIMES,
    configured,
    running,
    settings_of,
    waited_until,
)

N_IMPRESSIONS = n_cases(8_000, 16_000)
SHORT = f"""
{SHORT_TIMES}[models.m]
features = 2
"""


def send_events(settings: Settings, on_sent: Mapping[int, object]) -> None:
    """Lists with features, a click on every third, paced; calls what is due."""
    start_ms = int(time.time() * 1_000) - 20 * N_IMPRESSIONS - 100_000
    with EventProducer(settings) as producer:
        for number in range(N_IMPRESSIONS):
            event = {
                "impression_id": f"i{number}",
                "query_id": f"q{number % 300}",
                "at_ms": start_ms + 20 * number,
                "model": "m",
                "policy": "plackett-luce",
                "candidates": ["a", "b", "c"],
                "shown": ["b", "a"],
                "scores": [1.0, 2.0, 0.0],
                "features": [[1.0, 0.1 * (number % 7)], [0.0, 2.0]],
            }
            producer.send(QUERIES, json.dumps(event).encode())
            if number % 3 == 0:
                click = {
                    "impression_id": f"i{number}",
                    "query_id": f"q{number % 300}",
                    "at_ms": start_ms + 20 * number + 5,
                    "position": 1 + number % 2,
                }
                producer.send(CLICKS, json.dumps(click).encode())
            if number % 100 == 99:
                time.sleep(0.06)
            due = on_sent.get(number)
            if callable(due):
                due()
        producer.end()


def interactions(settings: Settings) -> tuple[Counter[str], int, list[list[int]]]:
    """How often each impression came out, all clicks, and the numbers of each pair."""
    seen: Counter[str] = Counter()
    numbers: dict[tuple[int, int], list[int]] = {}
    n_clicks = 0
    for record in read_records(settings, INTERACTIONS):
        batch = decode_interaction_record(record.value or b"")
        for row, interaction in enumerate(batch.interactions):
            seen[interaction.impression.impression_id] += 1
            n_clicks += len(interaction.clicks)
            place = (batch.source, record.partition)
            numbers.setdefault(place, []).append(batch.first_sequence + row)
    return seen, n_clicks, list(numbers.values())


def last_values(settings: Settings, topic: str) -> dict[tuple[int, bytes], bytes]:
    """The last value of each key of each partition."""
    values: dict[tuple[int, bytes], bytes] = {}
    for record in read_records(settings, topic):
        place = (record.partition, record.key or b"")
        if record.value is None:
            values.pop(place, None)
        else:
            values[place] = record.value
    return values


def refolded(settings: Settings) -> dict[tuple[int, bytes], bytes]:
    """The statistics of the canonical log, folded again in this process."""
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for record in read_records(settings, EVENTS):
        pipeline.fold_events(record.partition, record.value or b"")
    pipeline.flush()
    values = {}
    for partition, fold in enumerate(pipeline.folds):
        fold.settle()
        for change in fold.changes():
            if change.topic == "statistics" and change.value is not None:
                values[partition, change.key] = change.value
    return values


def group_lags(settings: Settings) -> dict[str, int]:
    """What Kafka says that the group of each stage has not committed, in records."""
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    consumer = KafkaConsumer(bootstrap_servers=settings.kafka.bootstrap)
    lags = {}
    for kind in STAGES:
        topic = full_name(settings.namespace, kind.source)
        group = group_of(settings.namespace, kind.role)
        committed = admin.list_group_offsets({group: None})[group]
        places = [
            TopicPartition(topic, partition)
            for partition in consumer.partitions_for_topic(topic)
        ]
        ends = consumer.end_offsets(places)
        # A role that has only begun has committed nothing yet.
        done = {place: found.offset for place, found in committed.items()}
        lags[kind.name] = sum(ends[place] - done.get(place, 0) for place in places)
    consumer.close()
    admin.close()
    return lags


@pytest.mark.broker
def test_killed_workers_lose_nothing_and_double_nothing(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Kill -9 of every role under load; then a stop, and nothing is folded again."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, SHORT)
    settings = settings_of(config)
    log = tmp_path / "worker.log"
    struck: list[str] = []
    with running(config, log) as worker:

        def kill(role: str) -> None:
            # A role that was killed before may not have been started again yet.
            waited_until(lambda: worker.kill(role), log)
            struck.append(role)

        roles = ("fold", "ingest", "learn", "fold", "publish", "ingest")
        plan = {
            (place + 1) * N_IMPRESSIONS // (len(roles) + 1): lambda role=role: kill(
                role
            )
            for place, role in enumerate(roles)
        }
        send_events(settings, plan)
        waited_until(lambda: len(interactions(settings)[0]) == N_IMPRESSIONS, log)
        # Group offsets are of what is covered, over the markers of transactions too.
        waited_until(lambda: not any(group_lags(settings).values()), log)
        status = worker.stop()[0]
    seen, n_clicks, numbers = interactions(settings)

    assert struck == list(roles)
    assert status == 0
    assert len(seen) == sum(seen.values()) == N_IMPRESSIONS
    assert n_clicks == (N_IMPRESSIONS + 2) // 3
    assert all(each == list(range(1, len(each) + 1)) for each in numbers)
    assert last_values(settings, "statistics") == refolded(settings)

    _, pipeline = learned_anew(settings)
    snapshots = {
        key: value for (_, key), value in last_values(settings, SNAPSHOTS).items()
    }
    newest = max(snapshots, key=lambda key: int(key.rpartition(b".")[2]))
    assert int(newest.rpartition(b".")[2]) == N_IMPRESSIONS
    learned = pipeline.snapshots[b"m"]
    assert learned == snapshots[newest]

    with running(config, tmp_path / "again.log") as worker:
        waited_until(lambda: worker.said().count("event=restored") >= 16, worker.log)
        worker.stop()
        words = worker.said()
    folded_again = [
        line
        for line in words.splitlines()
        if "event=restored" in line
        and _field(line, "checkpoint") != _field(line, "position")
    ]

    assert folded_again == []
    assert "event=caught-up" not in words


@pytest.mark.broker
def test_real_pages_are_counted_exactly_while_ingest_is_killed(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Real clicks of real people, flat out, 4 + 4 partitions: late 0, orphan 0."""
    data = Path(__file__).parents[3] / "shared" / "data" / "yandex-sessions"
    if not data.exists():
        pytest.skip(f"data set not found: {data}")
    from producers.formats.registry import files_of, read_events  # noqa: PLC0415

    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace)
    settings = settings_of(config)
    events = sorted(
        read_events(files_of([data]), form="yandex-sessions"), key=lambda e: e.at_ms
    )
    log = tmp_path / "worker.log"
    struck = 0
    with running(config, log) as worker:
        waited_until(lambda: worker.said().count("event=restored") >= 12, log)
        with EventProducer(settings) as producer:
            for number, event in enumerate(events):
                producer.send(event.kind, event.value)
                if number in (6_000, 14_000):
                    waited_until(lambda: worker.kill("ingest"), log)
                    struck += 1
            producer.end()
        waited_until(lambda: sum(interactions(settings)[0].values()) >= 9_974, log)
        worker.stop()
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for record in read_records(settings, EVENTS):
        pipeline.fold_events(record.partition, record.value or b"")
    pipeline.flush()
    counts = pipeline.counters()

    assert struck == 2
    assert (counts["late"], counts["orphan"], counts["pending"]) == (0, 0, 0)
    assert counts["applied_impressions"] == 9_974
    assert counts["applied_clicks"] == 10_739
    assert last_values(settings, "statistics") == refolded(settings)


def _field(line: str, name: str) -> str:
    return line.split(f"{name}=", 1)[1].split(" ", 1)[0]
