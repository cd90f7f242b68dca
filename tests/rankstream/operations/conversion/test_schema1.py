"""Cells of schema 1: numbers of any size are read, and broken bytes refused."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.operations.conversion.schema1 import (
    ConversionRefused,
    read_cell,
    read_statistics,
)
from streams.state_pieces import Parts
from tests.rankstream.operations.conversion.stored import stored_values

NAMES = [bytes([number]) * 16 for number in range(150)]
encode = msgspec.msgpack.Encoder().encode
numbers = st.integers(0, (1 << 62) - 1)


def packed(values: Iterable[int]) -> bytes:
    """Numbers as LEB128."""
    out = bytearray()
    for value in values:
        left = value
        while left > 127:
            out.append(left & 127 | 128)
            left >>= 7
        out.append(left)
    return bytes(out)


def cell_of(n_rows: int, values: Iterable[int]) -> bytes:
    """A cell with so many exposure rows, and the numbers behind their names."""
    return b"\x01" + packed([n_rows]) + b"".join(NAMES[:n_rows]) + packed(values)


@given(st.lists(numbers, min_size=23, max_size=23), st.integers(0, 150))
def test_numbers_of_any_size_are_read(some: list[int], n_rows: int) -> None:
    """Two pairs, one with all its numbers, one item, and one click pair."""
    counts, totals, (last_ms, step, item) = [3] * n_rows, some[:6], some[6:9]
    shown, clicked, first, to_last, age, exposure = some[9:15]
    after_first = shown // 2
    own = [shown, clicked, first, after_first, to_last, age, exposure]
    pairs = [2, item, 1, 127, *own, step, 300, 1, 7]
    sums = [1, *some[15:21]]
    value = cell_of(
        n_rows, [*counts, *totals, last_ms, *pairs, *sums, 1, 0, 1, some[22]]
    )

    found = read_cell(value)

    assert found.row_names == NAMES[:n_rows]
    assert found.row_counts == counts
    assert found.totals == totals
    assert found.last_ms == last_ms
    assert found.pairs == [
        [item, 1, shown, clicked, first, shown - after_first, to_last, exposure],
        [item + step, 300, 7, 0, 0, 7, 0, 0],
    ]
    assert found.sums == [some[15:21]]
    assert found.click_pairs == [[0, 1, some[22]]]


def test_a_cell_that_ends_elsewhere_is_refused() -> None:
    """Every shorter one, and every longer one, with its place."""
    values = stored_values()
    key = next(each for each in values if each[1:6] == b"\xa4cell")
    query, name, intervention, group = msgspec.msgpack.decode(key)[1:]
    whole = values[key]
    scope = (query, name, intervention)
    for broken in (*(whole[:end] for end in range(1, len(whole))), whole + b"\x00"):
        old = read_statistics({key: broken})
        with pytest.raises(ConversionRefused, match=f"of group {group} in .*{query}"):
            list(old.cells_of(scope))


@pytest.mark.parametrize("value", [b"\x02\x00", b"", b"\x00"])
def test_a_cell_of_another_schema_is_refused(value: bytes) -> None:
    """Also one without any."""
    key = encode(["cell", "shoes", bytes(16), "", 3])
    with pytest.raises(
        ConversionRefused, match=r"a cell of .* must have schema 1; got"
    ):
        read_statistics({key: value})


def test_a_set_of_another_schema_is_refused() -> None:
    """As any other value."""
    key = encode(["set", "shoes", bytes(16)])
    with pytest.raises(ConversionRefused, match=r"a set of .* schema 1; got 2, at key"):
        read_statistics({key: encode([2, ["a"]])})


@pytest.mark.parametrize("kind", ["set", "row", "counts"])
def test_a_value_that_ends_early_is_refused(kind: str) -> None:
    """As a cell is."""
    values = stored_values()
    key = next(each for each in values if msgspec.msgpack.decode(each)[0] == kind)
    with pytest.raises(ConversionRefused, match=f"a {kind} of .* must be readable"):
        read_statistics({key: values[key][:-1]})


def test_values_in_parts_are_read() -> None:
    """As whole ones are; one that lost a part is refused."""
    values = stored_values()
    parts = Parts(part_bytes=200)
    pieces = {
        key: piece
        for whole, value in values.items()
        for key, piece in parts.split(whole, value)
        if piece is not None
    }
    some_part = next(key for key in pieces if b"part" in key)

    assert len(pieces) > len(values)
    assert read_statistics(pieces) == read_statistics(values)
    del pieces[some_part]
    with pytest.raises(ConversionRefused, match="must have all its parts"):
        read_statistics(pieces)
