"""Files of other systems, read through their adapters.

What cannot be adapted is passed on as well, with the reason: ingestion keeps it as a
dead letter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from producers.formats.documents import documents_in, documents_of
from rankstream.adapters.adapter import Adapter, AdapterOptions, NotAdapted, Queries
from rankstream.adapters.fields import place_of
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import adapter_named
from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES


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
    """

    documents: int = 0
    silent: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    queries: Queries = field(default_factory=KnownQueries)
    line: int = 0
    file: int = 0
    units: Counter[str] = field(default_factory=Counter)
    odd_times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

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
        found = take(self._adapter, document, self._options, told.queries)
        if isinstance(found, NotAdapted):
            told.refuse(found)
            return [Event(at_ms, found.kind, document, f"{found.code}: {found}")]
        told.silent += not found
        return found


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


def learn_queries(
    files: Sequence[Path], form: str, options: AdapterOptions, queries: Queries
) -> None:
    """Note the query of each list: clicks of earlier files may need it.

    Raises
    ------
    FileUnreadable
    """
    adapter = adapter_named(form)
    for file in files:
        for _, document in documents_of(file):
            if place_of(document) == QUERIES:
                take(adapter, document, options, queries)


def take(
    adapter: Adapter,
    document: bytes,
    options: AdapterOptions,
    queries: Queries | None = None,
) -> list[Event] | NotAdapted:
    """The events in a document, or why there are none."""
    try:
        return adapter.adapt(document, options, (), queries)
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
