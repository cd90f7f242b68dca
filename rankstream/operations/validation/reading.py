"""Documents of files, each with its place, as what they are or why they are nothing."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from producers.formats.adapted import Adapted, LineAdapter
from producers.formats.jsonl import converted
from producers.formats.recognised_units import OtherUnit
from producers.formats.registry import (
    ADAPTED_FORMATS,
    form_of,
    read_events,
)
from producers.formats.source_file import FileUnreadable, documents_of, lines_of
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import AUTO, JSONL
from rankstream.adapters.registry import resembled
from rankstream.operations.validation import checks
from rankstream.wire.input_events import Event, kind_of, recognised

LINE_BITS = 40


class Fault(NamedTuple):
    """Why something is no event, and which check says so.

    `is_document` tells a document, which would become a dead letter, from a file, of
    which a replay would send nothing.
    """

    check: str
    why: str
    code: str = ""
    is_document: bool = True


class Taken(NamedTuple):
    """What a line, a row or a document holds: events, or a fault."""

    line: int
    events: Sequence[Event] = ()
    fault: Fault | None = None


class Places:
    """File and line of each event, by its number from 0; of faults by one below 0."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._events, self._faults = array("Q"), array("Q")

    def add(self, file: int, line: int) -> int:
        """Note the place of the next event; gives its number."""
        self._events.append(file << LINE_BITS | line)
        return len(self._events) - 1

    def add_fault(self, file: int, line: int) -> int:
        """Note the place of what is no event; gives its number."""
        self._faults.append(file << LINE_BITS | line)
        return -len(self._faults)

    def of(self, number: int) -> tuple[Path, int]:
        """File and line of one."""
        place = self._events[number] if number >= 0 else self._faults[-number - 1]
        return self._files[place >> LINE_BITS], place & ((1 << LINE_BITS) - 1)


def read_file(file: Path, *, form: str = AUTO, **options: Any) -> Iterator[Taken]:
    """What a file holds, to its end or to where it cannot be read any more.

    `options` are those of `read_events`; documents of other systems need
    `adapter_options` and `adapted`.
    """
    line = 0
    try:
        found = form_of(file, form)
        _check_unit(file, found, options)
        if found == JSONL:
            rows = _lines(file, options)
        elif found in ADAPTED_FORMATS:
            rows = _documents(
                file,
                LineAdapter(found, options["adapter_options"], options["adapted"]),
            )
        else:
            rows = _rows(file, found, options)
        for taken in rows:
            line = taken.line
            yield taken
    except FileUnreadable as error:
        is_unit = isinstance(error, OtherUnit)
        check = checks.EPOCH_UNIT if is_unit else checks.READABLE
        fault = Fault(check, str(error), is_document=False)
        yield Taken(error.line or line, fault=fault)


def _check_unit(file: Path, form: str, options: dict[str, Any]) -> None:
    """Look at the first times, as a replay does.

    Raises
    ------
    OtherUnit
    """
    asked = options.get("adapter_options") or AdapterOptions()
    # Queries of lists need not be known for that.
    asked = msgspec.structs.replace(asked, query="id")
    fresh: dict[str, Any] = {
        "adapter_options": asked,
        "adapted": Adapted(),
        "bad_lines": [],
    }
    try:
        next(read_events([file], form=form, **options | fresh), None)
    except OtherUnit:
        raise
    except FileUnreadable:
        # Said where the file is read.
        return


def _lines(file: Path, options: dict[str, Any]) -> Iterator[Taken]:
    at_ms = 0
    asked = options.get("adapter_options") or AdapterOptions()
    for line, content in lines_of(file):
        text = content.removeprefix(b"\xef\xbb\xbf") if line == 1 else content
        try:
            event = recognised(text)
        except ValueError:
            if form := resembled(text):
                why = f"it looks like {form}, which --format {form} reads"
                yield Taken(line, fault=Fault(checks.ADAPTED, why))
                continue
            # As `replay` passes it on: ingestion says what is wrong.
            event = Event(at_ms, kind_of(content), content)
        else:
            if asked.time_unit:
                event = converted(event, asked.time_unit, options["adapted"])
                if event.refusal:
                    yield Taken(line, fault=fault_of_refusal(event.refusal))
                    continue
        at_ms = event.at_ms
        yield Taken(line, [event])


def _documents(file: Path, adapter: LineAdapter) -> Iterator[Taken]:
    for line, document in documents_of(file):
        events = adapter.events(document, 0)
        if events and events[0].refusal:
            yield Taken(line, fault=fault_of_refusal(events[0].refusal))
        else:
            yield Taken(line, events)


def _rows(file: Path, form: str, options: dict[str, Any]) -> Iterator[Taken]:
    adapted = options["adapted"]
    adapted.line = 0
    # What cannot be read to its end is no list or half a one: nothing of it is judged.
    for _ in read_events([file], form=form, **options | {"adapted": Adapted()}):
        pass
    for number, event in enumerate(read_events([file], form=form, **options), 1):
        line = adapted.line or number
        if event.refusal:
            yield Taken(line, fault=fault_of_refusal(event.refusal))
        else:
            yield Taken(line, [event])


def fault_of_refusal(refusal: str) -> Fault:
    """Which check tells of a document that could not be adapted, and in which words."""
    code, _, words = refusal.partition(": ")
    return Fault(checks.CHECK_OF_REASON.get(code, checks.ADAPTED), words, code)
