"""`rankstream export`: any part of the log as arrays."""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from producers.formats.canonical_dump import read_dump, read_header
from producers.stop_signal import Stop
from rankstream.operations.answers.bandit_log import (
    BanditLog,
    Part,
    interactions_of,
    write_arrays,
)
from rankstream.operations.commands import STOPPED, settings_of, tell
from rankstream.operations.commands.options.files import add_folded_format
from rankstream.operations.commands.options.folded_log import fold_events
from rankstream.operations.commands.options.log import has_files, log_asked
from rankstream.operations.local_replay import LocalReplay, dump_of
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.topics import INTERACTIONS
from streams.local import local_settings

SUFFIX = ".npz"

EPILOG = """examples:
  rankstream export --arrays log.npz                   all of `interactions`
  rankstream export --arrays v2.npz --intervention v2 --since 2026-05-01
  rankstream export --arrays run.npz interactions.dump
  rankstream export --arrays obd.npz OBD/ --format obd

The file holds NumPy arrays, a row for each item that a list showed, under the
names of obp's bandit feedback: n_rounds, n_actions, action, position, reward,
pscore, context, action_context. docs/estimators.md says what is in them, and
what else the file has. Lists count once their click window has passed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="events in files, or a dump, instead of Kafka's log",
    )
    parser.add_argument(
        "--arrays",
        type=Path,
        required=True,
        metavar="FILE.npz",
        help="where to write them",
    )
    parser.add_argument(
        "--query",
        action="append",
        default=[],
        metavar="QUERY",
        help="only lists of this one; may be given again",
    )
    parser.add_argument(
        "--intervention",
        action="append",
        default=[],
        metavar="NAME",
        help="only lists of this one, '' for lists without; may be given again",
    )
    parser.add_argument(
        "--since", type=_time, metavar="TIME", help="a day, or a time with its zone"
    )
    parser.add_argument(
        "--until", type=_time, metavar="TIME", help="the first time that is left out"
    )
    add_folded_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file; 1 if no list is asked for, 130 if stopped."""
    file = arguments.arrays
    if file.suffix != SUFFIX:
        raise ValueError(f"--arrays must be a file that ends in {SUFFIX}; got {file}")
    settings = settings_of(arguments)
    part = Part(
        arguments.query, arguments.intervention, arguments.since, arguments.until
    )
    log = BanditLog(part, settings.statistics)
    with Stop() as stop:
        for record in _records(arguments, settings, stop):
            for interaction in interactions_of([record]):
                log.take(interaction)
        if stop.asked:
            tell("stopped; nothing was written")
            return STOPPED
    if not log.n_lists:
        tell("no list is of the part that was asked for")
        return 1
    arrays, beside = log.arrays()
    write_arrays(file, arrays, beside)
    n_unknown = int(np.isnan(arrays.pscore).sum())
    lists, items = counted(log.n_lists, "list"), counted(arrays.n_actions, "item")
    clicks = counted(int(arrays.reward.sum()), "click")
    rounds = counted(arrays.n_rounds, "round")
    tell(f"{file}: {rounds} of {lists} and {items}, {clicks}")
    if n_unknown:
        sys.stderr.write(
            f"the propensity of {counted(n_unknown, 'round')} is not known: their "
            "pscore is NaN\n"
        )
    return 0


def _records(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Iterator[bytes]:
    """Records of `interactions`: of Kafka, of a dump, or folded from files."""
    if not has_files(arguments):
        # Kafka's client is not loaded for files.
        from producers.topic_reader import TopicReader  # noqa: PLC0415

        with TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
            for record in reader.records(INTERACTIONS):
                yield record.value or b""
        return
    dump = dump_of(log_asked(arguments))
    if dump is not None and read_header(dump).topic == INTERACTIONS:
        for _, value in read_dump(dump):
            if stop.asked:
                return
            yield value
        return
    yield from _folded(arguments, settings, stop)


def _folded(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Iterator[bytes]:
    """What the fold closes of events in files, all windows at the end."""
    local = LocalReplay(local_settings(settings))
    closed: list[bytes] = []
    local.pipeline.show_also(
        lambda output: (
            closed.append(output.value)
            if output.topic == INTERACTIONS and output.value
            else None
        )
    )
    fold_events(arguments, local.pipeline, stop)
    yield from closed


def _time(told: str) -> int:
    """Epoch milliseconds of a day in UTC, or of a time with its zone."""
    try:
        time = datetime.fromisoformat(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a day (2026-05-01) or a time with its zone; got {told}"
        ) from error
    if time.tzinfo is None:
        if "T" in told or " " in told:
            raise argparse.ArgumentTypeError(f"must have a zone; got {told}")
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1_000)
