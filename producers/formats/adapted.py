"""Files of other systems, read through their adapters.

What cannot be adapted is passed on as well, with the reason: ingestion keeps it as a
dead letter.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from producers.formats.source_file import documents_in, documents_of
from rankstream.adapters.adapter import Adapter, AdapterOptions, NotAdapted, Queries
from rankstream.adapters.fields import marks_of, may_tell_of_list
from rankstream.adapters.impressions import (
    Awaited,
    Awaiting,
    Making,
    Seen,
    SeenItems,
)
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import adapter_named
from rankstream.wire.input_events import Event

MOST_WAITING = 100_000
"""Documents of a live feed whose lists are under way."""


@dataclass
class Adapted:
    """What became of the documents of some files, and what is known of their lists.

    Parameters
    ----------
    documents
        How many there were.
    silent
        How many of them say nothing to us.
    refused
        How many could not be adapted, by the short name of the reason.
    queries
        The query of each list.
    seen
        What impressions say of lists that are not made yet.
    line
        Where the list of a table begins whose events come now; 0 for other documents.
    file
        From which of the files of a log they are, where these are joined.
    units
        How many times were refused for their unit, by that unit.
    odd_times
        The first of these, by unit.
    notes
        What else a person should know.
    lacks_clicked
        Whether a table has no column that says what was clicked.
    n_empty
        Cells of such a column that are empty.
    """

    documents: int = 0
    silent: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    queries: Queries = field(default_factory=KnownQueries)
    seen: SeenItems = field(default_factory=SeenItems)
    line: int = 0
    file: int = 0
    units: Counter[str] = field(default_factory=Counter)
    odd_times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lacks_clicked: bool = False
    n_empty: int = 0

    def refuse(self, error: NotAdapted) -> None:
        """Count a document that cannot be adapted."""
        self.refused[error.code] += 1
        if error.unit:
            self.units[error.unit] += 1
            self.odd_times.setdefault(error.unit, error.number)

    def note(self, words: str) -> None:
        """Keep what is to be told, once."""
        if words not in self.notes:
            self.notes.append(words)


class LineAdapter:
    """Makes events of lines, as they come.

    Parameters
    ----------
    form
        The name of an adapter.

    Attributes
    ----------
    adapted
        What became of the documents so far.
    """

    def __init__(
        self, form: str, options: AdapterOptions, adapted: Adapted | None = None
    ) -> None:
        self._adapter = adapter_named(form)
        self._options = options
        self.adapted = adapted or Adapted()

    def __call__(self, line: bytes) -> Iterator[Event]:
        """The events of a line; a document that is none is one with its refusal."""
        for document in documents_in(line):
            yield from self.events(document, 0)

    def events(self, document: bytes, at_ms: int) -> Sequence[Event]:
        """The events of a document; what cannot be adapted is one of time `at_ms`."""
        told = self.adapted
        told.documents += 1
        found = take(self._adapter, document, self._options, told)
        if isinstance(found, NotAdapted):
            told.refuse(found)
            return [Event(at_ms, found.kind, document, f"{found.code}: {found}")]
        told.silent += not found
        return found


class LiveAdapter:
    """Makes events of lines that come one by one, of which none can be read ahead.

    Impressions of a list that is not known wait until `impression_ms` have passed, by
    the time of what comes behind them or by the clock; then the first makes the list.
    All else is passed on at once: ingestion lets clicks wait for their list.

    Parameters
    ----------
    clock_ms
        A clock that never goes back.
    most
        Documents that wait at once; beyond, the first waits no longer.

    Attributes
    ----------
    adapted
        What became of the documents so far.
    """

    def __init__(
        self,
        form: str,
        options: AdapterOptions,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1_000,
        most: int = MOST_WAITING,
    ) -> None:
        self.adapted = Adapted()
        self._lines = LineAdapter(form, options, self.adapted)
        self._adapter = adapter_named(form)
        self._options = options
        self._clock_ms = clock_ms
        self._most = most
        self._noting = Seen(self.adapted.seen)
        self._awaiting = Awaiting(self.adapted.seen)
        self._marks = marks_of(options)
        self._waiting: deque[_Waiting] = deque()

    def __call__(self, line: bytes) -> Iterator[Event]:
        """The events of a line, and of what has waited long enough."""
        for document in documents_in(line):
            at_ms = self._awaited(document)
            if at_ms is not None:
                self._waiting.append(_Waiting(self._clock_ms(), at_ms, document))
                yield from self.due(at_ms)
                continue
            for event in self._lines.events(document, 0):
                if not event.refusal:
                    yield from self.due(event.at_ms)
                yield event

    def due(self, at_ms: int | None = None) -> Iterator[Event]:
        """What has waited long enough; `at_ms` is the time of what comes behind it."""
        now_ms, for_ms = self._clock_ms(), self._options.impression_ms
        while self._waiting:
            first = self._waiting[0]
            is_passed = at_ms is not None and at_ms > first.at_ms + for_ms
            is_over = now_ms >= first.since_ms + for_ms
            if not (is_passed or is_over or len(self._waiting) > self._most):
                return
            yield from self._let_go()

    def rest(self) -> Iterator[Event]:
        """All that waits still, as no more lines come."""
        while self._waiting:
            yield from self._let_go()

    def _let_go(self) -> Iterator[Event]:
        yield from self._lines.events(self._waiting.popleft().document, 0)

    def _awaited(self, document: bytes) -> int | None:
        """Note an impression of a list that is not known; its time, where it waits."""
        if not may_tell_of_list(document, self._marks):
            return None
        told, options = self.adapted, self._options
        found = take(self._adapter, document, options, told, self._awaiting)
        if not isinstance(found, Awaited):
            return None
        take(self._adapter, document, options, told, self._noting)
        return found.at_ms


class _Waiting(NamedTuple):
    since_ms: float
    at_ms: int
    document: bytes


def read_ubi(
    path: Path,
    *,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
) -> Iterator[Event]:
    """Lists and clicks in documents of `ubi_queries` and `ubi_events`."""
    return _read(path, "ubi", adapter_options, adapted)


def read_metarank(
    path: Path,
    *,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
) -> Iterator[Event]:
    """Lists and clicks in feedback events of Metarank."""
    return _read(path, "metarank", adapter_options, adapted)


def read_cloud_events(
    path: Path,
    *,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
) -> Iterator[Event]:
    """Lists and clicks that structured CloudEvents carry."""
    return _read(path, "cloudevents", adapter_options, adapted)


def learn_lists(
    files: Sequence[Path], form: str, options: AdapterOptions, told: Adapted
) -> None:
    """Note the query of each list, which clicks of earlier files may need.

    And what impressions say of lists: the first makes its list, of all of them.

    Raises
    ------
    FileUnreadable
    """
    adapter, noting = adapter_named(form), Seen(told.seen)
    marks = marks_of(options)
    for file in files:
        for _, document in documents_of(file):
            if may_tell_of_list(document, marks):
                take(adapter, document, options, told, noting)


def take(
    adapter: Adapter,
    document: bytes,
    options: AdapterOptions,
    told: Adapted,
    seen: Seen | None = None,
) -> list[Event] | NotAdapted:
    """The events in a document, or why there are none.

    Parameters
    ----------
    seen
        What becomes of impressions; they make lists unless it says otherwise.
    """
    try:
        return adapter.adapt(
            document, options, (), told.queries, seen or Making(told.seen)
        )
    except NotAdapted as error:
        return error


def _read(
    path: Path, form: str, options: AdapterOptions | None, adapted: Adapted | None
) -> Iterator[Event]:
    adapter = LineAdapter(form, options or AdapterOptions(), adapted)
    at_ms = 0
    for _, document in documents_of(path):
        # What cannot be adapted has the time of the event before it: it stays there.
        for event in adapter.events(document, at_ms):
            at_ms = event.at_ms
            yield event
