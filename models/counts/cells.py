"""Decoded cells, and their sums.

A summary is what one or several cells of the same query counted: integers only.
Summaries of other groups, interventions, candidate sets or partitions add up,
and no order of adding changes a bit: items are sorted, pairs are sorted by item,
then rank, exposure rows by name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.counts.cell_codec import SCHEMA, read_cell
from models.counts.count_tables import SQUARED_BITS

Int64 = NDArray[np.int64]

TOTAL_NAMES = (
    "impressions",
    "without_click",
    "clicks",
    "clicks_squared",
    "without_exposure",
    "clipped",
)
"""What `CellSummary.totals` holds."""

PAIR_NAMES = (
    "item",
    "rank",
    "shown",
    "clicked",
    "first_click",
    "shown_to_first",
    "shown_to_last",
    "last_shown_ms",
    "exposure",
)
"""Columns of `CellSummary.pairs`. `exposure` is the sum, over those exposure rows
that a cell had no room for, of count * round(2^30 P(item at rank))."""

ITEM_NAMES = ("item", "plus", "minus", "inverse", "squared_low", "squared_high")
"""Columns of `CellSummary.sums`. `inverse` is the sum of round(2^16 / p) over
clicks with known probability p of their place; the sum of round(2^16 / p^2) is
squared_high * 2^40 + squared_low."""

_LAST_MS = PAIR_NAMES.index("last_shown_ms")
_TOTALS_MAGIC = b"RSC\x01"


@dataclass(frozen=True)
class CellSummary:
    """What cells counted.

    Parameters
    ----------
    items : [n_items]
        Ids of the items that the columns `item` number.
    totals : [6]
        See `TOTAL_NAMES`.
    pairs : [n_pairs, 9]
        See `PAIR_NAMES`; one row per item and 1-based rank.
    sums : [n_rows, 6]
        See `ITEM_NAMES`; items without any such sum have no row.
    click_pairs : [n_rows, 5]
        item, rank, other item, other rank, count; the first place sorts before
        the other.
    row_names : [n_rows]
        16-byte names of exposure rows, and
    row_counts : [n_rows]
        how many impressions each explains.
    """

    items: tuple[str, ...]
    totals: Int64
    pairs: Int64
    sums: Int64
    click_pairs: Int64
    row_names: tuple[bytes, ...]
    row_counts: Int64

    def total(self, name: str) -> int:
        """One of the totals."""
        return int(self.totals[TOTAL_NAMES.index(name)])

    def column(self, name: str) -> Int64:
        """One of the columns of `pairs`."""
        return self.pairs[:, PAIR_NAMES.index(name)]

    @property
    def overflow_impressions(self) -> int:
        """Impressions whose exposures are only in the column `exposure`.

        Exact for summaries of cells that no limit on sets or interventions put
        together; those keep no exposures.
        """
        counted = self.total("without_exposure") + int(self.row_counts.sum())
        return self.total("impressions") - counted

    def squared_inverses(self) -> list[int]:
        """Sum of round(2^16 / p^2) per row of `sums`."""
        return [
            (int(high) << SQUARED_BITS) + int(low) for low, high in self.sums[:, 4:]
        ]

    def encode(self) -> bytes:
        """Canonical bytes: equal summaries, and only those, have equal bytes."""
        names = b"".join(
            len(name).to_bytes(4, "little") + name
            for name in (item.encode() for item in self.items)
        )
        tables = (self.totals, self.pairs, self.sums, self.click_pairs, self.row_counts)
        blocks = (names, b"".join(self.row_names), *(x.tobytes() for x in tables))
        return _TOTALS_MAGIC + b"".join(
            len(block).to_bytes(8, "little") + block for block in blocks
        )


def row_names_of(value: bytes) -> list[bytes]:
    """Names of the exposure rows of a written cell, newest first."""
    n_rows, start = 0, 1
    while True:
        n_rows |= (value[start] & 127) << (7 * (start - 1))
        start += 1
        if value[start - 1] < 128:
            break
    return [value[i : i + 16] for i in range(start, start + 16 * n_rows, 16)]


def decode_cell(value: bytes, items: Sequence[str]) -> CellSummary:
    """The summary of a written cell, in canonical form.

    Parameters
    ----------
    value
        As `StatisticsStore.written` gives it.
    items : [n_items]
        Ids of the candidate set's items, by number.
    """
    if value[0] != SCHEMA:
        raise ValueError(f"schema of a cell must be {SCHEMA}; got {value[0]}")
    source = np.frombuffer(value, np.uint8)
    counts, totals, pairs, sums, places = read_cell(source, 1)
    a, b, n = places[:, 0], places[:, 1], places[:, 2]
    click_pairs = np.column_stack((pairs[a, :2], pairs[b, :2], n))
    names = tuple(row_names_of(value))
    return merge(
        [CellSummary(tuple(items), totals, pairs, sums, click_pairs, names, counts)]
    )


def decode_pairs(value: bytes, names: Sequence[str]) -> Int64:
    """Some columns of a written cell's pairs, [n_pairs, n_names]; see `PAIR_NAMES`."""
    _, _, pairs, _, _ = read_cell(np.frombuffer(value, np.uint8), 1)
    chosen: Int64 = pairs[:, [PAIR_NAMES.index(name) for name in names]]
    return chosen


