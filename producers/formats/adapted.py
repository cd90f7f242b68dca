"""Files of other systems, read through their adapters.

What cannot be adapted is passed on as well, with the reason: ingestion keeps it as a
dead letter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from producers.formats.documents import documents_of
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
    """

    documents: int = 0
    silent: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    queries: Queries = field(default_factory=KnownQueries)


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
    adapter, options = adapter_named(form), options or AdapterOptions()
    told = adapted or Adapted()
    at_ms = 0
    for _, document in documents_of(path):
        found = take(adapter, document, options, told.queries)
        told.documents += 1
        if isinstance(found, NotAdapted):
            told.refused[found.code] += 1
            # At the time of the event before it, to stay where it was.
            yield Event(at_ms, found.kind, document, f"{found.code}: {found}")
            continue
        told.silent += not found
        for event in found:
            at_ms = event.at_ms
            yield event
