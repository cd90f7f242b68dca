"""`rankstream validate`: what ingestion and the join would say of files, offline."""

import argparse
import contextlib
import gc
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from producers.external_sort import OrderedEvents
from producers.formats.adapted import Adapted
from producers.formats.registry import files_of, learn
from producers.formats.source_file import FileUnreadable
from producers.stop_signal import Stop
from rankstream.commands.format_options import (
    add_files,
    columns_asked,
    options_asked,
)
from rankstream.settings import load_settings, with_namespace
from rankstream.terminal.progress_line import ProgressLine
from rankstream.validation.checks import Status
from rankstream.validation.examination import Examination
from rankstream.validation.reading import Places, read_file
from rankstream.validation.report import Report
from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES

SUMMARY = "judge files of events offline, as ingestion and the join would"

STOPPED = 130

LOOK_EVERY = 4_096

EPILOG = """examples:
  rankstream validate log.jsonl.zst --config shop.toml
  rankstream validate queries.ndjson events.ndjson --format ubi
  rankstream validate logs/ --json | jq '.checks[] | select(.status != "PASS")'

Each check says PASS, WARN or FAIL, how much it found, and ten examples with
file and line, some of each reason; in tables it is the first line of a list.
FAIL: events would be lost, or more than half of them would be
late, repeats, or without a list. WARN: some would. Events are judged in the
order of their time, as 'rankstream replay' sends them; --as-is keeps that of
the files, as 'rankstream feed' does. Windows and limits are those of --config.

exit status: 0 where nothing failed, 1 where something did (with --strict also
where something warned), 2 where the call or the settings are wrong
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add_files(parser)
    parser.add_argument(
        "--as-is", action="store_true", help="judge them in the order of the files"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit status 1 for warnings too"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
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


def run(arguments: argparse.Namespace) -> int:
    """Judge; 1 where a check failed, 130 if stopped."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    files = files_of(arguments.paths)
    places = Places(files)
    examination = Examination(settings, now_ms=int(time.time() * 1_000))
    # Nothing here is in cycles.
    gc.set_threshold(100_000, 50, 1_000)
    with Stop() as stop:
        with ProgressLine("reading", total=None) as line:
            events = _read(files, arguments, places, examination)
            ordered = OrderedEvents(
                _watched(events, line, stop),
                memory_bytes=max(1, arguments.memory_mb) << 20,
                scratch=arguments.scratch,
                is_sorted=not arguments.as_is,
            )
        with ordered, ProgressLine("judging", total=ordered.n_events) as line:
            for n_done, (number, event) in enumerate(ordered.numbered()):
                if n_done % LOOK_EVERY == 0:
                    line.show(n_done)
                    if stop.asked:
                        break
                examination.take(number, event)
        if stop.asked:
            sys.stderr.write("stopped; nothing was judged\n")
            return STOPPED
    examination.conclude()
    return _tell(Report(files, places, examination), arguments)


def _read(
    files: list[Path],
    arguments: argparse.Namespace,
    places: Places,
    examination: Examination,
) -> Iterator[Event]:
    """The events of all files; what is none is told at once."""
    adapted = Adapted()
    options = {
        "adapter_options": options_asked(arguments),
        "adapted": adapted,
        "columns": columns_asked(arguments),
    }
    with contextlib.suppress(FileUnreadable):
        # Said below, where the file is read.
        learn(files, arguments.form, options)
    for number, file in enumerate(files):
        for taken in read_file(file, form=arguments.form, **options):
            if taken.fault is not None:
                at = places.add_fault(number, taken.line)
                check, why, code, is_document = taken.fault
                if is_document:
                    examination.refuse(at, check, why, code)
                else:
                    examination.miss(at, check, why)
            made = len(adapted.seen.made)
            adapted.seen.made.clear()
            for event in taken.events:
                at = places.add(number, taken.line)
                if made and event.kind == QUERIES:
                    examination.note_made(at)
                examination.order(at, event)
                yield event


def _watched(
    events: Iterator[Event], line: ProgressLine, stop: Stop
) -> Iterator[Event]:
    for number, event in enumerate(events):
        if number % LOOK_EVERY == 0:
            line.show(number)
            if stop.asked:
                return
        yield event


def _tell(report: Report, arguments: argparse.Namespace) -> int:
    if arguments.json:
        sys.stdout.write(json.dumps(report.as_dict(), ensure_ascii=False) + "\n")
    else:
        report.show(Console())
    bad = {Status.FAIL, Status.WARN} if arguments.strict else {Status.FAIL}
    return 1 if bad & report.statuses else 0
