"""Counts by list and mask, turned into what the general form counts.

With n impressions of a list, and F(r), L(r), C(r) those whose first click, last click,
any click is at rank r:

    shown = n                                clicked(r) = C(r), first_click(r) = F(r)
    shown_to_first(r) = n - sum F(s), s < r  shown_to_last(r) = sum L(s), s >= r

The rest follows mask by mask. An *entry* is a list in a group; grids have the axes
entries, ranks, as wide as the longest list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats
from models.counts.fixed_point import (
    EXPOSURE_ONE,
    LEAST_PROBABILITY,
    Int64,
    fixed_exposures,
    inverse_sums,
    product,
)
from models.counts.group_tables import GroupTables, summed_rows
from models.counts.placements import DETERMINISTIC, TAIL_SHUFFLE, WITHOUT_EXPOSURE
from models.counts.scope_record import Lists

MASKS_AT_ONCE = 4_096
"""Click pairs are worked out of so many masks at a time, which bounds memory."""


def list_tables(
    lists: Lists, matrices: Mapping[int, Floats], n_candidates: Int64
) -> GroupTables:
    """What lists count, in rows that may repeat; see `group_tables.added`.

    Parameters
    ----------
    matrices
        P(item at rank) [n_items, n_ranks] of the exposure rows that lists have, by
        number, of the items as lists number them.
    n_candidates : [n_lists]
        Items of the candidate set; 0 if it grows, so that a list's candidates are its
        own items.
    """
    counted = ListCounts(lists)
    probabilities = _probabilities(counted, matrices, n_candidates)
    clicks = np.where(counted.is_place, counted.clicked, 0)
    inverses = inverse_sums(probabilities, clicks)
    is_clipped = (probabilities > 0) & (probabilities < LEAST_PROBABILITY)
    totals = _totals(counted, (clicks * is_clipped).sum(axis=1))
    return GroupTables(
        totals,
        _rows(counted),
        np.concatenate((_pairs(counted), _exposures(counted, n_candidates))),
        np.concatenate((_preferences(counted), _inverse_rows(counted, inverses))),
        _click_pairs(counted),
        np.empty((0, 5), np.int64),
    )


def placed_lists(lists: Lists, n_candidates: Int64) -> Int64:
    """Pairs of lists with exposures, in rows that may repeat.

    [n, 9] as `list_pairs`; `n_candidates` [n_lists] as in `list_tables`.
    """
    counted = ListCounts(lists)
    return np.concatenate((_pairs(counted), _exposures(counted, n_candidates)))


def list_totals(lists: Lists) -> Int64:
    """Totals of lists, [n, 7], in rows that may repeat; no click counts as clipped."""
    counted = ListCounts(lists)
    return _totals(counted, np.zeros_like(lists.shown))


def unplaced_lists(lists: Lists) -> tuple[Int64, Int64]:
    """Of lists of unknown policies alone, in rows that may repeat.

    Returns
    -------
    Group, item, rank and how often it was shown there, [n, 4]; group and impressions,
    [n, 2].
    """
    counted = ListCounts(lists)
    is_unknown = counted.is_of(*WITHOUT_EXPOSURE)
    where = counted.is_place & is_unknown[:, None]
    shown = np.broadcast_to(lists.shown[:, None], where.shape)[where]
    return (
        np.column_stack((*counted.placed(where), shown)),
        np.column_stack((lists.groups, lists.shown))[is_unknown],
    )


def rows_shown(lists: Lists) -> Int64:
    """Group, number of the exposure row, impressions, [n, 3], in rows that repeat."""
    return _rows(ListCounts(lists))


def pooled(lists: Lists) -> Lists:
    """The same lists, with one entry each, of group 0; masks may repeat."""
    shown = np.zeros(len(lists.rows), np.int64)
    np.add.at(shown, lists.owners, lists.shown)
    return lists._replace(
        owners=np.arange(len(lists.rows)),
        groups=np.zeros(len(lists.rows), np.int64),
        shown=shown,
        mask_owners=lists.owners[lists.mask_owners],
    )


def list_pairs(lists: Lists) -> Int64:
    """Pairs of lists without exposures, in rows that may repeat.

    [n, 9]: group, and `models.counts.cells.PAIR_NAMES`.
    """
    return _pairs(ListCounts(lists))


def list_click_pairs(lists: Lists) -> Int64:
    """Pairs of clicked places of lists, in rows that may repeat.

    [n, 6]: group, item, rank, other item, other rank, count; see `GroupTables`.
    """
    return _click_pairs(ListCounts(lists))


def list_preferences(lists: Lists) -> Int64:
    """How often items were preferred to others of their list, in rows that may repeat.

    [n, 4]: group, item, plus, minus; see `models.counts.cells.ITEM_NAMES`.
    """
    return _preferences(ListCounts(lists))[:, :4]


@dataclass(frozen=True)
class ListCounts:
    """Grids of a list form; each is made when first asked for."""

    lists: Lists

    @cached_property
    def lengths(self) -> Int64:
        """Of the list of each entry, [n_entries]."""
        starts = self.lists.starts
        lengths: Int64 = (starts[1:] - starts[:-1])[self.lists.owners]
        return lengths

    @cached_property
    def ranks(self) -> Int64:
        """0-based, [width]."""
        return np.arange(int(self.lengths.max(initial=0)))

    @cached_property
    def is_place(self) -> NDArray[np.bool_]:
        """Where a list has a rank, [n_entries, width]."""
        return self.ranks < self.lengths[:, None]

    @cached_property
    def items(self) -> Int64:
        """Item at each rank, [n_entries, width]; 0 where there is no rank."""
        places = self.lists.starts[self.lists.owners][:, None] + self.ranks
        items: Int64 = self.lists.items[np.where(self.is_place, places, 0)]
        return items

    @cached_property
    def bits(self) -> Int64:
        """Clicked ranks of each mask as 0 and 1, [n_masks, width]."""
        return (self.lists.masks[:, None] >> self.ranks) & 1

    @cached_property
    def n_clicked(self) -> Int64:
        """Clicked ranks of each mask, [n_masks]."""
        n_clicked: Int64 = self.bits.sum(axis=1)
        return n_clicked

    @cached_property
    def last(self) -> Int64:
        """The last clicked rank of each mask, 1-based, [n_masks]."""
        return np.frexp(self.lists.masks.astype(np.float64))[1].astype(np.int64)

    @cached_property
    def clicked(self) -> Int64:
        """C(r), [n_entries, width]."""
        return self.by_entry(self.bits * self.lists.mask_counts[:, None])

    @cached_property
    def _mask_starts(self) -> Int64:
        """The first mask of each entry that has one."""
        owners = self.lists.mask_owners
        return np.flatnonzero(np.diff(owners, prepend=-1))

    def by_entry(self, of_masks: Int64) -> Int64:
        """Sums [n_entries, n] of `of_masks` [n_masks, n] over each entry's masks."""
        starts = self._mask_starts
        summed = np.zeros((len(self.lists.owners), of_masks.shape[1]), np.int64)
        if len(starts):
            owners = self.lists.mask_owners[starts]
            summed[owners] = np.add.reduceat(of_masks, starts)
        return summed

    def placed(self, where: NDArray[np.bool_]) -> tuple[Int64, Int64, Int64]:
        """Group, item and 1-based rank of places; `where` [n_entries, width]."""
        entry, rank = np.nonzero(where)
        return self.lists.groups[entry], self.items[entry, rank], rank + 1

    def is_of(self, *policies: int) -> NDArray[np.bool_]:
        """Entries whose list has no exposure row and one of these policies."""
        rows = [-1 - policy for policy in policies]
        return np.isin(self.lists.rows[self.lists.owners], rows)


