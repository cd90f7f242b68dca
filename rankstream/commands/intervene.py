"""`rankstream intervene`: train a model now, list its trainings, verify one."""

import argparse
import secrets
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from producers.event_producer import send_records
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.commands.intervene_tables import print_runs
from rankstream.commands.intervene_verify import run_from, told_of, verdict_of
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.terminal.plain_text import visible
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import TRAINING
from rankstream.wire.training import (
    DONE,
    REFUSED,
    SCHEMA,
    Request,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
    encode_record,
    training_key,
)
from rankstream.wire.training import TRAINING as UNDER_WAY

SUMMARY = "train a model now, list its trainings, verify one from the log"

STOPPED = 130

LOOK_S = 0.5

PATIENCE_S = 10.0
"""After so long without an answer it is said what may be missing."""

ALIVE_MS = 60_000
"""A trainer that has said nothing for so long is not at work."""

EPILOG = """examples:
  rankstream intervene search --wait           train it, and show what came of it
  rankstream intervene --list                  every training, oldest first
  rankstream dump events.dump.zst
  rankstream intervene --verify 0.120000 --events events.dump.zst search
                                               make it again: equal bytes?

The role `train` of a worker trains. Settings of [models.NAME.training] say when it
does so by itself.

exit status: 0 if it is done, 1 if it was refused or a snapshot differs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "model", nargs="?", help="which one (default: the one that is trained)"
    )
    parser.add_argument(
        "--wait", action="store_true", help="follow it to its end, and show the run"
    )
    parser.add_argument(
        "--list", action="store_true", help="every training of the model, or of all"
    )
    parser.add_argument(
        "--verify",
        metavar="VERSION",
        help="make this EPOCH.VERSION again from a dump, and compare",
    )
    parser.add_argument(
        "--events", type=Path, metavar="DUMP", help="of `rankstream dump`, for --verify"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    if (arguments.verify is None) != (arguments.events is None):
        raise ValueError(
            "--verify must be given with --events, and only then; got "
            f"{arguments.verify!r} and {arguments.events}"
        )
    if arguments.verify is not None:
        name = _model_of(settings, arguments.model)
        verdict = verdict_of(settings, name, arguments.verify, arguments.events)
        sys.stdout.write(told_of(verdict, as_json=arguments.json) + "\n")
        return 0 if verdict.is_equal else 1
    if arguments.list:
        return _list(settings, arguments)
    return _ask(settings, _model_of(settings, arguments.model), arguments)


def _model_of(settings: Settings, asked: str | None) -> str:
    """The model that is meant.

    Raises
    ------
    ValueError
        Where it is not trained, or which one is not clear.
    """
    trained = sorted(name for name, one in settings.models.items() if one.is_trained)
    if asked is None and len(trained) == 1:
        return trained[0]
    if asked not in trained:
        raise ValueError(
            f"a model must be one whose learner is 'trained', of {trained}; got "
            f"{asked!r}"
        )
    return asked


def _list(settings: Settings, arguments: argparse.Namespace) -> int:
    with TopicReader(settings) as reader:
        runs = _read(reader).runs
    found = [x for x in runs.values() if arguments.model in (None, x.model)]
    if not found:
        sys.stderr.write("nothing was trained yet\n")
        return 1
    print_runs(found, as_json=arguments.json)
    return 0


def _ask(settings: Settings, name: str, arguments: argparse.Namespace) -> int:
    now_ms = time.time_ns() // 1_000_000
    with Stop() as stop, TopicReader(settings) as reader:
        known = _at_work(_read(reader).statuses.get(name), now_ms)
        if known:
            raise ValueError(
                f"a model must not be in training already; {name!r} is, {known.said}: "
                "wait for it, `rankstream intervene --list` shows what came of it"
            )
        request = Request(SCHEMA, secrets.token_hex(8), now_ms)
        record = training_key("request", name), encode_record(request)
        send_records(settings, TRAINING, [record])
        if not arguments.wait:
            sys.stderr.write(f"{name}: asked for; the role `train` does it\n")
            return 0
        run = _followed(reader, stop, name, request)
    if run is not None:
        print_runs([run], as_json=arguments.json)
    elif stop.asked:
        sys.stderr.write(
            "no longer followed; what was asked for is done all the same\n"
        )
        return STOPPED
    return 0 if run else 1


def _at_work(status: Status | None, now_ms: int) -> Status | None:
    """What a trainer says of what it does now; None where nobody is at work."""
    if status is None or status.state != UNDER_WAY:
        return None
    return status if now_ms - status.at_ms < ALIVE_MS else None


def _followed(
    reader: TopicReader, stop: Stop, name: str, request: Request
) -> RunRecord | None:
    """The run that a request led to; None where it was refused, or a stop came."""
    said, asked_s, is_told, is_seen = "", time.monotonic(), False, False
    while not stop.asked:
        found = _read(reader)
        # A reader of committed records sees it only when no transaction before it is
        # open: until then an earlier request is the last one, or there is none.
        is_seen = is_seen or request.id in found.asked.get(name, ())
        status = found.statuses.get(name)
        if status is not None and status.request == request.id:
            if status.said != said:
                said = status.said
                sys.stderr.write(f"{name}: {visible(said)}\n")
            if status.state == DONE:
                return [x for x in found.runs.values() if x.model == name][-1]
            if status.state == REFUSED:
                return None
        elif is_seen and found.asked[name][-1] != request.id:
            sys.stderr.write(f"{name}: somebody asked again, which answers both\n")
            return None
        elif not is_told and time.monotonic() - asked_s > PATIENCE_S:
            is_told = True
            sys.stderr.write(
                f"{name}: no trainer has answered yet; `rankstream worker` must run, "
                "with the role `train`\n"
            )
        stop.wait(LOOK_S)
    return None


class _Read(NamedTuple):
    """Runs by intervention, oldest first; of each model the last status and all ids."""

    runs: dict[str, RunRecord]
    statuses: dict[str, Status]
    asked: dict[str, list[str]]


def _read(reader: TopicReader) -> _Read:
    """What the topic says; requests and status that cannot be read are passed over.

    Raises
    ------
    SchemaRefused, ValueError
        Where a run is another release's, or something else wrote it.
    """
    found = _Read({}, {}, {})
    for record in reader.records(TRAINING):
        named = decode_training_key(record.key or b"")
        if named is None or named.kind == "position" or record.value is None:
            continue
        kind, name = named
        if kind == "run":
            found.runs[name] = run_from(name, record.value)
            continue
        try:
            value: Any = decode_record(kind, record.value)
        except (SchemaRefused, msgspec.DecodeError):
            continue
        if kind == "status":
            found.statuses[name] = value
        else:
            found.asked.setdefault(name, []).append(value.id)
    return found
