"""A log on a real broker that gets more partitions: nothing lost, nothing twice."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from producers.event_producer import EventProducer
from producers.topic_reader import TopicReader, read_records
from rankstream.operations.cli import main
from rankstream.operations.conversion.split_partition import Divider
from rankstream.operations.recount.log import recount_topics
from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import CLICKS, EVENTS, INTERACTIONS, QUERIES, SNAPSHOTS
from streams.kafka.processes.child_end import CONFIGURATION_EXIT
from tests.learned_log import learned_anew
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    SHORT_TIMES,
    configured,
    running,
    settings_of,
    waited_until,
)

N_LISTS = 3_000
WIDE = 16
MORE = f"""
{SHORT_TIMES.replace("idle_ms = 60_000", "idle_ms = 3_000")}[models.m]
features = 2
"""


def events(first: int, last: int, start_ms: int) -> Iterator[tuple[str, bytes]]:
    """Lists and clicks; of each tenth list a repeat, of each seventh a late click."""
    for number in range(first, last):
        at_ms = start_ms + 20 * number
        query = f"q{number % 300}"
        listed = {
            "impression_id": f"i{number}",
            "query_id": query,
            "at_ms": at_ms,
            "model": "m",
            "policy": "plackett-luce",
            "candidates": ["a", "b", "c"],
            "shown": ["b", "a"],
            "scores": [1.0, 2.0, 0.0],
            "features": [[1.0, 0.1 * (number % 7)], [0.0, 2.0]],
        }
        yield QUERIES, json.dumps(listed).encode()
        if number % 10 == 0:
            yield QUERIES, json.dumps(listed).encode()
        behind = number - 500 if number % 7 == 0 else number
        if behind >= 0 and number % 3 == 0:
            click = {
                "impression_id": f"i{behind}",
                "query_id": f"q{behind % 300}",
                "at_ms": start_ms + 20 * behind + 5,
                "position": 1 + number % 2,
            }
            yield CLICKS, json.dumps(click).encode()


def send(
    settings: Settings, found: Iterator[tuple[str, bytes]], *, is_end: bool = False
) -> None:
    """Send events, paced so that queries and clicks stay together."""
    with EventProducer(settings) as producer:
        for number, (topic, value) in enumerate(found):
            producer.send(topic, value)
            if number % 100 == 99:
                time.sleep(0.03)
        if is_end:
            producer.end()


def n_elements(settings: Settings) -> int:
    """Records of the log so far."""
    with TopicReader(settings) as reader:
        return sum(end - first for first, end in reader.bounds(EVENTS).values())


def interactions(settings: Settings) -> tuple[Counter[str], set[int]]:
    """How often each impression came out, and of which partitions of the log."""
    seen: Counter[str] = Counter()
    sources = set()
    for record in read_records(settings, INTERACTIONS):
        batch = decode_interaction_record(record.value or b"")
        sources.add(batch.source)
        seen.update(each.impression.impression_id for each in batch.interactions)
    return seen, sources


def snapshots(settings: Settings) -> set[bytes | None]:
    """Keys of the models that were published and are kept."""
    last = {record.key: record.value for record in read_records(settings, SNAPSHOTS)}
    return {key for key, value in last.items() if value is not None}


def fold_some(config: Path, settings: Settings, log: Path, start_ms: int) -> None:
    """Stop in order, with lists open and with events that only ingestion has seen."""
    with running(config, log) as worker:
        send(settings, events(0, 1_000, start_ms))
        waited_until(lambda: len(interactions(settings)[0]) > 0, log)
        assert worker.stop()[0] == 0
    with running(config, log, "--role", "ingest") as worker:
        before = n_elements(settings)
        send(settings, events(1_000, 1_500, start_ms))
        waited_until(lambda: n_elements(settings) > before + 8, log)
        assert worker.stop()[0] == 0


@pytest.mark.broker
def test_four_partitions_become_sixteen(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With lists open, events not folded yet, and a conversion that dies half way."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, MORE)
    settings, log = settings_of(config), tmp_path / "worker.log"
    start_ms = int(time.time() * 1_000) - 20 * N_LISTS - 100_000
    fold_some(config, settings, log, start_ms)
    wide = config.read_text().replace("[kafka]", f"[kafka]\npartitions = {WIDE}")
    config.write_text(wide)
    settings = settings_of(config)
    assert main(["topics", "check", "--config", str(config)]) == 1
    assert "topics split" in " ".join(capsys.readouterr().out.split())
    n_before = n_elements(settings)
    assert main(["topics", "split", "--config", str(config), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "events[3] would be folded to its end, and divided into 3, 7, 11, 15" in said
    assert n_elements(settings) == n_before
    assert main(["topics", "check", "--config", str(config)]) == 1
    capsys.readouterr()
    divide = Divider.divide

    async def dying(self: Divider, partition: int) -> Any:
        if partition == 2:
            raise RuntimeError("killed here")
        return await divide(self, partition)

    monkeypatch.setattr(Divider, "divide", dying)
    assert main(["topics", "split", "--config", str(config)]) == 2
    said, why = capsys.readouterr()
    assert "killed here" in why
    assert "events[0]: folded" in said
    assert "events: 16 partitions, 4 before" in said
    with running(config, log) as worker:  # nobody goes on from half of it
        assert worker.process.wait(PATIENCE_S) == CONFIGURATION_EXIT

    monkeypatch.undo()
    assert main(["topics", "split", "--config", str(config)]) == 0
    said = capsys.readouterr().out
    assert "events[1]: nothing to divide" in said
    assert "events[3]: [3] " in said
    assert main(["topics", "split", "--config", str(config)]) == 0
    assert "[3] " not in capsys.readouterr().out

    with running(config, log) as worker:
        send(settings, events(1_500, N_LISTS, start_ms), is_end=True)
        waited_until(lambda: len(interactions(settings)[0]) == N_LISTS, log)
        last = f"m/0.{N_LISTS}".encode()  # the learner may compile first
        waited_until(lambda: last in snapshots(settings), log)
        assert worker.stop()[0] == 0
    seen, sources = interactions(settings)
    assert set(seen.values()) == {1}
    assert len(sources) == WIDE
    verdict = recount_topics(settings)
    assert verdict.is_clean, verdict.differences
    assert verdict.n_events > N_LISTS
    _, anew = learned_anew(settings)
    assert anew.counters()["learned"] == N_LISTS
