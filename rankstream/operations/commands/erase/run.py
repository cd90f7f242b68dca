"""What `rankstream erase` does: look for a person's events, or copy without them."""

import argparse
import itertools
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from producers.erasure import Person, Traces, erase_from_dump, traces_of
from producers.replay import utc
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.copies import Erasure, PersonTraces
from rankstream.operations.answers.folders import writing
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted


def run(arguments: argparse.Namespace) -> int:
    """Say what there is, or write the copy; 130 if stopped."""
    if not arguments.user and not any(arguments.session):
        raise ValueError("a person must be named: --user ID, --session ID, or both")
    if (arguments.source is None) != (arguments.out is None):
        raise ValueError("--from and --out go together: the dump, and its copy")
    person = Person(arguments.user or None, frozenset(filter(None, arguments.session)))
    if arguments.source is not None:
        return _copy(person, arguments)
    settings = settings_of(arguments)
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        with ProgressLine("reading", total=None) as line:
            traces = traces_of(person, reader, _counting(line))
        if stop.asked:
            tell("stopped; nothing is said of half a log")
            return STOPPED
    if arguments.json:
        found = [_traces(each) for each in traces]
        write_json(Erasure(found, None, 0, 0).to_dict())
    else:
        _tell(traces)
    return 0


def _traces(found: Traces) -> PersonTraces:
    times = [None if at_ms < 0 else at_ms for at_ms in (found.first_ms, found.last_ms)]
    return PersonTraces(found.topic, found.n_lists, found.n_clicks, *times)


def _counting(line: ProgressLine) -> Callable[[], None]:
    """Shows every 64th record that it hears of."""
    numbers = itertools.count(1)

    def heard() -> None:
        number = next(numbers)
        if number % 64 == 0:
            line.show(number)

    return heard


def _copy(person: Person, arguments: argparse.Namespace) -> int:
    source, target = arguments.source, arguments.out
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
    if arguments.json:
        write_json(Erasure(None, str(target), n_lists, n_clicks).to_dict())
        return 0
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
