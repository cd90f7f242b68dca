"""`rankstream feed`: live events in, line by line."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from producers.event_producer import EventProducer
from producers.feed import (
    AUTO,
    KINDS,
    Fed,
    feed,
    lines_of_descriptor,
    lines_of_followed,
)
from producers.formats.adapted import LiveAdapter
from producers.formats.yandex_sessions import EPOCH_MS
from producers.replay import Pace, replay
from producers.stop_signal import Stop
from rankstream.adapters.file_formats import AUTO as FILES_AUTO
from rankstream.adapters.registry import NAMES
from rankstream.operations.commands import STOPPED, settings_of, tell
from rankstream.operations.commands.options.files import (
    add_batch,
    add_files,
    options_asked,
)
from rankstream.operations.commands.options.log import has_files
from rankstream.operations.commands.options.outcomes import (
    OutcomeReport,
    add_strict,
)
from rankstream.operations.commands.options.recorded_log import (
    lines_of_adapted,
    recorded_events,
)
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.input_events import Event
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.units_of_time import WORDS

GRACE_S = 10.0
"""How long a stop waits for what is under way."""

EPILOG = """examples:
  tail -F /var/log/shop/events.jsonl | rankstream feed --namespace shop
  rankstream feed --follow /var/log/shop/events.jsonl --batch 100
  rankstream feed --kind click < clicks.jsonl
  rankstream feed --format ubi --option ordinal_base=0 < ubi_events.ndjson
  rankstream feed --queries lists.csv --clicks clicks.parquet

A line is the JSON of one query or click event. A line with 'shown',
'candidates' or 'scores' is a query event. A line that is no event is sent as
well: it becomes a dead letter of its topic.

--format reads documents of other systems (docs/adapters.md). What cannot be
adapted is sent too, and becomes a dead letter with the reason.

Files are read to their end, and their events sent in the order of their time,
as 'rankstream replay' does, which also goes on where it was stopped.

A followed file is read from its beginning (--from-end: from its end). When it
is rotated, reading goes on in the new file. A repeated event is counted as a
duplicate, never twice.

Ctrl-C waits until Kafka has acknowledged what was read, and says how much that
is.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--follow",
        type=Path,
        metavar="FILE",
        help="read this growing file, instead of standard input",
    )
    parser.add_argument(
        "--from-end",
        action="store_true",
        help="with --follow: start at the end of the file",
    )
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default=AUTO,
        help="what every line is (default: known by its fields)",
    )
    add_batch(parser)
    add_files(parser)
    parser.set_defaults(
        epoch_ms=EPOCH_MS, memory_mb=256, scratch=None, as_is=False, pass_bad_lines=True
    )
    add_strict(parser)
    parser.add_argument(
        "--end", action="store_true", help="close every window when the input ends"
    )


def run(arguments: argparse.Namespace) -> int:
    """Feed until the input ends or the user stops; 1 if events were refused."""
    _check(arguments)
    settings = settings_of(arguments)
    with Stop() as stop:
        if has_files(arguments):
            return _feed_files(arguments, settings, stop)
        adapt = _adapter(arguments)
        report = OutcomeReport(settings, stop, is_strict=arguments.strict)
        producer = EventProducer(
            settings, batch=arguments.batch, is_stopped=lambda: stop.asked
        )
        try:
            if arguments.follow is None:
                lines = lines_of_descriptor(sys.stdin.fileno(), stop)
            else:
                lines = lines_of_followed(
                    arguments.follow, stop, from_end=arguments.from_end
                )
            fed = feed(
                lines,
                producer,
                kind=arguments.kind,
                adapt=_Telling(adapt) if adapt else None,
                on_idle=lambda _: producer.nudge(),
                on_unit=_tell_unit,
            )
            unknown = _finish(producer, arguments, stop)
        finally:
            producer.close()
            _report(producer)
        if adapt is not None:
            for line in lines_of_adapted(adapt.adapted, arguments.form):
                tell(line)
        return _conclude(fed, unknown) or report.conclude(
            producer.sent, fed.newest_click_ms
        )