def _totals(counted: ListCounts, clipped: Int64) -> Int64:
    lists, n_clicked = counted.lists, counted.n_clicked[:, None]
    counts = lists.mask_counts[:, None]
    sums = counted.by_entry(np.hstack((counts, counts * n_clicked)))
    squared = counted.by_entry(counts * n_clicked * n_clicked)
    unexposed = np.where(counted.is_of(*WITHOUT_EXPOSURE), lists.shown, 0)
    columns = (lists.groups, lists.shown, lists.shown - sums[:, 0], sums[:, 1])
    return np.column_stack((*columns, squared[:, 0], unexposed, clipped))


def _rows(counted: ListCounts) -> Int64:
    lists = counted.lists
    rows = lists.rows[lists.owners]
    table = np.column_stack((lists.groups, rows, lists.shown))
    return table[rows >= 0]


def _pairs(counted: ListCounts) -> Int64:
    lists, is_place = counted.lists, counted.is_place
    first = (lists.masks & -lists.masks)[:, None] >> counted.ranks & 1
    last = counted.last[:, None] == counted.ranks + 1
    counts = lists.mask_counts[:, None]
    summed = counted.by_entry(np.hstack((counted.bits, first, last)) * counts)
    clicked, first_clicks, last_clicks = np.hsplit(summed, 3)
    shown = lists.shown[:, None] + np.zeros_like(clicked)
    to_first = shown - np.cumsum(first_clicks, axis=1) + first_clicks
    to_last = np.cumsum(last_clicks[:, ::-1], axis=1)[:, ::-1]
    table = np.zeros((int(is_place.sum()), 9), np.int64)
    table[:, :3] = np.column_stack(counted.placed(is_place))
    columns = (shown, clicked, first_clicks, to_first, to_last)
    for number, column in enumerate(columns, 3):
        table[:, number] = column[is_place]
    return table


