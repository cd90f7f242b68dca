"""Where the fields of elements begin, in plain Python: value after value.

What the locator in C must find, written a second time for tests alone.
"""

from streams.native import elements as e
from streams.native.elements import (
    CLICK,
    FRONTIER,
    IDENTITY_BYTES,
    IMPRESSION,
    N_FIELDS,
    N_FRONTIER_FIELDS,
)

Found = tuple[list[int], list[int], list[list[int]]] | None
"""Head, tags and places; None where a record is not whole."""

FALSE, TRUE = 0xC2, 0xC3


def big_endian(data: bytes, at: int, width: int) -> int:
    """A number of 1, 2, 4 or 8 bytes of `data` [n_bytes]."""
    number = 0
    for i in range(width):
        number = number << 8 | data[at + i]
    return number


def number_at(data: bytes, at: int) -> int:
    """The integer that begins here; those beyond 2^63 come as negative ones.

    `data` [n_bytes].
    """
    first = data[at]
    if first < 0x80:
        return first
    if first >= 0xE0:
        return first - 256
    if first >= 0xD0:
        width = 1 << (first - 0xD0)
        number = big_endian(data, at + 1, width)
        return number - (1 << 8 * width) if number >> (8 * width - 1) else number
    number = big_endian(data, at + 1, 1 << (first - 0xCC))
    return number - (1 << 64) if number >> 63 else number


def is_number(data: bytes, at: int) -> bool:
    """Whether an integer begins here in `data` [n_bytes]."""
    first = data[at]
    return first < 0x80 or first >= 0xE0 or 0xCC <= first <= 0xD3


def span_at(data: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a string or of binary data begin and end.

    `data` [n_bytes].
    """
    first = data[at]
    if 0xA0 <= first < 0xC0:
        return at + 1, at + 1 + (first & 31)
    width = 1 << (first - 0xC4 if first < 0xD0 else first - 0xD9)
    start = at + 1 + width
    return start, start + big_endian(data, at + 1, width)


def is_span(data: bytes, at: int) -> bool:
    """Whether a string or binary data begins here in `data` [n_bytes]."""
    first = data[at]
    return 0xA0 <= first < 0xC0 or 0xC4 <= first <= 0xC6 or 0xD9 <= first <= 0xDB


def array_at(data: bytes, at: int) -> tuple[int, int]:
    """Length of an array, and where its first value begins; -1 if there is none.

    `data` [n_bytes].
    """
    first = data[at]
    if first & 0xF0 == 0x90:
        return first & 15, at + 1
    if first == 0xDC:
        return big_endian(data, at + 1, 2), at + 3
    if first == 0xDD:
        return big_endian(data, at + 1, 4), at + 5
    return -1, at


def after(data: bytes, at: int, end: int) -> int:  # noqa: PLR0912
    """Where the value that begins here ends, or -1 if it is not whole.

    `data` [n_bytes].
    """
    left = 1
    while left > 0:
        if at >= end:
            return -1
        left -= 1
        first = data[at]
        at += 1
        if first < 0x80 or first >= 0xE0 or first in (0xC0, FALSE, TRUE):
            continue
        if first < 0x90:
            left += 2 * (first & 15)
        elif first < 0xA0:
            left += first & 15
        elif first < 0xC0:
            at += first & 31
        elif 0xC4 <= first <= 0xC6 or 0xD9 <= first <= 0xDB:
            width = 1 << (first - 0xC4 if first < 0xD0 else first - 0xD9)
            if at + width > end:
                return -1
            at += width + big_endian(data, at, width)
        elif 0xCA <= first <= 0xCB:
            at += 4 << (first - 0xCA)
        elif 0xCC <= first <= 0xD3:
            at += 1 << (first - 0xCC if first < 0xD0 else first - 0xD0)
        elif first in (0xDC, 0xDD):
            width = 2 if first == 0xDC else 4
            if at + width > end:
                return -1
            left += big_endian(data, at, width)
            at += width
        else:
            return -1
    return at if at <= end else -1


KINDS = {
    IMPRESSION: (1, 3, 2, 2, 1, 2, 1, 2, 1, 1, 2, 2, 0, 2, 2, 2, 1, 1, 2),
    CLICK: (1, 3, 3, 2, 1, 1, 2, 2, 0),
    FRONTIER: (1,) * N_FRONTIER_FIELDS,
}
"""Of each field by tag: 0 anything, 1 an integer, 2 a span, 3 an identity."""


def is_kind(data: bytes, at: int, kind: int) -> bool:
    """Whether a value in `data` [n_bytes] is of the kind that a field must have."""
    if kind == 0:
        return True
    if kind == 1:
        return is_number(data, at)
    if not is_span(data, at):
        return False
    start, end = span_at(data, at)
    return kind == 2 or end - start == IDENTITY_BYTES


def find_fields(data: bytes, at: int, end: int, places: list[int]) -> int:
    """Find the fields of the element that begins here; its end, or -1.

    `data` [n_bytes]; `places` [WIDTH] takes where each begins, at `N_FIELDS` the end.
    """
    length, field_at = array_at(data, at)
    if length < 1 or field_at >= end or not is_number(data, field_at):
        return -1
    tag = number_at(data, field_at)
    if tag not in KINDS or length != len(KINDS[tag]):
        return -1
    for field in range(length):
        places[field] = field_at
        next_at = after(data, field_at, end)
        if next_at < 0 or not is_kind(data, field_at, KINDS[tag][field]):
            return -1
        field_at = next_at
    places[N_FIELDS] = field_at
    return field_at


def plain_find(record: bytes) -> Found:
    """As Python finds it: element by element, each value after the other."""
    # What is read behind the end is refused afterwards.
    data = record + bytes(16)
    end = len(record)
    length, at = array_at(data, 0)
    if length != 4:
        return None
    head, tags, places = [], [], []
    for _ in range(3):
        if at >= end or not is_number(data, at) or after(data, at, end) < 0:
            return None
        head.append(number_at(data, at))
        at = after(data, at, end)
    n_elements, first = array_at(data, at)
    if not 0 <= n_elements <= end - at:
        return None
    at = first
    for _ in range(n_elements):
        found, start = [0] * e.WIDTH, at
        at = find_fields(data, start, end, found)
        if at < 0:
            return None
        tags.append(number_at(data, found[e.TAG]))
        found[e.TAG] = start
        places.append(used(tags[-1], found))
    return (head, tags, places) if at == end else None


def used(tag: int, places: list[int]) -> list[int]:
    """The places that an element of this kind has."""
    return [*places[: len(KINDS[tag])], places[N_FIELDS]]
