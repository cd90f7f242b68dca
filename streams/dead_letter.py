"""Dead letters: records that were refused, with their own bytes and the reason."""

import hashlib
from typing import NamedTuple

from rankstream.wire.bounds import LETTER_BYTES, WIRE_BYTES, carried_bytes
from rankstream.wire.topics import MAX_RECORD_BYTES, dead_letters
from streams.stage import Output

HEADER_PREFIX = "__rankstream.errors."
"""Before the name of each header that we add to a dead letter."""

MAX_LETTER_BYTES = MAX_RECORD_BYTES - LETTER_BYTES - WIRE_BYTES
"""A dead letter keeps this much of its record, which leaves room for its reasons."""

MAX_REASON_BYTES = 384
"""Longest text of a reason."""


class Origin(NamedTuple):
    """Where an element stood: topic, partition, offset, place in the record."""

    topic: str
    partition: int
    offset: int
    element: int


def dead_letter(
    place: Origin,
    raw: bytes | None,
    reason: dict[str, str],
    key: bytes | None = None,
    headers: tuple[tuple[str, bytes], ...] = (),
) -> Output:
    """The record that keeps what was refused: its own bytes, and the reason.

    Bytes are truncated only where they do not fit a record beside key and headers. Key
    and headers that leave no room at all are dropped.
    """
    added = {
        "topic": place.topic,
        "partition": str(place.partition),
        "offset": str(place.offset),
        "index": str(place.element),
        **reason,
    }
    value, room = raw, MAX_LETTER_BYTES - carried_bytes(key, headers)
    if room < 0:
        added["truncated"] = "true"
        key, headers, room = None, (), MAX_LETTER_BYTES
    if raw is not None and len(raw) > room:
        added["truncated"] = "true"
        added["sha256"] = hashlib.sha256(raw).hexdigest()
        value = raw[:room]
    ours = tuple((HEADER_PREFIX + name, _reason(text)) for name, text in added.items())
    return Output(
        dead_letters(place.topic), place.partition, key, value, headers + ours
    )


def _reason(text: str) -> bytes:
    """A text in UTF-8, truncated between two characters where it is too long."""
    packed = text.encode("utf-8", "backslashreplace")
    if len(packed) <= MAX_REASON_BYTES:
        return packed
    return packed[:MAX_REASON_BYTES].decode("utf-8", "ignore").encode()
