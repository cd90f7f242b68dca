"""Decoded cells, and their sums.

A summary is what one or several cells of the same query counted: integers only.
Summaries of other groups, eras, interventions, candidate sets or partitions add up,
and no order of adding changes a bit: items are sorted, pairs are sorted by item,
then rank, exposure rows by name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.counts.fixed_point import SQUARED_BITS, Int64
from models.counts.group_tables import carried, checked_sum, summed_rows

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
    "exposure",
)
"""Columns of `CellSummary.pairs`. `exposure` is the sum of round(2^30 P(item at
rank)) over those impressions that no exposure row explains: placements that follow
from the list, and rows that a scope had no room for."""

ITEM_NAMES = ("item", "plus", "minus", "inverse", "squared_low", "squared_high")
"""Columns of `CellSummary.sums`. `inverse` is the sum of round(2^16 / p) over
clicks with known probability p of their place; the sum of round(2^16 / p^2) is
squared_high * 2^40 + squared_low."""

_MAGIC = b"RSC\x02"


@dataclass(frozen=True)
class CellSummary:
    """What cells counted.

    Parameters
    ----------
    items : [n_items]
        Ids of the items that the columns `item` number.
    totals : [6]
        See `TOTAL_NAMES`.
    pairs : [n_pairs, 8]
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
    rewards : [n_rows, 4]
        class, item, rank, count: impressions with an action of another class than the
        one that clicks are counted of.
    """

    items: tuple[str, ...]
    totals: Int64
    pairs: Int64
    sums: Int64
    click_pairs: Int64
    row_names: tuple[bytes, ...]
    row_counts: Int64
    rewards: Int64

    def total(self, name: str) -> int:
        """One of the totals."""
        return int(self.totals[TOTAL_NAMES.index(name)])

    def column(self, name: str) -> Int64:
        """One of the columns of `pairs`."""
        return self.pairs[:, PAIR_NAMES.index(name)]

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
        tables = (self.totals, self.pairs, self.sums, self.click_pairs)
        counts = (*tables, self.row_counts, self.rewards)
        blocks = (names, b"".join(self.row_names), *(x.tobytes() for x in counts))
        return _MAGIC + b"".join(
            len(block).to_bytes(8, "little") + block for block in blocks
        )


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

    def together(tables: Iterable[Int64], *columns: int) -> Int64:
        return np.concatenate(
            [_renumbered(x, columns, n) for x, n in zip(tables, numbers, strict=True)]
        )

    clicks = together((one.click_pairs for one in parts), 0, 2)
    names, counts = _joint_rows(parts)
    return CellSummary(
        items,
        checked_sum(np.stack([one.totals for one in parts]), np.array([0]))[0],
        summed_rows(together((one.pairs for one in parts), 0), 2),
        carried(summed_rows(together((one.sums for one in parts), 0), 1)),
        summed_rows(ordered_places(clicks), 4),
        names,
        counts,
        summed_rows(together((one.rewards for one in parts), 1), 3),
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


def ordered_places(clicks: Int64) -> Int64:
    """Click pairs with the smaller (item, rank) first; `clicks` [n, 5]."""
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
