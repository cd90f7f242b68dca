"""What comparisons read and write, without what computes them."""

import msgspec

from rankstream.wire.events import Experiment

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


decode_extra = msgspec.msgpack.Decoder(Extra).decode
_decode_named = msgspec.msgpack.Decoder(_Named).decode

FAULTS = (msgspec.DecodeError, RecursionError)
"""What decoding raises, whatever the bytes are."""


def extra_of(packed: bytes) -> Extra | None:
    """The part that comparisons need; None where it cannot be read."""
    try:
        return decode_extra(packed)
    except FAULTS:
        return None


def experiment_of(packed: bytes) -> Experiment | None:
    """Whose it is, where only that can be read."""
    try:
        return _decode_named(packed).experiment
    except FAULTS:
        return None
