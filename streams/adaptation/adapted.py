"""Documents into records of `queries` and `clicks`, and what became of them."""

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from rankstream.adapters.adapter import (
    NO_QUERY,
    Adapter,
    AdapterOptions,
    NotAdapted,
    Queries,
)
from rankstream.adapters.cloud_events import CloudEvents, is_binary
from rankstream.adapters.fields import marks_of, may_tell_of_list
from rankstream.adapters.impressions import (
    Awaited,
    Awaiting,
    Making,
    Seen,
    SeenItems,
)
from rankstream.adapters.registry import adapter_named, options_of
from rankstream.settings import SourceSettings
from rankstream.wire.bounds import WIRE_BYTES, carried_bytes
from rankstream.wire.input_events import Event
from rankstream.wire.routing import partition_of_input
from rankstream.wire.topics import BATCH_BYTES, MAX_ELEMENTS, MAX_EVENT_BYTES
from streams.adaptation.merge import Document
from streams.stage import Output

ORIGIN_HEADER = "rankstream-source"
"""Of a document that was refused: topic, partition and offset that it came from."""

TOGETHER = 32
"""Events that share a record, at most: however short they are, each may become a dead
letter of its own (`streams.ingest.elements`)."""

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Refusal(NamedTuple):
    """A document that is no event: where it came from, and why."""

    source: str
    origin: str
    code: str
    words: str


class ListAwaited(Exception):
    """A click does not name its query, or a list is seen whose items are to come."""


class AdaptedSource:
    """What the settings say of a topic, ready to be used."""

    def __init__(self, name: str, settings: SourceSettings) -> None:
        self.name = name
        self._adapter: Adapter = adapter_named(settings.format)
        self._options: AdapterOptions = options_of(settings.options)
        self._marks = marks_of(self._options)
        self._has_envelopes = settings.format == CloudEvents.name

    def tells_of_list(self, document: Document) -> bool:
        """Whether it must be read ahead, as others may need what it tells."""
        return may_tell_of_list(document.value or b"", self._marks)

    def events(
        self,
        document: Document,
        queries: Queries,
        seen: Seen | None = None,
        *,
        may_wait: bool,
    ) -> list[Event]:
        """The events in a document, those that are refused among them.

        Parameters
        ----------
        seen
            What becomes of impressions; they say nothing without it.

        Raises
        ------
        ListAwaited
            Where it may wait, and should.
        """
        if document.value is None:
            return []  # a tombstone
        found: list[Event] = []
        is_one = self._has_envelopes and is_binary(document.headers)
        for one in [document.value] if is_one else _documents_in(document.value):
            try:
                found += self._adapter.adapt(
                    one, self._options, document.headers, queries, seen
                )
            except NotAdapted as error:
                is_awaited = isinstance(error, Awaited)
                if is_awaited or (may_wait and error.code == NO_QUERY):
                    raise ListAwaited from error
                refusal = f"{error.code}: {error}"
                found.append(Event(0, error.kind, one, refusal))
        return found


COUNTED = (
    "documents_read",
    "documents_silent",
    "documents_refused",
    "queries_adapted",
    "clicks_adapted",
)
"""What is counted by source."""


