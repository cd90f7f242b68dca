"""What `rankstream dlq` does: read dead letters, print them, send them again."""

import argparse
import sys
from collections.abc import Sequence
from itertools import islice

from rich.console import Console
from rich.table import Column, Table

from producers.dead_letters import (
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
    LettersSent,
    details_of,
    expected_of_replay,
    letter_counts,
    letter_of,
)
from rankstream.operations.commands import nothing, settings_of, tell, write_json
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings

SHOWN_BYTES = 60


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing, or not all could be replayed."""
    if (arguments.action == "show") != (arguments.place is not None):
        raise ValueError("show, and only show, needs a place such as clicks/0/17")
    settings = settings_of(arguments)
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        if arguments.action == "show":
            return _show(read_letter(reader, arguments.place), arguments)
        if arguments.action == "replay":
            return _replay(reader, arguments, settings, stop)
        letters = read_letters(reader, sources=_sources(arguments), code=arguments.code)
        if arguments.action == "count":
            return _count(letter_counts(letters), arguments)
        return _list([*islice(letters, max(0, arguments.limit))], arguments)


def _sources(arguments: argparse.Namespace) -> Sequence[str]:
    return (arguments.topic,) if arguments.topic else SOURCES


def _count(found: list[LetterCount], arguments: argparse.Namespace) -> int:
    if arguments.json:
        write_json([each.to_dict() for each in found])
        return 0
    table = Table("topic", "stage", "code")
    table.add_column("letters", justify="right")
    for each in found:
        table.add_row(each.topic, each.stage, each.code, f"{each.letters:,}")
    table.add_section()
    table.add_row("all", "", "", f"{sum(each.letters for each in found):,}")
    Console().print(table)
    return 0


def _list(letters: list[DeadLetter], arguments: argparse.Namespace) -> int:
    if not letters:
        return nothing("there are no such dead letters")
    if arguments.json:
        write_json([letter_of(each, SHOWN_BYTES).to_dict() for each in letters])
        return 0
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


def _show(letter: DeadLetter, arguments: argparse.Namespace) -> int:
    if arguments.json:
        write_json(details_of(letter).to_dict())
        return 0
    if arguments.raw:
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
    early = (
        f"{expected.too_early:,} are still further ahead than time.ahead_ms, and "
        "would be dead letters again: wait until their time has come; "
        if expected.too_early
        else ""
    )
    sys.stderr.write(
        f"{expected.sendable:,} of {expected.letters:,} dead letters can be sent "
        f"again; {expected.too_late:,} of them are too old and will be late or "
        f"orphans; {early}{expected.unrecognised:,} are no events and a replay does "
        "not help them: they would be dead letters again\n"
    )
    n_sent = n_refused = 0
    is_trial = arguments.dry_run or not letters or stop.asked
    if not is_trial:
        with EventProducer(settings, is_stopped=lambda: stop.asked) as producer:
            _, n_refused = send_again(letters, producer)
        n_sent = producer.acknowledged
        tell(f"{counted(n_sent, 'dead letter')} acknowledged")
    if n_refused:
        tell(f"{n_refused:,} are cut off or too large, and were not sent")
    if arguments.json:
        found = LettersSent(
            expected.letters, expected.sendable, expected.too_late,
            expected.too_early, expected.unrecognised, n_sent, n_refused,
        )  # fmt: skip
        write_json(found.to_dict())
    return 1 if n_refused else 0
