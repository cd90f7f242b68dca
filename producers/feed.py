"""Live events, line by line: standard input, or a file that grows and is rotated.

Nothing that comes in is dropped: a line that is no event goes to the input topics too,
which keeps it as a dead letter.
"""

import os
import select
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from producers.event_sink import EventSink, EventTooLarge
from producers.stop_signal import Stop
from rankstream.adapters.registry import resembled
from rankstream.wire.input_events import Event, kind_of, recognised
from rankstream.wire.topics import CLICKS, MAX_EVENT_BYTES, QUERIES
from rankstream.wire.units_of_time import unit_of

AUTO = "auto"
KINDS = {AUTO: "", "query": QUERIES, "click": CLICKS}

CHUNK_BYTES = 1 << 18
POLL_S = 0.2


class Adapt(Protocol):
    """Makes events of lines; one with a refusal is a document that is none."""

    def __call__(self, line: bytes) -> Iterable[Event]:
        """The events that can be told once this line is there."""

    def due(self) -> Iterable[Event]:
        """Those that have waited long enough."""

    def rest(self) -> Iterable[Event]:
        """All that wait still, at the end of the lines."""


@dataclass
class Fed:
    """Counts of what came in; `resembled` is of formats that lines look like.

    `newest_click_ms` is the latest time of a click that was sent; `units` are those of
    times that were not in milliseconds.
    """

    lines: int = 0
    unrecognised: int = 0
    refused: int = 0
    resembled: Counter[str] = field(default_factory=Counter)
    newest_click_ms: int | None = None
    units: set[str] = field(default_factory=set)

    def note(self, kind: str, at_ms: int) -> None:
        """Note the time of an event that was sent."""
        if kind == CLICKS:
            self.newest_click_ms = max(at_ms, self.newest_click_ms or 0)


class _Lines:
    """Cuts chunks into lines; one that grows too long is cut off and handed on."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, chunk: bytes) -> list[bytes]:
        """Lines that are complete now."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > 2 * MAX_EVENT_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [stripped for line in lines if (stripped := line.strip())]

    def rest(self) -> list[bytes]:
        """What stands after the last line end."""
        rest, self._rest = self._rest.strip(), b""
        return [rest] if rest else []


def lines_of_descriptor(descriptor: int, stop: Stop) -> Iterator[bytes | None]:
    """Lines of a pipe, terminal or file until its end; None while nothing comes."""
    lines = _Lines()
    while not stop.asked:
        ready, _, _ = select.select([descriptor], [], [], POLL_S)
        if not ready:
            yield None
            continue
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        yield from lines.add(chunk)
    yield from lines.rest()


def lines_of_followed(
    path: Path, stop: Stop, *, from_end: bool = False
) -> Iterator[bytes | None]:
    """Lines of a file as it grows; None while nothing comes.

    The file may not be there yet. Where it is replaced (renamed away and created
    anew), the old one is read to its end, then the new one from its beginning; where it
    is cut to less than was read, it is read from its beginning again.
    """
    while not stop.asked:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            yield None
            stop.wait(POLL_S)
            from_end = False
            continue
        with file:
            if from_end:
                file.seek(0, os.SEEK_END)
            yield from _until_replaced(path, file, stop)
        from_end = False


def _until_replaced(path: Path, file: BinaryIO, stop: Stop) -> Iterator[bytes | None]:
    lines = _Lines()
    while not stop.asked:
        # Asked before reading: what was written before the change is read after it.
        is_replaced = _is_replaced(path, file)
        chunk = file.read(CHUNK_BYTES)
        if chunk:
            yield from lines.add(chunk)
        elif is_replaced:
            yield from lines.rest()
            return
        else:
            yield None
            stop.wait(POLL_S)


def _is_replaced(path: Path, file: BinaryIO) -> bool:
    opened = os.fstat(file.fileno())
    if opened.st_size < file.tell():
        return True
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino)


def feed(
    lines: Iterator[bytes | None],
    sink: EventSink,
    *,
    kind: str = AUTO,
    adapt: Adapt | None = None,
    on_idle: Callable[[Fed], None] = lambda _: None,
    on_unit: Callable[[str, int], None] = lambda _unit, _number: None,
) -> Fed:
    """Pass lines to the sink until they end.

    Parameters
    ----------
    kind
        One of `KINDS`; `auto` takes a line with `shown` for a query event.
    adapt
        Makes events of a line of another format.
    on_unit
        Hears of the first time in another unit than milliseconds, of each unit.
    on_idle
        Called while nothing comes, and every second.
    """
    fed = Fed()
    called_s = time.monotonic()
    for line in lines:
        if line is not None:
            if adapt is None:
                _pass_on(line, sink, KINDS[kind], fed, on_unit)
            else:
                fed.lines += 1
                _pass_adapted(adapt(line), sink, fed)
        if line is None or (fed.lines % 64 == 0 and time.monotonic() - called_s >= 1.0):
            called_s = time.monotonic()
            if adapt is not None:
                _pass_adapted(adapt.due(), sink, fed)
            on_idle(fed)
    if adapt is not None:
        _pass_adapted(adapt.rest(), sink, fed)
    return fed


def _pass_on(
    line: bytes,
    sink: EventSink,
    kind: str,
    fed: Fed,
    on_unit: Callable[[str, int], None],
) -> None:
    fed.lines += 1
    try:
        try:
            event = recognised(line)
        except ValueError:
            fed.unrecognised += 1
            if form := resembled(line):
                fed.resembled[form] += 1
            sink.send_raw(kind or kind_of(line), line)
        else:
            unit = unit_of(event.at_ms)
            if unit not in ("", "ms") and unit not in fed.units:
                fed.units.add(unit)
                on_unit(unit, event.at_ms)
            sink.send(kind or event.kind, line)
            fed.note(kind or event.kind, event.at_ms)
    except EventTooLarge:
        fed.refused += 1


def _pass_adapted(events: Iterable[Event], sink: EventSink, fed: Fed) -> None:
    for event in events:
        try:
            if event.refusal:
                sink.send(event.kind, event.value, headers=event.headers)
            else:
                sink.send(event.kind, event.value)
                fed.note(event.kind, event.at_ms)
        except EventTooLarge:
            fed.refused += 1
