"""The locator in C against a plain one in Python."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankstream.wire.events import SCHEMA, Frontier, encode_record
from rankstream.wire.routing import identity
from streams.native import core_library
from streams.native import elements as e
from streams.native.elements import Elements
from tests.event_factory import click, impression
from tests.fuzz.fuzzing import real_records
from tests.streams.native.plain_locator import Found, plain_find, used

REAL = list(real_records(60))


def rare_records() -> list[bytes]:
    """What the workload has not: large numbers, negative ones, maps, ids, nothing."""
    rare = impression(
        seed=(1 << 64) - 1,
        at_ms=-40_000,
        version=-1,
        is_open_set=True,
        query_id="ä" * 200,
        extra=msgspec.msgpack.encode({"user": "u", "session": None}),
        features=bytes(70_000),
    )
    several = click(
        item_id="b", position=0, raw=b"x" * 300, origin=("c", 1, 1 << 40, 9)
    )
    return [
        encode_record([SCHEMA, 1, 1 << 40, [rare, several, Frontier(1, 2, -1, 2)]]),
        encode_record([SCHEMA, 0, 1, []]),
        encode_record([SCHEMA, 0, 1, [several] * 66_000]),
    ]


def native_find(record: bytes) -> Found:
    """As the core finds it, in memory that is followed by other bytes."""
    data = np.frombuffer(record + b"\x01" * 16, np.uint8)
    head, end = np.zeros(4, np.int64), len(record)
    first = core_library.find_head(data, end, head)
    if first < 0:
        return None
    tags = np.empty(head[3], np.int8)
    places = np.full((head[3], e.WIDTH), -7, np.int64)
    if core_library.find_elements(data, first, end, tags, places):
        return None
    each = zip(tags.tolist(), places, strict=True)
    return (
        head[:3].tolist(),
        tags.tolist(),
        [used(tag, found.tolist()) for tag, found in each],
    )


def test_both_find_the_same() -> None:
    """In records of every policy, and in rare ones."""
    for record in [*REAL, *rare_records()]:
        expected = plain_find(record)
        assert expected is not None
        assert native_find(record) == expected


@settings(max_examples=500)
@given(
    st.sampled_from(REAL + rare_records()[:2]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))),
    st.floats(0, 1) | st.just(1.0),
)
def test_both_find_the_same_in_broken_records(
    record: bytes, changes: list[tuple[float, int]], share: float
) -> None:
    """Bytes changed, and the end cut off: both refuse, or both find the same."""
    broken = bytearray(record)
    for where, value in changes[:4]:
        broken[int(where * len(broken))] = value
    cut = bytes(broken[: int(share * len(broken))])
    assert native_find(cut) == plain_find(cut)


@given(st.binary(max_size=64))
def test_both_find_the_same_in_any_bytes(tail: bytes) -> None:
    """Behind a head that says that an element follows."""
    record = b"\x94\x01\x00\x01\x91" + tail
    assert native_find(record) == plain_find(record)


@pytest.mark.parametrize("field", ["position", "item_id", "origin"])
def test_both_take_the_same_formats(field: str) -> None:
    """Every first byte, before 0 to 9 bytes, as a number, a span and anything."""
    one = click()
    values = [2, *(getattr(one, name) for name in one.__struct_fields__)]
    place = 1 + one.__struct_fields__.index(field)
    before = msgspec.msgpack.encode([SCHEMA, 0, 1, []])[:-1] + b"\x91\x99"
    before += b"".join(map(msgspec.msgpack.encode, values[:place]))
    behind = b"".join(map(msgspec.msgpack.encode, values[place + 1 :]))
    n_taken = 0
    for first in range(256):
        for n in range(10):
            record = before + bytes([first]) + bytes(n) + behind
            expected = plain_find(record)
            assert native_find(record) == expected
            n_taken += expected is not None
    assert n_taken >= 16


@pytest.mark.parametrize(
    "number",
    [
        sign * ((1 << bits) + more)
        for bits in (0, 5, 7, 8, 15, 16, 31, 32, 62)
        for more in (-1, 0)
        for sign in (-1, 1)
    ],
)
def test_numbers_are_read_in_every_width(number: int) -> None:
    """With their sign."""
    head = np.zeros(4, np.int64)
    record = np.frombuffer(encode_record([number, number, number, []]), np.uint8)
    assert core_library.find_head(record, len(record), head) == len(record)
    assert head.tolist() == [number, number, number, 0]


def test_every_cut_is_refused() -> None:
    """Nothing that lies behind a record completes it."""
    element = click(origin=("clicks", 1 << 33, -70_000, 200))
    record = encode_record([SCHEMA, 0, 300, [element]])
    assert native_find(record) is not None
    for end in range(len(record)):
        assert native_find(record[:end]) is None
    assert native_find(record + b"\x00") is None


def test_a_false_length_is_refused() -> None:
    """Arrays in arrays that say they have 2^32 values each."""
    element = list(msgspec.msgpack.decode(msgspec.msgpack.encode(click())))
    whole = msgspec.msgpack.encode([SCHEMA, 0, 1, [[*element[:-1], None]]])
    deep = whole[:-1] + b"\xdd\xff\xff\xff\xff" * 100_000
    assert native_find(deep) is None


def test_an_identity_has_sixteen_bytes() -> None:
    """Others are not looked up."""
    record = encode_record([SCHEMA, 0, 1, [click(identity=bytes(15))]])
    assert native_find(record) is None
    with pytest.raises(ValueError, match="elements must be whole"):
        Elements(record)
    assert len(identity("i", "x")) == e.IDENTITY_BYTES
