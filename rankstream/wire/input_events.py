"""An input event on its way to its topic: when, which kind, its bytes."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec

from rankstream.wire.topics import CLICKS, QUERIES

LARGEST_TIME = 2**63 - 1
"""What whoever sorts events has room for; JSON knows no end of a whole number."""


class Event(NamedTuple):
    """One event: epoch milliseconds, `queries` or `clicks`, and its JSON.

    With a `refusal`, `code: words`, it is a document of another format that could not
    be adapted: ingestion makes a dead letter of it.
    """

    at_ms: int
    kind: str
    value: bytes
    refusal: str = ""

    @property
    def headers(self) -> tuple[tuple[str, bytes], ...]:
        """Of its record."""
        return (refused_header(self.refusal),) if self.refusal else ()


class _Marks(msgspec.Struct, gc=False):
    """Fields that no click has."""

    shown: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    candidates: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    scores: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Sight(_Marks, kw_only=True, gc=False):
    """What must be seen of an event to sort and route it."""

    at_ms: Annotated[int, msgspec.Meta(ge=-LARGEST_TIME, le=LARGEST_TIME)]


_see = msgspec.json.Decoder(_Sight).decode
_see_marks = msgspec.json.Decoder(_Marks).decode


def recognised(value: bytes) -> Event:
    """The event in `value`; a query event is one that has `shown`.

    Or `candidates` or `scores`, as no click has those either. Whether its fields are
    sound is for ingestion to judge.

    Raises
    ------
    ValueError
        Where `value` is no JSON object with a whole number `at_ms`.
    """
    try:
        sight = _see(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError(f"an event must be JSON with at_ms; {error}") from error
    return Event(sight.at_ms, _kind(sight), value)


def kind_of(value: bytes) -> str:
    """`queries` or `clicks`, also where `value` is no event: its letter's place."""
    try:
        return _kind(_see_marks(value))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        marks = (f'"{name}"'.encode() in value for name in _Marks.__struct_fields__)
        return QUERIES if any(marks) else CLICKS


def _kind(marks: _Marks) -> str:
    names = (marks.shown, marks.candidates, marks.scores)
    return CLICKS if all(each is msgspec.UNSET for each in names) else QUERIES


REFUSED_HEADER = "rankstream-not-adapted"
"""Its content is a short name and the words, `code: words`."""

MAX_WORDS_BYTES = 384


def refused_header(words: str) -> tuple[str, bytes]:
    """The header of a record that is to become a dead letter; see `REFUSED_HEADER`."""
    packed = words.encode("utf-8", "backslashreplace")
    return REFUSED_HEADER, packed[:MAX_WORDS_BYTES]


def refusal_in(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """Why the sender could not adapt the record; None where it says nothing."""
    for name, content in headers:
        if name == REFUSED_HEADER:
            return (content or b"").decode("utf-8", "replace")
    return None
