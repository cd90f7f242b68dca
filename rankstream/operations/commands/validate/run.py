"""What `rankstream validate` does: read files, judge them, and tell."""

import argparse
import contextlib
import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console

from producers.external_sort import OrderedEvents
from producers.formats.adapted import Adapted
from producers.formats.joined import NothingJoined
from producers.formats.log_files import LogFiles, read_log
from producers.formats.recognised_units import OtherUnit
from producers.formats.registry import learn
from producers.formats.rows_together import Tables
from producers.formats.source_file import FileUnreadable
from producers.stop_signal import Stop
from rankstream.operations.commands import STOPPED, nothing, settings_of, tell
from rankstream.operations.commands.options.log import features_asked, log_asked
from rankstream.operations.recorded_log import LOOK_EVERY, watched
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.validation import checks
from rankstream.operations.validation.checks import Status
from rankstream.operations.validation.examination import Examination
from rankstream.operations.validation.reading import (
    Fault,
    Places,
    fault_of_refusal,
    read_file,
)
from rankstream.operations.validation.report import Report
from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES


def run(arguments: argparse.Namespace) -> int:
    """Judge; 1 where a check failed, 130 if stopped."""
    settings = settings_of(arguments)
    log = log_asked(arguments)
    features = features_asked(arguments, log)
    files = log.files
    adapted = Adapted()
    places = Places(files)
    examination = Examination(settings, now_ms=int(time.time() * 1_000))
    # Nothing here is in cycles.
    gc.set_threshold(100_000, 50, 1_000)
    with Stop() as stop:
        with ProgressLine("reading", total=None) as line:
            tables = Tables(
                memory_bytes=max(1, arguments.memory_mb) << 20,
                scratch=arguments.scratch,
            )
            read = _read_joined if log.clicks else _read
            events = read(log, tables, adapted, places, examination)
            if features is not None:
                line.note("which items each query showed")
                features.note_shown(watched(_lists(log, tables), line, stop))
                events = features.beside(events)
            ordered = OrderedEvents(
                watched(events, line, stop),
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
            tell("stopped; nothing was judged")
            return STOPPED
    for told in [*adapted.notes, *(features.told() if features is not None else ())]:
        tell(told)
    examination.conclude()
    return _tell(Report(files, places, examination), arguments)


def _lists(log: LogFiles, tables: Tables) -> Iterator[Event]:
    """The events as far as they can be read; what cannot is told later."""
    with contextlib.suppress(FileUnreadable, NothingJoined):
        yield from read_log(log, tables=tables, adapted=Adapted(), bad_lines=[])


def _read(
    log: LogFiles,
    tables: Tables,
    adapted: Adapted,
    places: Places,
    examination: Examination,
) -> Iterator[Event]:
    """The events of all files; what is none is told at once."""
    form = log.lists.form
    options = {
        "adapter_options": log.lists.options,
        "adapted": adapted,
        "columns": {**log.columns, **log.lists.columns},
        "tables": tables._replace(joins_sessions=log.joins_sessions),
    }
    with contextlib.suppress(FileUnreadable):
        # Said below, where the file is read.
        learn(log.files, form, options)
    for number, file in enumerate(log.files):
        for taken in read_file(file, form=form, **options):
            if taken.fault is not None:
                _tell_fault(taken.fault, number, taken.line, places, examination)
            made = len(adapted.seen.made)
            adapted.seen.made.clear()
            for event in taken.events:
                at = places.add(number, taken.line)
                if made and event.kind == QUERIES:
                    examination.note_made(at)
                examination.order(at, event)
                yield event


def _read_joined(
    log: LogFiles,
    tables: Tables,
    adapted: Adapted,
    places: Places,
    examination: Examination,
) -> Iterator[Event]:
    """As `_read`, where clicks are in files of their own."""
    try:
        for event in read_log(log, tables=tables, adapted=adapted):
            if event.refusal:
                fault = fault_of_refusal(event.refusal)
                _tell_fault(fault, adapted.file, adapted.line, places, examination)
                continue
            at = places.add(adapted.file, adapted.line)
            if _is_made(event, adapted.seen.made):
                examination.note_made(at)
            examination.order(at, event)
            yield event
    except (FileUnreadable, NothingJoined) as error:
        check = checks.HAS_LIST
        line = 0
        if isinstance(error, FileUnreadable):
            check = checks.READABLE
            line = error.line
            if error.path in log.files:
                adapted.file = log.files.index(error.path)
        if isinstance(error, OtherUnit):
            check = checks.EPOCH_UNIT
        fault = Fault(check, str(error), is_document=False)
        _tell_fault(fault, adapted.file, line, places, examination)


def _is_made(event: Event, made: Sequence[str]) -> bool:
    """Whether an event is one of the lists that were made of impression events."""
    if not made or event.kind != QUERIES:
        return False
    return str(msgspec.json.decode(event.value)["impression_id"]) in made


def _tell_fault(
    fault: Fault, file: int, line: int, places: Places, examination: Examination
) -> None:
    at = places.add_fault(file, line)
    check, why, code, is_document = fault
    if is_document:
        examination.refuse(at, check, why, code)
    else:
        examination.miss(at, check, why)


def _tell(report: Report, arguments: argparse.Namespace) -> int:
    if arguments.json:
        sys.stdout.write(json.dumps(report.as_dict(), ensure_ascii=False) + "\n")
    else:
        report.show(Console())
    if Status.FAIL in report.statuses:
        return 1
    warned = [x.name for x in checks.CHECKS if report.status(x) == Status.WARN]
    if not (arguments.strict and warned):
        return 0
    return nothing(f"--strict: exit status 1 for warnings, of {', '.join(warned)}")
