"""MessagePack in compiled loops: where values begin, and the few that are read.

Bytes of our own log only, checked for length once by `after`; what is read behind
that check stays inside the array.
"""

import numpy as np
from numpy.typing import NDArray

from models.kernels.compilation import Number, compiled, inlined

Bytes = NDArray[np.uint8]

PADDING = 16
"""Bytes that must lie behind what is read, so that a number never ends outside."""

FALSE, TRUE = 0xC2, 0xC3


@inlined
def big_endian(data: Bytes, at: Number, width: Number) -> Number:
    """A number of 1, 2, 4 or 8 bytes of `data` [n_bytes]."""
    number = np.uint64(0)
    for i in range(width):
        number = (number << np.uint64(8)) | np.uint64(data[at + i])
    return number


@inlined
def number_at(data: Bytes, at: Number) -> Number:
    """The integer that begins here; those beyond 2^63 come as negative ones.

    `data` [n_bytes].
    """
    first = np.int64(data[at])
    if first < 0x80:
        return first
    if first >= 0xE0:
        return first - 256
    if first >= 0xD0:
        width = 1 << (first - 0xD0)
        shift = np.int64(64 - 8 * width)
        return (np.int64(big_endian(data, at + 1, width)) << shift) >> shift
    return np.int64(big_endian(data, at + 1, 1 << (first - 0xCC)))


@inlined
def is_number(data: Bytes, at: Number) -> Number:
    """Whether an integer begins here in `data` [n_bytes]."""
    first = data[at]
    return first < 0x80 or first >= 0xE0 or 0xCC <= first <= 0xD3


@inlined
def span_at(data: Bytes, at: Number) -> Number:
    """Where the bytes of a string or of binary data begin and end.

    `data` [n_bytes].
    """
    first = np.int64(data[at])
    if 0xA0 <= first < 0xC0:
        return at + 1, at + 1 + (first & 31)
    width = 1 << (first - 0xC4 if first < 0xD0 else first - 0xD9)
    start = at + 1 + width
    return start, start + np.int64(big_endian(data, at + 1, width))


@inlined
def is_span(data: Bytes, at: Number) -> Number:
    """Whether a string or binary data begins here in `data` [n_bytes]."""
    first = data[at]
    return 0xA0 <= first < 0xC0 or 0xC4 <= first <= 0xC6 or 0xD9 <= first <= 0xDB


@inlined
def array_at(data: Bytes, at: Number) -> Number:
    """Length of an array, and where its first value begins; -1 if there is none.

    `data` [n_bytes].
    """
    first = np.int64(data[at])
    if first & 0xF0 == 0x90:
        return first & 15, at + 1
    if first == 0xDC:
        return np.int64(big_endian(data, at + 1, 2)), at + 3
    if first == 0xDD:
        return np.int64(big_endian(data, at + 1, 4)), at + 5
    return np.int64(-1), at


@compiled
def after(data: Bytes, at: Number, end: Number) -> Number:  # noqa: C901, PLR0912
    """Where the value that begins here ends, or -1 if it is not whole.

    `data` [n_bytes].
    """
    left: Number = 1
    while left > 0:
        if at >= end:
            return -1
        left -= 1
        first = np.int64(data[at])
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
            width: Number = 1 << (first - 0xC4 if first < 0xD0 else first - 0xD9)
            if at + width > end:
                return -1
            at += width + np.int64(big_endian(data, at, width))
        elif 0xCA <= first <= 0xCB:
            at += 4 << (first - 0xCA)
        elif 0xCC <= first <= 0xD3:
            at += 1 << (first - 0xCC if first < 0xD0 else first - 0xD0)
        elif first in (0xDC, 0xDD):
            width = 2 if first == 0xDC else 4
            if at + width > end:
                return -1
            left += np.int64(big_endian(data, at, width))
            at += width
        else:
            return -1
    return at if at <= end else -1


@inlined
def after_plain(data: Bytes, at: Number, end: Number) -> Number:
    """As in `after`, fast for numbers, strings, binary data and truth values."""
    if at >= end:
        return -1
    first = np.int64(data[at])
    if first < 0x80 or first >= 0xE0 or first in (FALSE, TRUE):
        return at + 1
    if 0xA0 <= first < 0xC0:
        following = at + 1 + (first & 31)
    elif 0xCC <= first <= 0xD3:
        following = at + 1 + (1 << (first & 3))
    elif first in (0xC4, 0xD9):
        following = at + 2 + np.int64(data[at + 1])
    elif first in (0xC5, 0xDA):
        length = np.int64(data[at + 1]) << 8 | np.int64(data[at + 2])
        following = at + 3 + length
    else:
        return after(data, at, end)
    return following if following <= end else -1
