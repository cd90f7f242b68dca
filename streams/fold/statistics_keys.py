"""Keys and small values of the topic `statistics`; `docs/topics.md` has the layout.

`set` and `row` in keys are 16 bytes that name the candidates and an exposure row; what
they are made of is the fold's own affair. Two sets grow as items come: that of lists
without candidates, and that of what is beyond the limits on sets and interventions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.schemas import check_schema

SCHEMA = 2
"""Of every value of this topic; others are refused."""

OPEN_SET = bytes(16)
"""Names the growing set of lists that came without candidates."""

OVERFLOW_SET = b"\xff" * 16
"""Names the growing set of a query beyond its limits."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode

COUNTED_KEY = encode(["counted"])


class Counted(NamedTuple):
    """What a partition's statistics hold, by name.

    Attributes
    ----------
    groups, keep_ms, classes, reward
        The settings under which it was counted.
    watermark_ms
        -1 before there was one.
    interactions
        How many of each partition of `events` are counted, in their order there.
    left
        Impressions in eras that left.
    oldest
        The least era that lives, None where there is none.
    capped, clipped, without_exposure
        Since the beginning of the log; `clipped` counts clicks.
    """

    groups: int
    keep_ms: int
    classes: tuple[str, ...]
    reward: str
    watermark_ms: int = -1
    interactions: Mapping[int, int] = MappingProxyType({})
    left: int = 0
    oldest: int | None = None
    capped: int = 0
    clipped: int = 0
    without_exposure: int = 0

    def encode(self) -> bytes:
        """The value of its record."""
        *settings, watermark_ms, interactions = self[:6]
        sources = sorted(interactions.items())
        return encode([SCHEMA, *settings, watermark_ms, sources, self[6:]])


def decode_counted(value: bytes) -> Counted:
    """What `Counted.encode` wrote."""
    _, groups, keep_ms, classes, reward, watermark_ms, sources, counts = decode(value)
    settings = groups, keep_ms, tuple(classes), reward
    return Counted(*settings, watermark_ms, dict(sources), *counts)


def kind_of(key: bytes) -> str:
    """What kind of record a key names."""
    kind: str = decode(key)[0]
    return kind


def check_value(kind: str, key: bytes, value: bytes) -> None:
    """Compare the schema of a whole value.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    check_schema(
        value, SCHEMA, f"a {kind} of statistics", f"statistics, key {key!r:.200}"
    )


def decode_set(value: bytes) -> list[str]:
    """The items of a candidate set."""
    items: list[Any] = decode(value)[1]
    return items
