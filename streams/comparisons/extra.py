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


decode_extra = msgspec.msgpack.Decoder(Extra).decode