class Adaptation:
    """Makes records of documents; knows its sources, and queries of lists.

    Parameters
    ----------
    sources
        By the full name of the topic.
    n_partitions
        Of `queries` and of `clicks`.
    queries
        Queries of lists that went by, for clicks that do not name theirs.

    Attributes
    ----------
    counts
        Documents, events and refusals so far, by name and source.
    refusals
        What was refused since somebody last emptied it.
    """

    def __init__(
        self, sources: Mapping[str, AdaptedSource], n_partitions: int, queries: Queries
    ) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.refusals: list[Refusal] = []
        self._sources = sources
        self._n_partitions = n_partitions
        self._queries = queries
        self._seen = SeenItems()
        self._open: dict[tuple[str, int], list[bytes]] = {}
        self._sizes: Counter[tuple[str, int]] = Counter()
        self._outputs: list[Output] = []

    def note(self, topic: str, documents: Iterable[Document]) -> None:
        """Note what documents say of lists that are read and not taken yet."""
        source = self._sources[topic]
        for document in documents:
            if source.tells_of_list(document):
                self._learn(topic, document)

    def start(self) -> None:
        """Forget what was read, and taken, and not written: it comes again."""
        for list_id in self._seen.made:
            self._queries.pop(list_id, None)
        self._seen.clear()
        self._open.clear()
        self._sizes.clear()
        self._outputs.clear()
        self.refusals.clear()

    def written(self) -> None:
        """Know the lists for good that were made since the last call."""
        self._seen.made.clear()

    def take(
        self,
        topic: str,
        partition: int,
        document: Document,
        *,
        may_wait: bool = False,
        ahead: Iterable[tuple[str, Document]] = (),
    ) -> bool:
        """Take a document of one of the topics; False where it is to come again.

        Parameters
        ----------
        ahead
            Topics and documents that wait still, asked for where a click does not say
            its query: two partitions whose clicks wait for each other's lists would
            wait in vain.
        """
        source = self._sources[topic]
        try:
            events = self._events(source, document, may_wait=True)
        except ListAwaited:
            for other_topic, other in ahead:
                self._learn(other_topic, other)
            try:
                events = self._events(source, document, may_wait=may_wait)
            except ListAwaited:
                return False
        self._count(source, "documents_read")
        if not events:
            self._count(source, "documents_silent")
        for event in map(_fitting, events):
            if event.refusal:
                origin = f"{topic}[{partition}]@{document.offset}"
                self._refuse(source, event, origin)
            else:
                self._count(source, f"{event.kind}_adapted")
                self._gather(event)
        return True

    def outputs(self) -> list[Output]:
        """Records of all that was taken since the last call.

        Where a record ends depends on when this is called. Of an event neither bytes
        nor partition do.
        """
        for place in list(self._open):
            self._close(place)
        written, self._outputs = self._outputs, []
        return written

    def _events(
        self, source: AdaptedSource, document: Document, *, may_wait: bool
    ) -> list[Event]:
        seen = (Awaiting if may_wait else Making)(self._seen)
        return source.events(document, self._queries, seen, may_wait=may_wait)

    def _learn(self, topic: str, document: Document) -> None:
        """Note the queries of lists in a document that waits still, and impressions.

        Of a list that is known, the query stays.
        """
        found: dict[str, str] = {}
        known = ChainMap(found, self._queries)
        self._sources[topic].events(document, known, Seen(self._seen), may_wait=False)
        for list_id, query in found.items():
            self._queries.setdefault(list_id, query)

    def _gather(self, event: Event) -> None:
        partition = partition_of_input(None, event.value, self._n_partitions)
        place = event.kind, partition
        size = len(event.value) + 1
        if self._sizes[place] + size > BATCH_BYTES:
            self._close(place)
        gathered = self._open.setdefault(place, [])
        gathered.append(event.value)
        self._sizes[place] += size
        if len(gathered) >= TOGETHER:
            self._close(place)

    def _close(self, place: tuple[str, int]) -> None:
        values = self._open.pop(place, [])
        self._sizes[place] = 0
        if values:
            one = values[0] if len(values) == 1 else b"[" + b",".join(values) + b"]"
            self._outputs.append(Output(*place, None, one))

    def _refuse(self, source: AdaptedSource, event: Event, origin: str) -> None:
        code, _, words = event.refusal.partition(": ")
        self.refusals.append(Refusal(source.name, origin, code, words))
        self._count(source, "documents_refused")
        headers = (*event.headers, (ORIGIN_HEADER, origin.encode()))
        room = MAX_EVENT_BYTES - WIRE_BYTES - carried_bytes(None, headers)
        value = event.value[:room]
        partition = partition_of_input(None, event.value, self._n_partitions)
        self._outputs.append(Output(event.kind, partition, None, value, headers))

    def _count(self, source: AdaptedSource, name: str) -> None:
        self.counts[name, source.name] += 1


def sources_of(settings: Mapping[str, SourceSettings]) -> dict[str, AdaptedSource]:
    """The sources by the topic that each reads."""
    return {each.topic: AdaptedSource(name, each) for name, each in settings.items()}


def _documents_in(value: bytes) -> Iterable[bytes]:
    """The document, or those of an array; what is no array is for the adapter."""
    if value.lstrip()[:1] != b"[":
        return [value]
    try:
        found = _decode_array(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return [value]
    return map(bytes, found) if 0 < len(found) <= MAX_ELEMENTS else [value]


def _fitting(event: Event) -> Event:
    """The event, refused where no topic takes it."""
    n_bytes = len(event.value)
    if event.refusal or n_bytes + WIRE_BYTES <= MAX_EVENT_BYTES:
        return event
    most = MAX_EVENT_BYTES - WIRE_BYTES
    return event._replace(refusal=f"too-large: an event must fit {most} bytes; got "
                          f"{n_bytes}, and what is beyond is cut off")  # fmt: skip
