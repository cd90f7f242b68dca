"""How the join's share of the fold's state lies in its topic.

What was accepted between two checkpoints is a *segment*, in blocks of packed elements
(`open`) or of known identities (`known`). The value under `STATE_KEY` names them.
"""

import struct
from typing import NamedTuple

import msgspec

from rankstream.wire.topics import state_topic

STATE_TOPIC = state_topic("fold")

STATE_KEY = b"state"
"""Key of the watermark, counts and numbers, and of the list of segments."""

NO_HEAD = b"\x94\x00\x00\x00"
"""Makes a record of packed elements that have none."""

_encode = msgspec.msgpack.Encoder().encode


class Segment(NamedTuple):
    """One segment.

    Parameters
    ----------
    kind
        `open` or `known`.
    number
        Of the checkpoint that wrote it.
    last_ms
        No element of it is due later, in event time.
    n_blocks
        Values that it has.
    """

    kind: str
    number: int
    last_ms: int
    n_blocks: int


def segment_key(kind: str, number: int, block: int) -> bytes:
    """The key of a block of a segment."""
    return _encode((kind, number, block))


def array_head(length: int) -> bytes:
    """The head of a MessagePack array."""
    return b"\xdd" + struct.pack(">I", length)
