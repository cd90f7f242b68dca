"""What lies in the topics of a finished run, in plain form."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rankstream.wire.events import decode_interaction_record
from tests.fire.expectations import LetterKey

PREFIX = "__rankstream.errors."
ADDED = ("topic", "partition", "offset", "index", "timestamp", "stage", "code")

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class FoundLetter:
    """A dead letter, its own headers apart from those that were added."""

    value: bytes | None
    key: bytes | None
    headers: Headers
    added: dict[str, str]

    @property
    def place(self) -> LetterKey:
        """Where it came from."""
        of_it = self.added
        partition, offset = int(of_it["partition"]), int(of_it["offset"])
        return of_it["topic"], partition, offset, int(of_it["index"])


def letter_of(value: bytes | None, key: bytes | None, headers: Headers) -> FoundLetter:
    """A dead letter; its own headers stand first, whatever their names."""
    first = max(
        (n for n, (name, _) in enumerate(headers) if name == f"{PREFIX}topic"),
        default=len(headers),
    )
    added = {
        name.removeprefix(PREFIX): content.decode("utf-8", "replace")
        for name, content in headers[first:]
    }
    return FoundLetter(value, key, headers[:first], added)


@dataclass
class Found:
    """The outputs of a run.

    `applied` holds by id, for each time that an impression came out, its query,
    intervention, shown items and clicks.
    """

    applied: dict[str, list[Any]] = field(default_factory=dict)
    aside: Counter[tuple[str, str | bytes]] = field(default_factory=Counter)
    letters: list[FoundLetter] = field(default_factory=list)
    statistics: list[tuple[bytes, bytes]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    ingestion: Counter[str] = field(default_factory=Counter)

    def take_interactions(self, value: bytes) -> None:
        """A record of `interactions`."""
        for one in decode_interaction_record(value).interactions:
            impression = one.impression
            items = msgspec.msgpack.decode(impression.candidates)
            rows = memoryview(impression.shown).cast("H").tolist()
            entry = (
                impression.query_id,
                impression.intervention,
                tuple(items[row] for row in rows),
                [(mark.at_ms, mark.position, mark.action) for mark in one.clicks],
            )
            self.applied.setdefault(impression.impression_id, []).append(entry)

    def take_late(self, value: bytes, headers: Headers) -> None:
        """A record of `late`."""
        outcome = dict(headers)["outcome"].decode()
        event = msgspec.json.decode(value)
        is_impression = "query_id" in event and "model" in event
        what = event["impression_id"] if is_impression else value
        self.aside[outcome, what] += 1

    def take_ingest_state(self, value: bytes) -> None:
        """The state of one input partition."""
        *_, counts = msgspec.msgpack.decode(value)
        self.ingestion.update(counts)


def last_values(
    records: Iterable[tuple[bytes | None, bytes | None]],
) -> dict[bytes, bytes]:
    """The last value of each key of a compacted partition."""
    values: dict[bytes, bytes] = {}
    for key, value in records:
        if value:
            values[key or b""] = value
        else:
            values.pop(key or b"", None)
    return values
