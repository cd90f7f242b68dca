"""Closed impressions handed to the comparisons of the core."""

import ctypes
from typing import Any

from streams.native.closed_impressions import Closed
from streams.native.core_library import core

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64

core.comparing_take.restype = _NUMBER
core.comparing_take.argtypes = (
    *(_PLACE, _NUMBER, _PLACE, _PLACE, _PLACE, _NUMBER, _NUMBER, _PLACE),
)


def credit_plain(entries: "ctypes.Array[Any]", closed: Closed, first: int) -> int:
    """Credit what is plain, from the one numbered `first` on.

    Parameters
    ----------
    entries
        One `struct comparison` of `comparing.h` for each that is credited.

    Returns
    -------
    int
        The number of the first that is not plain, or how many there are.
    """
    return _taken(closed, first, ctypes.addressof(entries), len(entries), None)


def count_compared(closed: Closed, first: int) -> tuple[int, int]:
    """Count those of experiments, from the one numbered `first` on.

    Returns
    -------
    int, int
        The number of the first that cannot be read, or how many there are; and the
        count of those before it.
    """
    n_compared = _NUMBER(0)
    found = _taken(closed, first, None, 0, ctypes.addressof(n_compared))
    return found, n_compared.value


def _taken(
    closed: Closed, first: int, entries: int | None, n: int, n_unknown: int | None
) -> int:
    arrays = closed.encoded, closed.ends, closed.extras
    places = (array.ctypes.data for array in arrays)
    found = core.comparing_take(entries, n, *places, first, len(closed), n_unknown)
    return int(found)
