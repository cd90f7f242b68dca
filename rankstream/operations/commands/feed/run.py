"""What `rankstream feed` does: read lines or files, and send what they hold."""

import argparse
import sys
from collections.abc import Iterator

from producers.event_producer import EventProducer
from producers.feed import (
    AUTO,
    Fed,
    feed,
    lines_of_descriptor,
    lines_of_followed,
)
from producers.formats.adapted import LiveAdapter
from producers.replay import Pace, replay
from producers.stop_signal import Stop
from rankstream.adapters.file_formats import AUTO as FILES_AUTO
from rankstream.adapters.registry import NAMES
from rankstream.operations.answers.sent import Sent
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.commands.options.files import (
    options_asked,
)
from rankstream.operations.commands.options.log import has_files
from rankstream.operations.commands.options.outcomes import OutcomeReport
from rankstream.operations.commands.options.recorded_log import recorded_events
from rankstream.operations.recorded_log import lines_of_adapted
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.input_events import Event
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.units_of_time import WORDS

GRACE_S = 10.0
"""How long a stop waits for what is under way."""


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
        return _conclude(fed, unknown, producer, report, arguments)


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
    fed = Fed(refused=state.refused, newest_click_ms=state.newest_click_ms)
    return _conclude(fed, unknown, producer, report, arguments)


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


def _conclude(
    fed: Fed,
    unknown: int,
    producer: EventProducer,
    report: OutcomeReport,
    arguments: argparse.Namespace,
) -> int:
    """Tell what became of the events; the exit status."""
    _tell_fed(fed, unknown)
    status = 1 if fed.refused or unknown else 0
    status = status or report.conclude(producer.sent, fed.newest_click_ms)
    if arguments.json:
        counts = producer.acknowledged, fed.refused, unknown
        write_json(Sent(*counts, not unknown, report.became_of).to_dict())
    return status


def _tell_fed(fed: Fed, unknown: int) -> None:
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
