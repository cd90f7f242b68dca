"""Values that are stored in parts."""

import msgspec

from streams.state_pieces import Parts, is_split, part_key


def test_the_layout_of_split_values_stands() -> None:
    """A mark, and how many parts follow under keys of their own, in four bytes."""
    parts = Parts(part_bytes=2)
    written = dict(parts.split(b"k", b"abcde"))

    assert written[b"k"] == b"\xc1\x03\x00\x00\x00"
    assert [written[part_key(b"k", i)] for i in range(3)] == [b"ab", b"cd", b"e"]
    assert msgspec.msgpack.decode(part_key(b"k", 2)) == ["part", b"k", 2]
    assert parts.value(b"k", {key: value or b"" for key, value in written.items()}) == (
        b"abcde"
    )


def test_parts_that_a_shorter_value_has_no_use_for_leave() -> None:
    """By tombstones; what is short enough is stored as it is."""
    parts = Parts(part_bytes=2)
    assert is_split(dict(parts.split(b"k", b"abcde"))[b"k"] or b"")
    shorter = dict(parts.split(b"k", b"ab"))

    assert shorter == {b"k": b"ab", **{part_key(b"k", i): None for i in range(3)}}
    assert dict(parts.split(b"k", b"a")) == {b"k": b"a"}
