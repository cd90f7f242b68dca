"""Many records of scopes as flat tables of numbers, read in C."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.native.core_library import core

Int64 = NDArray[np.int64]

HEAD, PIECE, LISTS = range(3)
"""Kinds of records."""

_WIDTHS = (4, 2, 2, 3, 1, 3, 3, 8, 4, 10, 8, 7, 6)

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64
core.fold_scope_tables.argtypes = (_PLACE, _PLACE, _PLACE, _NUMBER, _PLACE, _PLACE)
core.fold_scope_tables.restype = _NUMBER


class ScopeTables(NamedTuple):
    """What stands in records of scopes, rows in the order of the records.

    Parameters
    ----------
    heads : [n_scopes, 4]
        Flags, latest time, number of exposure rows, pieces of lists.
    row_names : [n, 2]
        16 bytes each.
    apart : [n, 2]
        Scope, group whose cell lies apart.
    lists : [n, 3]
        Scope, exposure row or -1 - policy, length.
    list_items : [n, 1]
        Items of all lists.
    entries : [n, 3]
        List, group, impressions.
    masks : [n, 3]
        Entry, mask, impressions.
    totals : [n, 8]
        Scope, group, and `models.counts.cells.TOTAL_NAMES`.
    rows : [n, 4]
        Scope, group, exposure row, impressions.
    pairs : [n, 10]
        Scope, group, and `models.counts.cells.PAIR_NAMES`.
    sums : [n, 8]
        Scope, group, and `models.counts.cells.ITEM_NAMES`.
    click_pairs : [n, 7]
        Scope, group, item, rank, other item, other rank, impressions.
    rewards : [n, 6]
        Scope, group, class, item, rank, impressions.
    """

    heads: Int64
    row_names: Int64
    apart: Int64
    lists: Int64
    list_items: Int64
    entries: Int64
    masks: Int64
    totals: Int64
    rows: Int64
    pairs: Int64
    sums: Int64
    click_pairs: Int64
    rewards: Int64


class SpoiltRecord(ValueError):
    """A record is not what a scope's must be; `index` says which of them."""

    def __init__(self, index: int) -> None:
        super().__init__(f"record {index} of a scope of statistics must be well formed")
        self.index = index


def scope_tables(
    values: Sequence[bytes], places: Sequence[tuple[int, int, int]]
) -> ScopeTables:
    """Tables of all records.

    Parameters
    ----------
    values
        Records: the head of a scope, then its pieces, then its lists in order.
    places
        Of each record its kind, the number of its scope, and the group of a piece.

    Raises
    ------
    SpoiltRecord
    """
    packed = b"".join(values)
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    rows = np.array(places, np.int64).reshape(-1, 3)
    sizes = np.zeros(len(_WIDTHS), np.int64)
    _read(packed, ends, rows, None, sizes)
    tables = [
        np.empty((size, width), np.int64)
        for size, width in zip(sizes.tolist(), _WIDTHS, strict=True)
    ]
    addresses = np.array([table.ctypes.data for table in tables], np.uintp)
    _read(packed, ends, rows, addresses.ctypes.data, sizes)
    return ScopeTables(*tables)


def _read(
    packed: bytes, ends: Int64, places: Int64, tables: int | None, sizes: Int64
) -> None:
    failed = core.fold_scope_tables(
        packed,
        ends.ctypes.data,
        places.ctypes.data,
        len(ends),
        tables,
        sizes.ctypes.data,
    )
    if failed:
        raise SpoiltRecord(-1 - failed)
