"""`--json`: every command has it, and prints what its schema says."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from producers.brokers.topic_admin import TopicAdmin
from producers.event_producer import send_records
from rankstream.operations import cli
from rankstream.operations.cli import main, whole_parser
from rankstream.operations.commands.results import RESULTS, result_schema
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.envelope import encode_snapshot
from rankstream.wire.topics import CLICKS, dead_letters
from streams.topology import topics_of
from streams.training.recorded_inputs import first_version
from tests.printed_json import words_of
from tests.rankstream.operations.commands.test_evaluate import events, written

WITHOUT = {
    "worker": "a service, which logs",
    "serve": "a service, which logs",
    "completion": "a script for a shell",
    "schemas": "prints JSON whatever is asked",
    "snapshots export": "prints the model as its library reads it",
    "snapshots export-curve": "prints JSON whatever is asked",
}
"""Commands without the option, and what they print instead."""

ELSEWHERE = {
    "decisions list", "decisions list RULE", "decisions show", "decisions withdraw",
    "experiments show", "experiments show --refit", "intervene --list",
    "intervene --show", "intervene --verify", "intervene --wait",
    "snapshots canary", "snapshots export-curve", "snapshots follow",
    "snapshots history", "snapshots import", "snapshots list",
    "snapshots promote", "snapshots repair", "snapshots rollback", "snapshots show",
    "snapshots verify", "train", "train --verify",
    "doctor", "init", "monitor", "restore",
}  # fmt: skip
"""Results that tests of these commands ask for: `tests.printed_json` holds them."""

OFFLINE = {
    "validate": ["log.jsonl"],
    "replay --check": ["log.jsonl", "--check"],
    "replay --local": ["log.jsonl", "--local", "--out", "again"],
    "statistics list": ["list", "--local", "run"],
    "statistics show": ["show", "red shoes", "--local", "run"],
    "statistics actions": ["actions", "--local", "ones"],
    "statistics convert": ["convert", "--local", "run", "--dry-run"],
    "statistics export": ["export", "counts.parquet", "--local", "run"],
    "evaluate": ["best.jsonl", "--log", "log.jsonl"],
    "export": ["log.jsonl", "--arrays", "log.npz"],
    "topics acls": ["acls"],
    "plan": ["--events", "500/s", "--lists", "10", "--queries", "1e5"],
    "rank": ["--model", "m.snapshot", "--features", "features.csv"],
}
"""Calls that need no service."""

ON_KAFKA = {
    "topics": ["check"],
    "feed": ["log.jsonl"],
    "replay": ["log.jsonl", "--accept-late"],
    "dlq count": ["count"],
    "dlq list": ["list"],
    "dlq show": ["show", "clicks/0/0"],
    "dlq replay": ["replay", "--dry-run"],
    "dump": ["events.dump"],
    "backup": ["copy"],
    "recount": [],
    "erase": ["--user", "u1"],
    "experiments list": ["list"],
    "experiments publish": ["publish"],
    "intervene": ["m"],
}
"""Calls of a namespace that has topics and no worker."""


def commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, set[str]]]:
    """Each command, or each of its actions, with its options."""
    below = [x for x in parser._actions if isinstance(x, argparse._SubParsersAction)]
    for action in below:
        for name, each in action.choices.items():
            yield from commands(each, (*words, name))
    if not below:
        yield " ".join(words), {x for y in parser._actions for x in y.option_strings}


OPTIONS = {
    words: options
    for words, options in commands(whole_parser())
    if words.split()[0] not in cli.OF_THE_LAB
}


def test_every_command_has_json_or_a_reason_not_to() -> None:
    """Those of the lab print tables of literature, and figures of their own."""
    assert {words for words, x in OPTIONS.items() if "--json" not in x} == {*WITHOUT}


def test_every_result_is_of_a_command_that_is_there() -> None:
    """And each command that prints JSON has a result."""
    with_json = {words for words, options in OPTIONS.items() if "--json" in options}
    with_json.add("snapshots export-curve")
    for words in RESULTS:
        assert any(words.startswith(each) for each in with_json), words
    for each in with_json:
        assert any(words.startswith(each) for words in RESULTS), each
    assert OFFLINE.keys() | ON_KAFKA.keys() | ELSEWHERE == RESULTS.keys()


@pytest.mark.parametrize("words", sorted(RESULTS))
def test_each_schema_is_one(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And is printed by the words of the call."""
    schema = result_schema(words)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert main(["schemas", "--result", words]) == 0
    assert json.loads(capsys.readouterr().out) == schema


