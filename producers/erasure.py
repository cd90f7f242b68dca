"""What the logs hold of one person, and a dump without it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from producers.formats.canonical_dump import Header, read_dump, read_header, write_dump
from producers.formats.source_file import FileUnreadable
from producers.topic_reader import TopicReader
from rankstream.wire.events import (
    Click,
    Element,
    Impression,
    decode_event_record,
    decode_interaction_record,
    encode_record,
)
from rankstream.wire.topics import EVENTS, INTERACTIONS

Named = tuple[int, bytes]
"""A list by its partition and identity: events meet within a partition only."""


@dataclass(frozen=True)
class Person:
    """By the ids that events bear: one user, or none, and sessions."""

    user: str | None
    sessions: frozenset[str] = frozenset()

    def has(self, impression: Impression) -> bool:
        """Whether a list was shown to them."""
        if not impression.extra:
            return False
        extra = msgspec.msgpack.decode(impression.extra)
        named = self.user is not None and extra.get("user") == self.user
        return named or extra.get("session") in self.sessions


@dataclass
class Traces:
    """Lists and clicks of a person in one topic, and when their records came.

    `first_ms` and `last_ms` are append times, -1 where there is nothing. `places` has,
    of each partition, the offset behind the last such record.
    """

    topic: str
    n_lists: int = 0
    n_clicks: int = 0
    first_ms: int = -1
    last_ms: int = -1
    places: dict[int, int] = field(default_factory=dict)

    def add(
        self, n_lists: int, n_clicks: int, place: tuple[int, int], at_ms: int
    ) -> None:
        """Hear of a record."""
        self.n_lists += n_lists
        self.n_clicks += n_clicks
        self.first_ms = at_ms if self.first_ms < 0 else min(self.first_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)
        partition, offset = place
        self.places[partition] = max(self.places.get(partition, 0), offset + 1)


def traces_of(
    person: Person, reader: TopicReader, on_record: Callable[[], None]
) -> list[Traces]:
    """What `events` and `interactions` hold of a person.

    Clicks are theirs that belong to a list of theirs. A click may stand before its
    list, so those are counted once all lists are known.
    """
    logged, joined = Traces(EVENTS), Traces(INTERACTIONS)
    identities: set[Named] = set()
    for record in reader.records(EVENTS):
        on_record()
        where = f"{EVENTS}[{record.partition}]@{record.offset}"
        elements = decode_event_record(record.value or b"", where).elements
        shown = _lists_of(person, record.partition, elements)
        if shown:
            identities |= shown
            place = record.partition, record.offset
            logged.add(len(shown), 0, place, record.timestamp_ms)
    if identities:
        for record in reader.records(EVENTS):
            on_record()
            elements = decode_event_record(record.value or b"").elements
            n_clicks = sum(
                isinstance(one, Click)
                and (record.partition, one.impression) in identities
                for one in elements
            )
            if n_clicks:
                place = record.partition, record.offset
                logged.add(0, n_clicks, place, record.timestamp_ms)
    for record in reader.records(INTERACTIONS):
        on_record()
        where = f"{INTERACTIONS}[{record.partition}]@{record.offset}"
        found = [
            one
            for one in decode_interaction_record(
                record.value or b"", where
            ).interactions
            if person.has(one.impression)
        ]
        if found:
            n_clicks = sum(len(one.clicks) for one in found)
            place = record.partition, record.offset
            joined.add(len(found), n_clicks, place, record.timestamp_ms)
    return [logged, joined]


def erase_from_dump(
    person: Person, source: Path, target: Path, on_record: Callable[[], None]
) -> tuple[int, int]:
    """Copy a dump of `events` without a person's lists and the clicks on them.

    Records and frontiers stay, so time passes as it did: folding the copy gives what
    the log would have given had they never come.

    Returns
    -------
    tuple
        How many lists and clicks were left out.

    Raises
    ------
    FileUnreadable
        Where the source is no dump of `events`, or is damaged. Then there is no target.
    """
    header = read_header(source)
    if header.topic != EVENTS:
        raise FileUnreadable(
            source, 0, f"a dump must be of {EVENTS}; got {header.topic}"
        )
    identities: set[Named] = set()
    for partition, value in read_dump(source):
        on_record()
        elements = decode_event_record(value).elements
        identities |= _lists_of(person, partition, elements)
    counts = [0, 0]
    records = _without(identities, read_dump(source), counts, on_record)
    write_dump(target, Header(*header), records)
    return counts[0], counts[1]


def _lists_of(
    person: Person, partition: int, elements: Iterable[Element]
) -> set[Named]:
    return {
        (partition, one.identity)
        for one in elements
        if isinstance(one, Impression) and person.has(one)
    }


def _without(
    identities: set[Named],
    records: Iterable[tuple[int, bytes]],
    counts: list[int],
    on_record: Callable[[], None],
) -> Iterator[tuple[int, bytes]]:
    for partition, value in records:
        on_record()
        record = decode_event_record(value)
        kept: list[Element] = []
        for element in record.elements:
            if isinstance(element, Impression) and (
                (partition, element.identity) in identities
            ):
                counts[0] += 1
            elif isinstance(element, Click) and (
                (partition, element.impression) in identities
            ):
                counts[1] += 1
            else:
                kept.append(element)
        if len(kept) == len(record.elements):
            yield partition, value
        else:
            changed = msgspec.structs.replace(record, elements=kept)
            yield partition, encode_record(changed)