def merge(summaries: Iterable[CellSummary]) -> CellSummary:
    """The sum of summaries; their order does not matter.

    Raises
    ------
    ValueError
        If there is none.
    OverflowError
        If a sum does not fit 63 bits.
    """
    parts = list(summaries)
    if not parts:
        raise ValueError("summaries must hold at least one; got none")
    items, numbers = _joint_items(parts)
    pairs = np.concatenate(
        [_renumbered(one.pairs, (0,), n) for one, n in zip(parts, numbers, strict=True)]
    )
    sums = np.concatenate(
        [_renumbered(one.sums, (0,), n) for one, n in zip(parts, numbers, strict=True)]
    )
    clicks = np.concatenate(
        [
            _renumbered(one.click_pairs, (0, 2), n)
            for one, n in zip(parts, numbers, strict=True)
        ]
    )
    names, counts = _joint_rows(parts)
    totals = _checked_sum(np.stack([one.totals for one in parts]), np.array([0]))[0]
    return CellSummary(
        items,
        totals,
        _merged_pairs(pairs),
        _carried(_merged(sums, 1)),
        _merged(_ordered_places(clicks), 4),
        names,
        counts,
    )


def _joint_items(
    parts: list[CellSummary],
) -> tuple[tuple[str, ...], list[Int64]]:
    """All items, sorted, and for each part the new number of each of its own."""
    if all(one.items == parts[0].items for one in parts):
        items = tuple(sorted(parts[0].items))
    else:
        items = tuple(sorted({item for one in parts for item in one.items}))
    place = {item: i for i, item in enumerate(items)}
    known: dict[int, Int64] = {}
    for one in parts:
        if id(one.items) not in known:
            known[id(one.items)] = np.array([place[i] for i in one.items], np.int64)
    return items, [known[id(one.items)] for one in parts]


def _renumbered(rows: Int64, columns: tuple[int, ...], numbers: Int64) -> Int64:
    renumbered = rows.copy()
    for column in columns:
        renumbered[:, column] = numbers[rows[:, column]]
    return renumbered


def _merged_pairs(pairs: Int64) -> Int64:
    """Rows by item and rank: counts added, the latest time kept."""
    order, starts = _runs(pairs, 2)
    merged = _merged(pairs, 2)
    if len(starts):
        merged[:, _LAST_MS] = np.maximum.reduceat(pairs[order, _LAST_MS], starts)
    return merged


def _runs(rows: Int64, n_keys: int) -> tuple[Int64, Int64]:
    """An order that sorts rows by their first columns, and where each run starts."""
    order = np.lexsort(rows[:, :n_keys].T[::-1])
    keys = rows[order, :n_keys]
    is_start = np.ones(len(rows), bool)
    is_start[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return order, np.flatnonzero(is_start)


def _merged(rows: Int64, n_keys: int) -> Int64:
    """Rows sorted by their first columns, the others added where those agree."""
    order, starts = _runs(rows, n_keys)
    if not len(starts):
        return rows
    merged = rows[order[starts]]
    merged[:, n_keys:] = _checked_sum(rows[order, n_keys:], starts)
    return merged


def _checked_sum(rows: Int64, starts: Int64) -> Int64:
    total: Int64 = np.add.reduceat(rows, starts, axis=0)
    # A sum of non-negative numbers below 2^63 that wraps differs from its float.
    close = np.add.reduceat(rows.astype(np.float64), starts, axis=0)
    if (close >= 2.0**63).any():
        raise OverflowError("a merged counter must stay below 2^63; it does not")
    return total


def _carried(sums: Int64) -> Int64:
    """Sums with low parts below 2^40 again."""
    sums[:, 5] += sums[:, 4] >> SQUARED_BITS
    sums[:, 4] &= (1 << SQUARED_BITS) - 1
    return sums


def _ordered_places(clicks: Int64) -> Int64:
    """Click pairs with the smaller (item, rank) first."""
    is_swapped = (clicks[:, 0] > clicks[:, 2]) | (
        (clicks[:, 0] == clicks[:, 2]) & (clicks[:, 1] > clicks[:, 3])
    )
    ordered = clicks.copy()
    ordered[is_swapped, :4] = clicks[is_swapped][:, [2, 3, 0, 1]]
    return ordered


def _joint_rows(parts: list[CellSummary]) -> tuple[tuple[bytes, ...], Int64]:
    counts: dict[bytes, int] = {}
    for one in parts:
        for name, count in zip(one.row_names, one.row_counts.tolist(), strict=True):
            counts[name] = counts.get(name, 0) + count
    names = tuple(sorted(counts))
    return names, np.array([counts[name] for name in names], np.int64)


def totals_of(value: bytes) -> Int64:
    """The totals of a written cell alone; see `TOTAL_NAMES`."""
    totals: Int64 = read_cell(np.frombuffer(value, np.uint8), 1)[1]
    return totals
