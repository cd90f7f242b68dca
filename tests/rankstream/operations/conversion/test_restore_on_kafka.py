"""A namespace that is made again from a backup, on a real broker."""

import json
import time
from pathlib import Path

import pytest

from producers.topic_reader import read_records, read_topic
from rankstream.operations.cli import main
from rankstream.operations.recount.log import recount_topics
from rankstream.settings import Settings
from rankstream.wire.events import Interaction, decode_interaction_record
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    LATE,
    PREFERENCES,
    SNAPSHOTS,
    STATISTICS,
    state_topic,
)
from streams.kafka.state.resume_position import POSITION_KEY
from tests.rankstream.operations.conversion.test_split_on_kafka import (
    MORE,
    events,
    interactions,
    send,
    snapshots,
)
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running, settings_of, waited_until

N_LISTS = 1_200
MADE_AGAIN = (STATISTICS, PREFERENCES, state_topic("candidates"), LATE)


def last_values(settings: Settings, topic: str) -> dict[tuple[int, object], bytes]:
    """By partition and key; of a log by partition and place among its records."""
    found: dict[tuple[int, object], bytes] = {}
    for number, record in enumerate(read_records(settings, topic)):
        key = number if topic == LATE else record.key
        if record.key == POSITION_KEY:
            continue
        found.pop((record.partition, key), None)
        if record.value is not None:
            found[record.partition, key] = record.value
    return found


def late_click(start_ms: int) -> bytes:
    """On the first list, which has closed; sent in order of time it would count."""
    click = {"impression_id": "i0", "query_id": "q0", "at_ms": start_ms + 7}
    return json.dumps(click | {"position": 2}).encode()


def in_order(settings: Settings) -> dict[int, list[Interaction]]:
    """Interactions of each partition of the log; how these mingle is left to chance."""
    found: dict[int, list[Interaction]] = {}
    for record in read_records(settings, INTERACTIONS):
        batch = decode_interaction_record(record.value or b"")
        found.setdefault(batch.source, []).extend(batch.interactions)
    return found


@pytest.mark.broker
def test_a_namespace_is_made_again_to_the_byte(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With lists open, repeats and late clicks; and it goes on where it was."""
    monkeypatch.chdir(tmp_path)
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, MORE)
    settings, log = settings_of(config), tmp_path / "worker.log"
    start_ms = int(time.time() * 1_000) - 20 * N_LISTS - 100_000
    with running(config, log) as worker:
        send(settings, events(0, 1_000, start_ms))
        waited_until(lambda: "i0" in interactions(settings)[0], log)
        send(settings, iter([(CLICKS, late_click(start_ms))]))
        waited_until(lambda: bool(last_values(settings, LATE)), log)
        assert worker.stop()[0] == 0
    words = ["--config", config.name]
    assert main(["backup", "copy", *words]) == 0
    assert main(["backup", "copy", *words]) == 2
    assert "copy has files: name another" in capsys.readouterr().err
    assert main(["restore", "copy", *words]) == 2
    assert "a namespace must be empty to be restored to" in capsys.readouterr().err

    again = f"{namespace}-again"
    there = configured(tmp_path, kafka.bootstrap, redis_server.url, again, MORE)
    other, log = settings_of(there), tmp_path / "again.log"
    assert main(["restore", "copy", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["events"] == len(list(read_topic(other, EVENTS))) > 0
    assert told["kept"][SNAPSHOTS] == len(snapshots(settings)) > 0
    assert snapshots(other) == snapshots(settings)
    only = ["restore", "copy", "--topic", SNAPSHOTS, *words, "--json"]
    assert main([*only, "--namespace", again]) == 0
    assert json.loads(capsys.readouterr().out)["kept"][SNAPSHOTS] == 0
    beside = ["--namespace", f"{namespace}-3"]
    assert main(["topics", "create", *words, *beside]) == 0
    capsys.readouterr()
    assert main([*only, *beside]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == told["kept"]
    before = {topic: last_values(settings, topic) for topic in MADE_AGAIN}
    with running(there, log, "--role", "fold", "--role", "learn") as worker:
        waited_until(lambda: "event=ready role=fold" in worker.said(), log)
        assert worker.stop()[0] == 0
    for topic in MADE_AGAIN:
        assert last_values(other, topic) == before[topic], topic
    assert before[STATISTICS]
    assert before[LATE]
    assert in_order(other) == in_order(settings)

    with running(there, log) as worker:
        send(other, events(1_000, N_LISTS, start_ms), is_end=True)
        waited_until(lambda: len(interactions(other)[0]) == N_LISTS, log)
        assert worker.stop()[0] == 0
    assert set(interactions(other)[0].values()) == {1}
    verdict = recount_topics(other)
    assert verdict.is_clean, verdict.differences