def _feed_files(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    """Send what files hold, in the order of its time."""
    with recorded_events(arguments, stop) as log:
        if log is None:
            return STOPPED
        report = OutcomeReport(settings, stop, is_strict=arguments.strict)
        producer = EventProducer(
            settings, batch=arguments.batch, is_stopped=lambda: stop.asked
        )
        try:
            with ProgressLine("sending", total=log.n_events) as line:
                state = replay(
                    log.events,
                    producer,
                    pace=Pace(None),
                    stop=stop,
                    on_look=lambda state: line.show(state.done),
                )
            unknown = _finish(producer, arguments, stop)
        finally:
            producer.close()
            _report(producer)
    fed = Fed(refused=state.refused)
    return _conclude(fed, unknown) or report.conclude(
        producer.sent, state.newest_click_ms
    )


def _finish(producer: EventProducer, arguments: argparse.Namespace, stop: Stop) -> int:
    """Wait until Kafka has all; how much of it has no answer yet."""
    producer.flush(GRACE_S if stop.asked else None)
    unknown = producer.unanswered()
    if arguments.end and not stop.asked:
        producer.end()
    return unknown


def _check(arguments: argparse.Namespace) -> None:
    if arguments.from_end and arguments.follow is None:
        raise ValueError("--from-end needs a file that is followed; give --follow FILE")
    if has_files(arguments):
        if arguments.follow is not None or arguments.kind != AUTO:
            raise ValueError(
                "files must be given without --follow and --kind, as they say what "
                "they hold; leave these out"
            )
        return
    if arguments.follow is not None and arguments.follow.is_dir():
        raise ValueError(
            f"--follow must be a file; {arguments.follow} is a folder: name one in it"
        )
    if arguments.columns or arguments.session_join:
        raise ValueError(
            "--columns and --session-join must come with files, as no table comes by "
            "lines; name FILE, or --queries FILE and --clicks FILE"
        )


class _Telling:
    """The same, which tells of the first time in each other unit at once."""

    def __init__(self, adapt: LiveAdapter) -> None:
        self._adapt = adapt
        self._told: set[str] = set()

    def __call__(self, line: bytes) -> Iterator[Event]:
        yield from self._watched(self._adapt(line))

    def due(self) -> Iterator[Event]:
        """What has waited long enough."""
        yield from self._watched(self._adapt.due())

    def rest(self) -> Iterator[Event]:
        """All that waits still."""
        yield from self._watched(self._adapt.rest())

    def _watched(self, events: Iterator[Event]) -> Iterator[Event]:
        yield from events
        for unit, number in self._adapt.adapted.odd_times.items():
            if unit not in self._told:
                self._told.add(unit)
                _tell_unit(unit, number)


def _tell_unit(unit: str, number: float) -> None:
    sys.stderr.write(
        f"times must be in milliseconds; {number} is in {WORDS[unit]}, and ingestion "
        f"refuses it: give --option time_unit={unit}\n"
    )


def _adapter(arguments: argparse.Namespace) -> LiveAdapter | None:
    options = options_asked(arguments)
    form = NAMES[0] if arguments.form == FILES_AUTO else arguments.form
    if form not in NAMES:
        raise ValueError(
            f"--format must be one of {', '.join(NAMES)} where events come by lines; "
            f"got {form!r}{suggestion(form, NAMES)}"
        )
    if form == NAMES[0]:
        if not arguments.format_options:
            return None
        other = [x for x in arguments.format_options if not x.startswith("time_unit=")]
        if other:
            raise ValueError(
                "--option must come with --format of another system, but for "
                f"time_unit; got {other[0]!r}: name the format"
            )
    if arguments.kind != AUTO:
        raise ValueError(
            f"--kind must be auto with --format {form} and its options, whose "
            f"documents say what they are; got {arguments.kind!r}"
        )
    return LiveAdapter(form, options)


def _report(producer: EventProducer) -> None:
    tell(f"{counted(producer.acknowledged, 'event')} acknowledged")


def _conclude(fed: Fed, unknown: int) -> int:
    if fed.unrecognised:
        tell(f"no events, but sent: {counted(fed.unrecognised, 'line')}")
    for form, number in fed.resembled.most_common(1):
        sys.stderr.write(
            f"{counted(number, 'line')} of these looked like {form}, which "
            f"--format {form} reads\n"
        )
    if fed.refused:
        tell(f"too large, and refused: {counted(fed.refused, 'event')}")
    if unknown:
        tell(f"{unknown:,} more have no answer yet: Kafka may have them")
    return 1 if fed.refused or unknown else 0
