"""`rankstream dlq`: look at dead letters, and send them again."""

import argparse
import sys
from collections.abc import Sequence
from itertools import islice

from rich.console import Console
from rich.table import Column, Table

from producers.dead_letters import (
    NO_CODE,
    SOURCES,
    DeadLetter,
    read_letter,
    read_letters,
    send_again,
)
from producers.event_producer import EventProducer
from producers.replay import utc
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.dead_letters import (
    LetterCount,
    expected_of_replay,
    letter_counts,
)
from rankstream.operations.commands import settings_of, tell
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings
from rankstream.wire.refusal_codes import Code

SHOWN_BYTES = 60

CODES = (*(code.value for code in Code), NO_CODE)

EPILOG = """examples:
  rankstream dlq count                        how many, by topic, stage and code
  rankstream dlq list --topic clicks --code no-route --limit 20
  rankstream dlq show clicks/0/17             all of one, with its reasons
  rankstream dlq show clicks/0/17 --raw > letter
                                              its own bytes, nothing else
  rankstream dlq replay --code schema --dry-run
                                              what would become of them
  rankstream dlq replay --code schema

Replayed letters go back to the input topic that they came from, byte for byte.
What is still wrong becomes a dead letter again. What is too old becomes late.
What was applied before becomes a duplicate.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("count", "list", "show", "replay"))
    parser.add_argument("place", nargs="?", help="with show: topic/partition/offset")
    parser.add_argument("--topic", choices=SOURCES, help="only letters from this topic")
    parser.add_argument(
        "--code",
        choices=CODES,
        help="only letters with this code (see docs/refusals.md)",
    )
    parser.add_argument(
        "--limit", type=int, default=50, help="with list: how many (default 50)"
    )
    parser.add_argument("--raw", action="store_true", help="with show: only the bytes")
    parser.add_argument(
        "--dry-run", action="store_true", help="with replay: send nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing, or not all could be replayed."""
    if (arguments.action == "show") != (arguments.place is not None):
        raise ValueError("show, and only show, needs a place such as clicks/0/17")
    settings = settings_of(arguments)
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        if arguments.action == "show":
            return _show(read_letter(reader, arguments.place), is_raw=arguments.raw)
        if arguments.action == "replay":
            return _replay(reader, arguments, settings, stop)
        letters = read_letters(reader, sources=_sources(arguments), code=arguments.code)
        if arguments.action == "count":
            return _count(letter_counts(letters))
        return _list(list(islice(letters, max(0, arguments.limit))))


def _sources(arguments: argparse.Namespace) -> Sequence[str]:
    return (arguments.topic,) if arguments.topic else SOURCES


def _count(found: list[LetterCount]) -> int:
    table = Table("topic", "stage", "code")
    table.add_column("letters", justify="right")
    for each in found:
        table.add_row(each.topic, each.stage, each.code, f"{each.letters:,}")
    table.add_section()
    table.add_row("all", "", "", f"{sum(each.letters for each in found):,}")
    Console().print(table)
    return 0


def _list(letters: list[DeadLetter]) -> int:
    if not letters:
        tell("there are no such dead letters")
        return 1
    whole = (Column(name, no_wrap=True) for name in ("place", "arrived", "code"))
    folded = (Column(name, overflow="fold") for name in ("reason", "begins with"))
    table = Table(*whole, *folded)
    for letter in letters:
        reason = letter.reasons.get("exception.message", "")
        start = repr(letter.value[:SHOWN_BYTES])[2:-1]
        # Letters hold anything: they are printed as text, never as markup.
        table.add_row(letter.place, utc(letter.timestamp_ms), letter.code,
                      plain(reason), plain(start))  # fmt: skip
    print_fitted(wide_console(), table, spare=("begins with", "arrived"))
    return 0


def _show(letter: DeadLetter, *, is_raw: bool) -> int:
    if is_raw:
        sys.stdout.buffer.write(letter.value)
        sys.stdout.buffer.flush()
        return 0
    table = Table("what", "is", title=letter.place, show_header=False)
    table.add_row("arrived", utc(letter.timestamp_ms))
    for name, content in sorted(letter.reasons.items()):
        table.add_row(name, plain(content))
    if letter.key is not None:
        table.add_row("key", plain(repr(letter.key)))
    for name, raw in letter.headers:
        table.add_row(f"header {plain(name)}", plain(repr(raw)))
    table.add_row("bytes", f"{len(letter.value):,}")
    console = Console()
    console.print(table)
    console.print(repr(letter.value)[2:-1], markup=False, highlight=False)
    return 0


def _replay(
    reader: TopicReader, arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> int:
    letters = list(
        read_letters(reader, sources=_sources(arguments), code=arguments.code)
    )
    expected = expected_of_replay(reader, settings, letters)
    sys.stderr.write(
        f"{expected.sendable:,} of {expected.letters:,} dead letters can be sent "
        f"again; {expected.too_late:,} of them are too old and will be late or "
        f"orphans; {expected.unrecognised:,} are no events and will be dead letters "
        "again\n"
    )
    if arguments.dry_run or not letters or stop.asked:
        return 0
    with EventProducer(settings, is_stopped=lambda: stop.asked) as producer:
        _, n_refused = send_again(letters, producer)
    tell(f"{counted(producer.acknowledged, 'dead letter')} acknowledged")
    if n_refused:
        tell(f"{n_refused:,} are cut off or too large, and were not sent")
    return 1 if n_refused else 0
