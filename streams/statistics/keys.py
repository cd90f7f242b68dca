"""Keys and small values of the topic `statistics`.

Keys are MessagePack arrays that begin with a kind, values begin with the schema:

    ["scope", query, set, intervention, era]          see `models.counts.scope_record`
    ["piece", query, set, intervention, era, group]   the cell of a group, apart
    ["lists", query, set, intervention, era, piece]   some lists of a scope, apart
    ["set", query, set, era]                          [schema, [item, ...]]
    ["row", query, set, intervention, era, row]       [schema, *`Row`]
    ["counted", partition]                            see `Counted`
    ["part", key, i]                                  more bytes of a large value

`set` is a name of 16 bytes, `row` that of an exposure row. Two sets grow as items
come: that of lists without candidates, and that of what the limits on sets and
interventions left over; scopes name their items by their place in the set. An era is
`time.keep_ms` long; all that it counted leaves together.
"""

from typing import Any, NamedTuple

import msgspec

from rankstream.wire.schemas import (
    CONVERT_STATISTICS,
    SchemaRefused,
    schema_of,
    schema_refusal,
)

SCHEMA = 2
"""Of every value of this topic; others are refused."""

OPEN_SET = bytes(16)
"""Names the growing set of lists that came without candidates."""

OVERFLOW_SET = b"\xff" * 16
"""Names the growing set of a query beyond its limits."""

GROWING_SETS = (OPEN_SET, OVERFLOW_SET)

OLD_KINDS = ("cell", "counts", "masks")
"""Kinds of keys that schema 1 had, and this one has not."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


class ScopeName(NamedTuple):
    """Which scope: query, name of the candidate set, intervention, era."""

    query: str
    candidate_set: bytes
    intervention: str
    era: int

    @property
    def is_growing(self) -> bool:
        """Whether items come to its set, so that candidates are those of each list."""
        return self.candidate_set in GROWING_SETS


def scope_key(name: ScopeName) -> bytes:
    """The key of a scope."""
    return encode(["scope", *name])


def piece_key(name: ScopeName, group: int) -> bytes:
    """The key of the cell of a group that lies apart from its scope."""
    return encode(["piece", *name, group])


def set_key(query: str, candidate_set: bytes, era: int) -> bytes:
    """The key of a candidate set."""
    return encode(["set", query, candidate_set, era])


def row_key(name: ScopeName, row: bytes) -> bytes:
    """The key of an exposure row of a scope."""
    return encode(["row", *name, row])


def counted_key(partition: int) -> bytes:
    """The key of what a partition of `events` has counted."""
    return encode(["counted", partition])


def encode_set(items: list[str]) -> bytes:
    """The value of a candidate set."""
    return encode([SCHEMA, items])


def decode_set(value: bytes) -> list[str]:
    """The items of a candidate set."""
    (items,) = checked(decode(value))
    return list(items)


class Row(NamedTuple):
    """An exposure row as it is stored.

    `material` is what the placement follows from: scores (Plackett-Luce) as float32
    of the candidates, or packed exposures (logged). `items` is the MessagePack list
    that rows of `material` refer to, empty for a closed set.
    """

    policy: int
    n_ranks: int
    material: bytes
    items: bytes


def decode_row(value: bytes) -> Row:
    """The row that a value is."""
    return Row(*checked(decode(value)))


class Counted(NamedTuple):
    """What a partition's columns hold, exactly; written with every checkpoint.

    Parameters
    ----------
    groups, keep_ms, classes, reward
        The settings that they were counted under; `classes` by number.
    watermark_ms
        None before there is one.
    sources
        How many interactions of each partition of `events` were counted.
    n_left
        Interactions in eras that left.
    oldest
        The least living era; None where there is none.
    capped, clipped, without_exposure
        Since the beginning of the log: impressions beyond the limits of their query,
        clicks whose probability was raised, impressions of unknown policies.
    actions
        Actions and their classes, sorted; those of the settings too.
    """

    groups: int
    keep_ms: int
    classes: tuple[str, ...]
    reward: str
    watermark_ms: int | None
    sources: dict[int, int]
    n_left: int
    oldest: int | None
    capped: int
    clipped: int
    without_exposure: int
    actions: tuple[tuple[str, str], ...] = ()


_decode_counted = msgspec.msgpack.Decoder(
    tuple[
        int,  # the schema
        int,
        int,
        tuple[str, ...],
        str,
        int | None,
        list[tuple[int, int]],
        tuple[int, int | None, int, int, int],
        tuple[tuple[str, str], ...],
    ]
).decode


def encode_counted(counted: Counted) -> bytes:
    """The value of `counted_key`."""
    sources = sorted(counted.sources.items())
    return encode([SCHEMA, *counted[:5], sources, counted[6:11], counted.actions])


def decode_counted(value: bytes) -> Counted:
    """What `encode_counted` wrote.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    check_value("counted", encode(["counted"]), value)
    parts = _decode_counted(value)
    return Counted(*parts[1:6], dict(parts[6]), *parts[7], parts[8])


def check_value(kind: str, key: bytes, value: bytes) -> None:
    """Compare the schema of a whole value, and the kind of its key.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    found = 1 if kind in OLD_KINDS else schema_of(value)
    if found != SCHEMA and found is not None:
        raise SchemaRefused(_refusal(found, kind, f", key {_told(key):.200}"))


def checked(value: Any) -> Any:
    """A decoded value without its schema, which must be ours."""
    if value[0] != SCHEMA:
        raise SchemaRefused(_refusal(value[0], "value", ""))
    return value[1:]


def _told(key: bytes) -> str:
    try:
        parts = decode(key)
    except msgspec.DecodeError:
        return repr(key)
    return repr([part.hex() if isinstance(part, bytes) else part for part in parts])


def _refusal(found: int, kind: str, place: str) -> str:
    where = f"statistics{place}"
    remedy = CONVERT_STATISTICS if found == 1 else ""
    return schema_refusal(
        found, SCHEMA, f"a value ({kind}) of statistics", where, remedy
    )