def _exposures(counted: ListCounts, n_candidates: Int64) -> Int64:
    """Placements that follow from lists, as pairs that show nothing."""
    is_certain = counted.is_of(DETERMINISTIC, TAIL_SHUFFLE)[:, None] & counted.is_place
    is_drawn = _is_drawn(counted, n_candidates)
    is_certain[is_drawn, counted.lengths[is_drawn] - 1] = False
    shown = np.broadcast_to(counted.lists.shown[:, None], is_certain.shape)[is_certain]
    certain = _as_pairs(*counted.placed(is_certain), product(shown, EXPOSURE_ONE))
    return np.concatenate((certain, *_tail_exposures(counted, n_candidates, is_drawn)))


def _is_drawn(counted: ListCounts, n_candidates: Int64) -> NDArray[np.bool_]:
    """Entries whose last rank is uniform over what stands in no rank above."""
    is_tail = counted.is_of(TAIL_SHUFFLE)
    return np.asarray(is_tail & (n_candidates[counted.lists.owners] > 0))


def _tail_exposures(
    counted: ListCounts, n_candidates: Int64, is_drawn: NDArray[np.bool_]
) -> tuple[Int64, Int64]:
    """Of drawn last ranks: a chance for all candidates, less those that stand above.

    Lists of a group and a length are put together: as many rows as candidates, though
    there be many lists.
    """
    lists, drawn = counted.lists, np.flatnonzero(is_drawn)
    lengths, n_items = counted.lengths[drawn], n_candidates[lists.owners[drawn]]
    shown = lists.shown[drawn]
    one = fixed_exposures(1.0 / (n_items - lengths + 1))
    together = summed_rows(
        np.column_stack((lists.groups[drawn], lengths, n_items, one, shown)), 4
    )
    n_each = together[:, 2]
    rows = np.repeat(np.arange(len(together)), n_each)
    items = np.arange(len(rows)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
    everyone = product(together[:, 4], together[:, 3])[rows]
    groups, ranks = together[rows, 0], together[rows, 1]
    above = counted.ranks < lengths[:, None] - 1
    entry, rank = np.nonzero(above)
    taken = -product(shown, one)[entry]
    owners = lists.groups[drawn][entry]
    standing = counted.items[drawn][entry, rank]
    return (
        _as_pairs(groups, items, ranks, everyone),
        _as_pairs(owners, standing, lengths[entry], taken),
    )


def _as_pairs(groups: Int64, items: Int64, ranks: Int64, exposure: Int64) -> Int64:
    table = np.zeros((len(groups), 9), np.int64)
    table[:, :3] = np.column_stack((groups, items, ranks))
    table[:, 8] = exposure
    return table


def _probabilities(
    counted: ListCounts, matrices: Mapping[int, Floats], n_candidates: Int64
) -> Floats:
    """P(item at rank) of each place, [n_entries, width]; 0 where it is unknown."""
    known = np.zeros(counted.is_place.shape)
    known[counted.is_of(DETERMINISTIC, TAIL_SHUFFLE)] = 1.0
    drawn = np.flatnonzero(_is_drawn(counted, n_candidates))
    lengths = counted.lengths[drawn]
    n_items = n_candidates[counted.lists.owners[drawn]]
    known[drawn, lengths - 1] = 1.0 / (n_items - lengths + 1)
    rows = counted.lists.rows[counted.lists.owners]
    for row in np.unique(rows[rows >= 0]).tolist():
        if row not in matrices:
            raise ValueError(
                f"matrices must hold all rows of lists; row {row} is missing"
            )
        entries, matrix = np.flatnonzero(rows == row), matrices[row]
        n_ranks = min(matrix.shape[1], len(counted.ranks))
        known[entries, :n_ranks] = matrix[
            counted.items[entries, :n_ranks], np.arange(n_ranks)
        ]
    return np.where(counted.is_place, known, 0.0)


def _preferences(counted: ListCounts) -> Int64:
    """Clicked above unclicked: rows of group, item, plus, minus, and no inverses."""
    counts, n_clicked = counted.lists.mask_counts, counted.n_clicked
    is_above = counted.ranks < counted.last[:, None]
    plus = counted.bits * (counts * (counted.last - n_clicked))[:, None]
    minus = (is_above & (counted.bits == 0)) * (counts * n_clicked)[:, None]
    counted_plus, counted_minus = counted.by_entry(plus), counted.by_entry(minus)
    where = counted.is_place & ((counted_plus > 0) | (counted_minus > 0))
    groups, items, _ = counted.placed(where)
    table = np.zeros((len(groups), 7), np.int64)
    columns = (groups, items, counted_plus[where], counted_minus[where])
    table[:, :4] = np.column_stack(columns)
    return table


def _inverse_rows(counted: ListCounts, inverses: tuple[Int64, Int64, Int64]) -> Int64:
    where = inverses[0] > 0
    groups, items, _ = counted.placed(where)
    table = np.zeros((len(groups), 7), np.int64)
    sums = (grid[where] for grid in inverses)
    table[:, [0, 1, 4, 5, 6]] = np.column_stack((groups, items, *sums))
    return table


def _click_pairs(counted: ListCounts) -> Int64:
    """Pairs of clicked places, the smaller (item, rank) first."""
    several = np.flatnonzero(counted.n_clicked > 1)
    tables = [np.empty((0, 4), np.int64)]
    for start in range(0, len(several), MASKS_AT_ONCE):
        places = _clicked_together(counted, several[start : start + MASKS_AT_ONCE])
        tables.append(summed_rows(places, 3))
    entry, one, other, count = np.concatenate(tables).T
    first, second = counted.items[entry, one], counted.items[entry, other]
    is_swapped = first > second
    one, other = np.where(is_swapped, (other, one), (one, other))
    first, second = np.where(is_swapped, (second, first), (first, second))
    groups = counted.lists.groups[entry]
    return np.column_stack((groups, first, one + 1, second, other + 1, count))


def _clicked_together(counted: ListCounts, masks: Int64) -> Int64:
    """Entry, two clicked 0-based ranks, and count, mask by mask, [n, 4]."""
    lists = counted.lists
    mask, rank = np.nonzero(counted.bits[masks])
    tables = []
    for step in range(1, int(counted.n_clicked[masks].max(initial=0))):
        is_same = np.flatnonzero(mask[step:] == mask[:-step])
        which = masks[mask[is_same]]
        ranks = rank[is_same], rank[is_same + step]
        columns = (lists.mask_owners[which], *ranks, lists.mask_counts[which])
        tables.append(np.column_stack(columns))
    return np.concatenate(tables)