def test_all_schemas_are_printed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """By their words; an unknown one is refused with the nearest."""
    assert main(["schemas", "--result"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == RESULTS.keys()
    assert main(["schemas", "--result", "dlq lst"]) == 2
    assert "got 'dlq lst'; did you mean dlq list?" in capsys.readouterr().err
    assert main(["schemas", "click-event", "--result"]) == 2
    assert "--result must be given alone" in capsys.readouterr().err


def test_a_call_is_named_by_the_most_of_its_words() -> None:
    """As `--local` makes a replay another thing."""
    called = argparse.Namespace(command="replay", local=True, check=False)
    assert words_of(called, [*RESULTS]) == "replay --local"
    listed = argparse.Namespace(command="decisions", action="list", rule="r")
    assert words_of(listed, [*RESULTS]) == "decisions list RULE"
    listed.rule = None
    assert words_of(listed, [*RESULTS]) == "decisions list"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, what a replay of it leaves, and rankings."""
    folder = tmp_path_factory.mktemp("log")
    written(folder / "log.jsonl", events(600))
    best = [
        {"query_id": name, "items": [*"abcd"]} for name in ("red shoes", "green tea")
    ]
    written(folder / "best.jsonl", best)
    (folder / "shop.toml").write_text(
        "[experiments.e]\nrankers = { old = '', new = '' }\n"
        "[models.m]\nfeatures = 2\nversions = 'trained'\n"
    )
    ones = [
        each | {"shown": each["shown"][:1]} for each in events(40) if "shown" in each
    ]
    written(folder / "ones.jsonl", ones)
    model = ModelSettings(features=2, versions="trained")
    first = encode_snapshot(first_version("m", model))
    (folder / "m.snapshot").write_bytes(first)
    (folder / "features.csv").write_text("query,item,x,y\nq,a,1,2\nq,b,2,1\n")
    with pytest.MonkeyPatch.context() as context:
        context.chdir(folder)
        for log, out in (("log.jsonl", "run"), ("ones.jsonl", "ones")):
            assert main(["replay", log, "--local", "--out", out]) == 0
    return folder


def printed(
    words: str, rest: list[str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str]]:
    """Exit status and lines of standard output; that they fit, a fixture sees to."""
    capsys.readouterr()
    status = main([words.split(maxsplit=1)[0], *rest, "--json"])
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("words", sorted(OFFLINE))
def test_what_is_printed_of_files_fits(
    words: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line, which is all of standard output."""
    monkeypatch.chdir(folder)
    status, lines = printed(words, OFFLINE[words], capsys)
    assert status == 0
    assert len(lines) == 1
    jsonschema.validate(json.loads(lines[0]), result_schema(words))


def test_what_is_printed_on_kafka_fits(
    named_settings: Settings,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line each, of a namespace with topics and a dead letter."""
    for name in ("log.jsonl", "shop.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    status, lines = printed("topics", ["create"], capsys)
    assert status == 0
    topics = topics_of(named_settings.kafka)
    assert len(json.loads(lines[0])["created"]) == len(topics)
    # What ingestion would have written of a click that is none.
    send_records(named_settings, dead_letters(CLICKS), [(b"key", b"no event")])
    for words, rest in ON_KAFKA.items():
        status, lines = printed(words, [*rest, "--config", "shop.toml"], capsys)
        assert (words, status, len(lines)) == (words, 0, 1)
        jsonschema.validate(json.loads(lines[0]), result_schema(words))
    admin = TopicAdmin(named_settings, topics)
    assert admin.problems() == []
    admin.close()
