"""Keys and small values of the topic `statistics`.

Keys are MessagePack arrays that begin with a kind:

    ["cell", query, set, intervention, group]     see `models.counts.cell_codec`
    ["set", query, set]                           [schema, [item, ...]]
    ["row", query, set, intervention, row]        [schema, policy, k, material, items]
    ["masks", query, set, intervention, group]    [schema, [[shown, mask, count], ...]]
    ["counts"]                                    [schema, number, ...]
    ["part", key, i]                              more bytes of a large value

`set` is the 16-byte hash of the candidates, `row` that of an exposure row. Two
sets grow as items come: that of lists without candidates, and that of what the
limits on sets and interventions left over; cells name their items by number.
"""

import hashlib
import struct
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.schemas import SchemaRefused, schema_of, schema_refusal

SCHEMA = 1
"""Of every value of this topic; others are refused."""

OPEN_SET = bytes(16)
"""Names the growing set of lists that came without candidates."""

OVERFLOW_SET = b"\xff" * 16
"""Names the growing set of a query beyond its limits."""

OPEN = 8
"""Added to the policy of lists that came without candidates."""

PlaceKey = tuple[str, bytes, str, int, int, bytes]
"""Query, candidates, intervention, policy (+ OPEN), 2 k, material of the row."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode

COUNTS_KEY = encode(["counts"])


def set_name(candidates: bytes) -> bytes:
    """The name of a closed candidate set: the hash of its sorted items."""
    return hashlib.blake2b(candidates, digest_size=16).digest()


def row_name(key: PlaceKey) -> bytes:
    """The name of an exposure row: the hash of all that it follows from."""
    _, candidates, _, code, length, material = key
    digest = hashlib.blake2b(struct.pack("<BI", code, length // 2), digest_size=16)
    digest.update(material)
    if code & OPEN:
        digest.update(candidates)
    return digest.digest()


def prefix(kind: str, query: str, name: bytes, intervention: str) -> bytes:
    """All but the last element of a key of five."""
    parts = (kind, query, name, intervention)
    return b"\x95" + b"".join(map(encode, parts))


def cell_key(query: str, name: bytes, intervention: str, group: int) -> bytes:
    """The key of a cell."""
    return prefix("cell", query, name, intervention) + bytes((group,))


class Row(NamedTuple):
    """An exposure row as it is stored.

    `material` is what the placement follows from: scores (Plackett-Luce) as float32
    of the candidates, packed exposures (logged), or uint16 rows of the shown
    list (deterministic; without the last rank for tail-shuffle) among `items`.
    `items` is the MessagePack list that rows refer to, empty for a closed set.
    """

    policy: int
    n_ranks: int
    material: bytes
    items: bytes


def encode_row(row: Row) -> bytes:
    """The value of a row."""
    return encode([SCHEMA, *row])


def decode_row(value: bytes) -> Row:
    """What `encode_row` wrote."""
    return Row(*checked(decode(value)))


def check_value(kind: str, key: bytes, value: bytes) -> None:
    """Compare the schema of a whole value, which for a cell is its first byte.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    found = value[0] if kind == "cell" else schema_of(value)
    if found != SCHEMA and found is not None:
        where = f"statistics, key {key!r:.200}"
        reason = schema_refusal(found, SCHEMA, f"a {kind} of statistics", where)
        raise SchemaRefused(reason)


def checked(value: Any) -> Any:
    """A decoded value without its schema, which must be ours."""
    if value[0] != SCHEMA:
        what, where = "a value of statistics", "statistics"
        raise SchemaRefused(schema_refusal(value[0], SCHEMA, what, where))
    return value[1:]


def decode_set(value: bytes) -> list[str]:
    """The items of a candidate set."""
    (items,) = checked(decode(value))
    return list(items)
