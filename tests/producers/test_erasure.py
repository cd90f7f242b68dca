"""A person's events are found, and a log can be copied without them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaProducer

from producers.brokers.topic_admin import TopicAdmin
from producers.erasure import Person, erase_from_dump
from producers.formats.canonical_dump import Header, read_dump, write_dump
from producers.formats.source_file import FileUnreadable
from rankstream.operations.cli import main
from rankstream.settings import KafkaSettings, Settings, load_settings
from rankstream.wire.topics import CLICKS, EVENTS, INTERACTIONS, QUERIES, full_name
from streams.local import LocalPipeline, local_settings
from streams.stage import Output
from streams.topology import topics_of
from tests.services import KafkaService

NOW_MS = 1_700_000_000_000
USER, SESSION = "u3", "s5"


def sent() -> list[tuple[str, dict[str, Any]]]:
    """Lists of many people, with clicks that come before and after them."""
    rng = np.random.default_rng(2)
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(200):
        at_ms = NOW_MS + number
        place = {"impression_id": f"i{number}", "query_id": f"q{number % 5}"}
        shown: dict[str, Any] = place | {"at_ms": at_ms, "shown": ["a", "b", "c"]}
        who = {"user": f"u{number % 9}", "session": f"s{number % 23}"}
        clicked: dict[str, Any] = place | {
            "at_ms": at_ms + 2,
            "position": int(rng.integers(1, 4)),
        }
        pair = [(QUERIES, shown | who if number % 4 else shown), (CLICKS, clicked)]
        found += pair if rng.random() < 0.5 else pair[::-1]
    return found


def written() -> list[Output]:
    """All that stages write of it."""
    outputs: list[Output] = []
    pipeline = LocalPipeline(
        local_settings(Settings()), now=lambda: NOW_MS, on_output=outputs.append
    )
    for target, event in sent():
        pipeline.send(target, json.dumps(event).encode())
    pipeline.end()
    return outputs


def dump_of(path: Path, topic: str = EVENTS) -> Path:
    """A log with everybody."""
    records = [(0, one.value or b"") for one in written() if one.topic == topic]
    write_dump(path, Header(topic, 1), records)
    return path


def folded(path: Path) -> tuple[list[tuple[bytes, bytes | None]], dict[str, int]]:
    """What a log gives."""
    pipeline = LocalPipeline(local_settings(Settings()), now=lambda: NOW_MS)
    for partition, value in read_dump(path):
        pipeline.fold_events(partition, value)
    pipeline.flush()
    sums = sorted((each.key, each.value) for each in pipeline.statistics())
    return sums, pipeline.counters()


def is_theirs(event: dict[str, Any]) -> bool:
    """Whether a list of those that were sent is the person's."""
    return event.get("user") == USER or event.get("session") == SESSION


def test_a_copy_gives_what_the_log_would_have_given_without_them(
    tmp_path: Path,
) -> None:
    """To the byte, with as much time passed."""
    person = Person(USER, frozenset([SESSION]))
    source, target = dump_of(tmp_path / "all.dump"), tmp_path / "clean.dump.zst"
    theirs = [event for topic, event in sent() if topic == QUERIES and is_theirs(event)]
    names = {event["impression_id"] for event in theirs}
    assert 15 < len(names) < 40
    counts = erase_from_dump(person, source, target, lambda: None)
    assert counts == (len(names), len(names))
    expected = LocalPipeline(local_settings(Settings()), now=lambda: NOW_MS)
    for topic, event in sent():
        if event["impression_id"] not in names:
            expected.send(topic, json.dumps(event).encode())
    expected.end()
    sums, counted = folded(target)
    assert sums == sorted((each.key, each.value) for each in expected.statistics())
    assert counted["applied_impressions"] == 200 - len(names)
    assert counted["pending"] == counted["orphan"] == 0
    assert folded(source)[0] != sums
    raw = b"".join(value for _, value in read_dump(target))
    assert not any(f"\xa2{name}".encode("latin-1") in raw for name in (USER, SESSION))
    # Nobody is left, so a second copy is the same.
    again = tmp_path / "again.dump"
    assert erase_from_dump(person, target, again, lambda: None) == (0, 0)
    assert [*read_dump(again)] == [*read_dump(target)]


