"""Topics and classes of comparisons, for who reads them without computing any."""

import msgspec

from rankstream.wire.events import Experiment
from rankstream.wire.schemas import decoded

SCHEMA = 1
"""Of every value of the topic `preferences`; others are refused."""


class Extra(msgspec.Struct, frozen=True, gc=False):
    """The part of `Impression.extra` that comparisons need."""

    experiment: Experiment | None = None
    rankings: dict[str, list[str]] | None = None
    assignments: list[int] | None = None
    session: str | None = None
    user: str | None = None


class _Named(msgspec.Struct, frozen=True, gc=False):
    """The part that says whose it is."""

    experiment: Experiment | None = None


_decode_extra = msgspec.msgpack.Decoder(Extra).decode
_decode_named = msgspec.msgpack.Decoder(_Named).decode


def named_key(kind: str, name: str, partition: int) -> bytes:
    """Where `preferences` has one partition's share of what has a name."""
    return msgspec.msgpack.encode([kind, name, partition])


def name_in(key: bytes, kind: str) -> str | None:
    """The name in such a key; None of other kinds, and of other keys."""
    try:
        found, name, _ = msgspec.msgpack.decode(key, type=tuple[str, str, int])
    except (ValueError, RecursionError):
        return None
    return name if found == kind else None


def decode_extra(packed: bytes) -> Extra:
    """The part that comparisons need.

    Raises
    ------
    msgspec.DecodeError
        Where it cannot be read.
    """
    return decoded(_decode_extra, packed)


def extra_of(packed: bytes) -> Extra | None:
    """The part that comparisons need; None where it cannot be read."""
    try:
        return decode_extra(packed)
    except msgspec.DecodeError:
        return None


def experiment_of(packed: bytes) -> Experiment | None:
    """Whose it is, where only that can be read."""
    try:
        return decoded(_decode_named, packed).experiment
    except msgspec.DecodeError:
        return None
