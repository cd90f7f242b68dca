"""`rankstream replay`: historical logs in, in the order of their time."""

import argparse
import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

from producers.external_sort import OrderedEvents
from producers.formats.adapted import Adapted
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import LogFiles, read_log
from producers.formats.registry import CATALOGUE, Format
from producers.formats.rows_together import Tables
from producers.formats.yandex_sessions import EPOCH_MS
from producers.prescan import Forecast, forecast
from producers.replay import (
    Pace,
    utc,
)
from producers.stop_signal import Stop
from rankstream.operations.commands.fate_report import add_strict, lines_of_adapted
from rankstream.operations.commands.log_asked import (
    features_asked,
    identity_of_log,
    log_asked,
    names_of,
)
from rankstream.operations.commands.options import add_features, add_files
from rankstream.operations.commands.replay_kafka import RecordedLog, say, send
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.wire.input_events import Event

SUMMARY = "send historical logs to Kafka, or fold them in this process"

STOPPED = 130

EPILOG = """formats (--format; auto looks at the first bytes):
{formats}

examples:
  rankstream replay log.jsonl.zst --namespace history
  rankstream replay logs/ --speed 10            ten times as fast as it happened
  rankstream replay log.jsonl --check           only say what would be late
  rankstream replay log.jsonl --resume          go on after a kill or Ctrl-C
  rankstream replay log.jsonl --local --out run/    in this process, no Kafka
  rankstream replay queries.ndjson events.ndjson --format ubi
  rankstream replay --queries lists.csv --clicks clicks.parquet --format csv
  rankstream replay monday.jsonl --no-end && rankstream replay tuesday.jsonl

Documents of other systems that cannot be adapted are sent too, and become dead
letters with the reason (docs/adapters.md). At the end stands what became dead
letters or late; --strict makes that the exit status 1.

Events are sorted by time, on disk where memory does not hold them. Ctrl-C waits
until Kafka has acknowledged what was sent, and says how much that is.

--local folds the events in this process and prints their outcomes. From a
canonical dump it makes the statistics that the workers made of that log, bit
for bit. 'rankstream statistics show QUERY --local run/' reads what --out wrote.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG.format(formats="\n".join(map(_told, CATALOGUE)))
    add_files(parser)
    add_features(parser)
    parser.add_argument(
        "--epoch-ms",
        type=int,
        default=EPOCH_MS,
        metavar="MS",
        help="time zero of formats that do not say it (default: 2020-01-01 UTC)",
    )
    parser.add_argument(
        "--speed",
        type=float,
        metavar="X",
        help="X times as fast as it happened (default: as fast as possible)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue where the same replay stopped"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="count what would be late in this order; send nothing",
    )
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="keep the order of the files; says first what would be late",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="events in one record (default 1)",
    )
    parser.add_argument(
        "--no-end",
        action="store_true",
        help="leave the last windows open, as more logs follow",
    )
    parser.add_argument(
        "--accept-late",
        action="store_true",
        help="send even events that are too old for the target",
    )
    parser.add_argument(
        "--memory-mb",
        type=int,
        default=256,
        metavar="MB",
        help="memory for sorting; more is sorted on disk (default 256)",
    )
    parser.add_argument(
        "--scratch", type=Path, metavar="DIR", help="where to sort on disk"
    )
    parser.add_argument(
        "--progress-file",
        type=Path,
        metavar="FILE",
        help="where --resume finds the progress (default: in ~/.local/state)",
    )
    parser.add_argument(
        "--pass-bad-lines",
        action="store_true",
        help="send JSON lines that are no events too: they become dead letters",
    )
    add_strict(parser)
    parser.add_argument(
        "--local", action="store_true", help="fold in this process, without Kafka"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="with --local: folder for statistics.bin and snapshots.bin",
    )


def _told(each: Format) -> str:
    """A format as `--help` tells of it."""
    return textwrap.fill(
        each.doc,
        width=76,
        initial_indent=f"  {each.name:16} ",
        subsequent_indent=" " * 19,
        break_on_hyphens=False,
    )


def run(arguments: argparse.Namespace) -> int:
    """Replay; 1 if events were refused, 130 if stopped."""
    _check(arguments)
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    pace = Pace(arguments.speed)
    with Stop() as stop:
        if arguments.local and not arguments.check:
            # The folds are not loaded where events only go to Kafka.
            from rankstream.operations.commands.replay_local import fold_dump  # noqa: PLC0415
            from rankstream.operations.local_replay import dump_of  # noqa: PLC0415

            dump = dump_of(log_asked(arguments))
            if dump is not None:
                return fold_dump(dump, settings, stop=stop, out=arguments.out)
        with recorded_events(arguments, stop) as log:
            if log is None:
                return STOPPED
            if arguments.check or arguments.as_is:
                _report(log, settings)
            if arguments.check:
                return 0
            if arguments.local:
                return _fold(log, arguments, settings, pace, stop)
            return send(log, arguments, settings, pace, stop)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and not arguments.local:
        raise ValueError("--out must come with --local; got --out alone")
    if arguments.local and arguments.resume:
        raise ValueError("--resume must go to Kafka; got --local, which starts anew")
    if arguments.pass_bad_lines and arguments.batch > 1:
        # A line that is no JSON would spoil the record that it shares.
        raise ValueError(
            f"--pass-bad-lines must have --batch 1; got --batch {arguments.batch}"
        )


def _fold(
    log: RecordedLog,
    arguments: argparse.Namespace,
    settings: Settings,
    pace: Pace,
    stop: Stop,
) -> int:
    from rankstream.operations.commands.replay_local import replay_events  # noqa: PLC0415

    return replay_events(
        log.events,
        log.n_events,
        settings,
        pace=pace,
        stop=stop,
        is_ended=not arguments.no_end,
        out=arguments.out,
        is_strict=arguments.strict,
    )


@contextlib.contextmanager
def recorded_events(
    arguments: argparse.Namespace, stop: Stop
) -> Iterator[RecordedLog | None]:
    """The events in the order in which they are to be sent; None if stopped.

    The files are read to their end first: a file that is broken anywhere is refused
    before anything of it is sent.
    """
    asked = log_asked(arguments)
    bad_lines: list[int] | None = [] if arguments.pass_bad_lines else None
    adapted = Adapted()
    features = features_asked(arguments, asked)
    memory_bytes = max(1, arguments.memory_mb) << 20

    def read(adapted: Adapted, bad_lines: list[int] | None) -> Iterator[Event]:
        return read_log(
            asked,
            tables=Tables(memory_bytes=memory_bytes, scratch=arguments.scratch),
            adapted=adapted,
            epoch_ms=arguments.epoch_ms,
            bad_lines=bad_lines,
        )

    with ProgressLine("reading", total=None) as line:
        events = read(adapted, bad_lines)
        if features is not None:
            if features.is_of_items:
                line.note("which items each query showed")
                features.note_shown(_watched(read(Adapted(), []), line, stop))
            events = features.beside(events)
        seen = _watched(events, line, stop)
        ordered = OrderedEvents(
            seen,
            memory_bytes=memory_bytes,
            scratch=arguments.scratch,
            is_sorted=not arguments.as_is,
        )
    with ordered:
        if stop.asked:
            yield None
            return
        for told in _told_of_read(ordered, asked, adapted, features):
            line.say(told)
        if bad_lines:
            line.say(f"passed on, though no events: {counted(len(bad_lines), 'line')}")
        identity = identity_of_log(arguments, asked)
        beside = getattr(arguments, "features", None) or []
        yield RecordedLog(
            [*asked.files, *beside],
            ordered,
            ordered.n_events,
            identity,
            names_of(features),
        )


def _told_of_read(
    ordered: OrderedEvents,
    log: LogFiles,
    adapted: Adapted,
    features: FeatureTable | None,
) -> Iterator[str]:
    """What was found in the files, in words."""
    where = f", sorted in {ordered.n_runs + 1} runs" if ordered.n_runs else ""
    yield (
        f"{counted(ordered.n_events, 'event')} in {counted(len(log.files), 'file')}, "
        f"{ordered.n_disordered:,} out of order{where}"
    )
    yield from lines_of_adapted(adapted, " and ".join(log.forms()))
    if features is not None:
        yield from features.told()
    if not ordered.n_events:
        yield "there is nothing to count: `rankstream validate` says why"


def _watched(
    events: Iterator[Event], line: ProgressLine, stop: Stop
) -> Iterator[Event]:
    for number, event in enumerate(events):
        if number % 4_096 == 0:
            line.show(number)
            if stop.asked:
                return
        yield event


def _report(log: RecordedLog, settings: Settings) -> Forecast:
    time = settings.time
    found = forecast(
        log.events, disorder_ms=time.disorder_ms, window_ms=time.click_window_ms
    )
    if found.first_ms is None or found.last_ms is None:
        say("there are no events")
        return found
    say(
        f"{counted(found.queries, 'impression')} and "
        f"{counted(found.clicks, 'click')} from "
        f"{utc(found.first_ms)} to {utc(found.last_ms)}"
    )
    say(
        f"in this order at most {found.late:,} would be late and {found.orphans:,} "
        f"clicks orphans: {found.disordered:,} come after a later event, by up to "
        f"{found.furthest_back_ms / 1_000:,.1f} s; {time.disorder_ms / 1_000:,.0f} s "
        "are allowed"
    )
    return found