def test_only_the_person_is_left_out(tmp_path: Path) -> None:
    """A session of a user's name is another's, and nobody's lists stay."""
    source, target = dump_of(tmp_path / "all.dump"), tmp_path / "clean.dump"
    other = Person(None, frozenset([USER]))
    assert erase_from_dump(other, source, target, lambda: None) == (0, 0)
    assert [*read_dump(source)] == [*read_dump(target)]


def test_lists_of_others_in_other_partitions_stay(tmp_path: Path) -> None:
    """There an impression id that is theirs elsewhere is another list, with clicks."""
    settings = Settings(kafka=KafkaSettings(partitions=16, input_partitions=1))
    outputs: list[Output] = []
    pipeline = LocalPipeline(settings, now=lambda: NOW_MS, on_output=outputs.append)
    for query, user in (("q0", USER), ("q1", "u1"), ("q2", "u1"), ("q3", "u1")):
        named = {"impression_id": "1", "query_id": query, "at_ms": NOW_MS}
        shown = named | {"shown": ["a", "b"], "user": user}
        pipeline.send(QUERIES, json.dumps(shown).encode())
        clicked = named | {"position": 1, "event_id": query}
        pipeline.send(CLICKS, json.dumps(clicked).encode())
    pipeline.end()
    assert pipeline.counters()["applied_impressions"] == 4
    source, target = tmp_path / "all.dump", tmp_path / "clean.dump"
    log = [(one.partition, one.value or b"") for one in outputs if one.topic == EVENTS]
    write_dump(source, Header(EVENTS, 16), log)
    assert erase_from_dump(Person(USER), source, target, lambda: None) == (1, 1)


def test_a_dump_of_interactions_is_refused(tmp_path: Path) -> None:
    """Its interactions are numbered without a gap."""
    source = dump_of(tmp_path / "i.dump", INTERACTIONS)
    target = tmp_path / "clean.dump"
    with pytest.raises(FileUnreadable, match="a dump must be of events"):
        erase_from_dump(Person(USER), source, target, lambda: None)
    assert not target.exists()


def test_the_command_copies_and_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the numbers, and where the person still is."""
    source, target = dump_of(tmp_path / "all.dump"), tmp_path / "clean.dump"
    words = ["erase", "--user", USER, "--from", str(source), "--out", str(target)]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "without 16 lists and 16 clicks" in said
    assert "still has them" in said
    assert target.exists()


def test_it_says_what_kafka_holds(
    kafka: KafkaService,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lists and clicks of each log, also of a click that came before its list."""
    monkeypatch.setenv("RANKSTREAM_NAMESPACE", namespace)
    monkeypatch.setenv("RANKSTREAM_KAFKA__BOOTSTRAP", f"'{kafka.bootstrap}'")
    monkeypatch.setenv("COLUMNS", "120")
    settings = load_settings()
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    admin.close()
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap)
    for output in written():
        if output.topic in (EVENTS, INTERACTIONS):
            topic = full_name(namespace, output.topic)
            producer.send(topic, output.value, partition=0)
    producer.close()
    assert main(["erase", "--user", USER]) == 0
    table, said = capsys.readouterr()
    rows = [line.split("│")[1:4] for line in table.splitlines() if "│" in line]
    found = [[cell.strip() for cell in row] for row in rows]
    assert found == [["events", "16", "16"], ["interactions", "16", "16"]]
    assert "they leave each topic when its retention" in said
    assert main(["erase", "--user", "nobody"]) == 0
    assert "neither log has an event of this person" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "a person must be named"),
        (["--session", ""], "a person must be named"),
        (["--user", "u", "--from", "a.dump"], "--from and --out go together"),
        (["--user", "u", "--out", "a.dump"], "--from and --out go together"),
        (["--user", "u", "--from", "a.dump", "--out", "./a.dump"], "another file"),
        (["--user", "u", "--from", "no.dump", "--out", "b.dump"], "no.dump"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In words, before anything is read or written."""
    monkeypatch.chdir(tmp_path)
    assert main(["erase", *words]) == 2
    assert reason in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
