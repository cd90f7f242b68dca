"""`rankstream erase`: where a person's events are, and a log without them."""

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from producers.erasure import Person, Traces, erase_from_dump, traces_of
from producers.replay import utc
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.folders import writing
from rankstream.operations.commands import STOPPED, settings_of, tell
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted

EPILOG = """examples:
  rankstream erase --user u17                    where they are, and until when
  rankstream erase --user u17 --session s3 --session s9
  rankstream erase --user u17 --from events.dump.zst --out clean.dump.zst

A list is a person's if it bears the id of the user or of a session; their clicks
are those on such lists. Kafka deletes old records, not chosen ones: what is in
its topics leaves with their retention. --from copies a dump of events without
the person; what is folded from the copy is as if they had never come.
docs/who-counts.md says what is kept where, and what are sums only.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--user", help="id of the user, as events have it")
    parser.add_argument(
        "--session",
        action="append",
        default=[],
        help="id of a session; may be repeated (default: none)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="DUMP",
        help="a dump of events",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DUMP", help="its copy without them"
    )


def run(arguments: argparse.Namespace) -> int:
    """Say what there is, or write the copy; 130 if stopped."""
    if not arguments.user and not any(arguments.session):
        raise ValueError("a person must be named: --user ID, --session ID, or both")
    if (arguments.source is None) != (arguments.out is None):
        raise ValueError("--from and --out go together: the dump, and its copy")
    person = Person(arguments.user or None, frozenset(filter(None, arguments.session)))
    if arguments.source is not None:
        return _copy(person, arguments.source, arguments.out)
    settings = settings_of(arguments)
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        with ProgressLine("reading", total=None) as line:
            traces = traces_of(person, reader, _counting(line))
        if stop.asked:
            tell("stopped; nothing is said of half a log")
            return STOPPED
    _tell(traces)
    return 0


def _counting(line: ProgressLine) -> Callable[[], None]:
    """Shows every 64th record that it hears of."""
    numbers = itertools.count(1)

    def heard() -> None:
        number = next(numbers)
        if number % 64 == 0:
            line.show(number)

    return heard


def _copy(person: Person, source: Path, target: Path) -> int:
    if target.resolve() == source.resolve():
        raise ValueError(f"--out must be another file than --from; got {target} twice")
    with ProgressLine("copying", total=None) as line:
        try:
            with writing(target):
                erased = erase_from_dump(person, source, target, _counting(line))
        except KeyboardInterrupt:
            tell("stopped; nothing was written")
            return STOPPED
    n_lists, n_clicks = erased
    sys.stderr.write(
        f"{target}: without {counted(n_lists, 'list')} and "
        f"{counted(n_clicks, 'click')}; what was folded from {source} still has them\n"
    )
    return 0


def _tell(traces: list[Traces]) -> None:
    table = Table("topic")
    for name in ("lists", "clicks", "first appended", "last appended"):
        table.add_column(name, justify="right")
    for one in traces:
        times = [
            utc(at_ms) if at_ms >= 0 else "" for at_ms in (one.first_ms, one.last_ms)
        ]
        table.add_row(one.topic, f"{one.n_lists:,}", f"{one.n_clicks:,}", *times)
    Console().print(table)
    if any(one.n_lists for one in traces):
        sys.stderr.write(
            "they leave each topic when its retention has passed their time; the input "
            "topics and dead letters hold the same events as they were sent\n"
        )
    else:
        tell("neither log has an event of this person")
