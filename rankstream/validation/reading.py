"""Documents of files, each with its place, as what they are or why they are nothing."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from producers.formats.registry import AUTO, JSONL, format_of, read_events
from producers.formats.source_file import FileUnreadable, lines_of
from rankstream.validation import checks
from rankstream.wire.input_events import Event, kind_of, recognised

LINE_BITS = 40


class Fault(NamedTuple):
    """Why something is no event, and which check says so."""

    check: str
    why: str
    code: str = ""


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


def read_file(file: Path, *, form: str = AUTO, **options: object) -> Iterator[Taken]:
    """What a file holds, to its end or to where it cannot be read any more."""
    line = 0
    try:
        found = format_of(file).name if form == AUTO else form
        rows = _lines(file) if found == JSONL else _rows(file, found, options)
        for taken in rows:
            line = taken.line
            yield taken
    except FileUnreadable as error:
        yield Taken(error.line or line, fault=Fault(checks.READABLE, str(error)))


def _lines(file: Path) -> Iterator[Taken]:
    at_ms = 0
    for line, content in lines_of(file):
        text = content.removeprefix(b"\xef\xbb\xbf") if line == 1 else content
        try:
            event = recognised(text)
        except ValueError:
            # As `replay` passes it on: ingestion says what is wrong.
            event = Event(at_ms, kind_of(content), content)
        at_ms = event.at_ms
        yield Taken(line, [event])


def _rows(file: Path, form: str, options: dict[str, object]) -> Iterator[Taken]:
    for line, event in enumerate(read_events([file], form=form, **options), 1):
        yield Taken(line, [event])
