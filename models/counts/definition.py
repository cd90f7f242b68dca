"""What is counted of closed impressions, defined impression by impression.

Slow and plain: what the fold's core and the two forms of a scope are held to.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from models.arrays import Floats
from models.counts.cells import (
    ITEM_NAMES,
    PAIR_NAMES,
    TOTAL_NAMES,
    CellSummary,
    merge,
)
from models.counts.fixed_point import (
    EXPOSURE_ONE,
    INVERSE_ONE,
    LEAST_COMPUTED,
    LEAST_PROBABILITY,
    SQUARED_BITS,
    Int64,
)
from models.counts.placements import (
    DETERMINISTIC,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    WITH_ROW,
    deterministic_matrix,
    tail_shuffle_matrix,
)


class ClosedImpression(NamedTuple):
    """One list of a scope, whose click window has passed.

    Parameters
    ----------
    group
        Of its user.
    shown : [n_shown]
        Numbers of the items at ranks 1, 2, ...
    clicks
        1-based ranks by class of their actions; a rank may come again.
    policy
        See `models.counts.placements`.
    row
        Name of its exposure row, where the policy has one.
    placement : [n_items, n_ranks]
        P(item at rank) of that row; of other policies it follows from the list.
    """

    group: int
    shown: Sequence[int]
    clicks: Mapping[int, Collection[int]] = {}
    policy: int = DETERMINISTIC
    row: bytes = b""
    placement: Floats | None = None


class GroupCounts(NamedTuple):
    """Counts of one group, by name."""

    totals: Counter[str]
    pairs: Counter[tuple[int, int, str]]
    sums: Counter[tuple[int, str]]
    click_pairs: Counter[tuple[int, int, int, int]]
    rows: Counter[bytes]
    rewards: Counter[tuple[int, int, int]]


def count(
    impressions: Iterable[ClosedImpression],
    items: Sequence[str],
    *,
    reward: int = 0,
    exposure_rows: int = 16,
    is_growing: bool = False,
    is_capped: bool = False,
) -> dict[int, CellSummary]:
    """The cells of a scope by group.

    Parameters
    ----------
    impressions
        In the order in which they closed, which decides which rows are kept.
    items : [n_items]
        Ids of the candidate set's items, by number.
    reward
        The class that clicks are counted of.
    exposure_rows
        The first so many exposure rows of the scope are kept.
    is_growing
        Whether the set grows: candidates of a list are its own items then.
    is_capped
        Whether the scope takes what is beyond the limits of its query, of which only
        totals and pairs are counted.
    """
    groups: dict[int, GroupCounts] = defaultdict(
        lambda: GroupCounts(*(Counter() for _ in GroupCounts._fields))
    )
    kept: dict[bytes, None] = {}
    for one in impressions:
        counted = groups[one.group]
        clicked = _ranks_of(one, reward)
        _count_totals(counted, clicked)
        _count_ranks(counted, one.shown, clicked)
        if is_capped:
            continue
        _count_preferences(counted, one.shown, clicked)
        for other in one.clicks.keys() - {reward}:
            for rank in _ranks_of(one, other):
                counted.rewards[other, one.shown[rank - 1], rank] += 1
        placement = placement_of(one, len(items), is_growing=is_growing)
        if placement is None:
            counted.totals["without_exposure"] += 1
            continue
        _count_inverses(counted, one, clicked, placement)
        if one.policy in WITH_ROW and (one.row in kept or len(kept) < exposure_rows):
            kept[one.row] = None
            counted.rows[one.row] += 1
        else:
            _count_exposures(counted, placement)
    return {group: _summary(counted, items) for group, counted in groups.items()}


def placement_of(
    one: ClosedImpression, n_items: int, *, is_growing: bool
) -> Floats | None:
    """P(item at rank), [n_items, n_ranks]; None where nobody knows it."""
    shown = np.array(one.shown, np.int64)
    if one.policy in WITH_ROW:
        return one.placement
    if one.policy == TAIL_SHUFFLE and not is_growing:
        return tail_shuffle_matrix(shown[:-1], n_items)
    if one.policy in (DETERMINISTIC, TAIL_SHUFFLE):
        return deterministic_matrix(shown, n_items)
    return None


def _ranks_of(one: ClosedImpression, which: int) -> list[int]:
    """Clicked ranks of a class, each once, sorted; those of no place are left out."""
    return [
        r for r in sorted(set(one.clicks.get(which, ()))) if 0 < r <= len(one.shown)
    ]


def _count_totals(counted: GroupCounts, clicked: list[int]) -> None:
    counted.totals["impressions"] += 1
    counted.totals["without_click"] += not clicked
    counted.totals["clicks"] += len(clicked)
    counted.totals["clicks_squared"] += len(clicked) ** 2


def _count_ranks(
    counted: GroupCounts, shown: Sequence[int], clicked: list[int]
) -> None:
    first = clicked[0] if clicked else len(shown)
    last = clicked[-1] if clicked else 0
    for rank, item in enumerate(shown, 1):
        counted.pairs[item, rank, "shown"] += 1
        counted.pairs[item, rank, "clicked"] += rank in clicked
        counted.pairs[item, rank, "first_click"] += clicked[:1] == [rank]
        counted.pairs[item, rank, "shown_to_first"] += rank <= first
        counted.pairs[item, rank, "shown_to_last"] += rank <= last


def _count_preferences(
    counted: GroupCounts, shown: Sequence[int], clicked: list[int]
) -> None:
    """Each clicked place against each unclicked one down to the last click."""
    passed = [rank for rank in range(1, max(clicked, default=0)) if rank not in clicked]
    for rank in clicked:
        for other in passed:
            counted.sums[shown[rank - 1], "plus"] += 1
            counted.sums[shown[other - 1], "minus"] += 1
    places = sorted((shown[rank - 1], rank) for rank in clicked)
    for (one, rank), (two, below) in combinations(places, 2):
        counted.click_pairs[one, rank, two, below] += 1


def _count_inverses(
    counted: GroupCounts, one: ClosedImpression, clicked: list[int], placement: Floats
) -> None:
    for rank in clicked:
        if rank > placement.shape[1]:
            continue
        item = one.shown[rank - 1]
        probability = float(placement[item, rank - 1])
        if one.policy == PLACKETT_LUCE:
            probability = max(probability, LEAST_COMPUTED)
        if probability <= 0:
            continue
        counted.totals["clipped"] += probability < LEAST_PROBABILITY
        probability = max(probability, LEAST_PROBABILITY)
        counted.sums[item, "inverse"] += round(INVERSE_ONE / probability)
        squared = round(INVERSE_ONE / (probability * probability))
        counted.sums[item, "squared"] += squared


def _count_exposures(counted: GroupCounts, placement: Floats) -> None:
    for item, rank in np.argwhere(placement > 0).tolist():
        fixed = round(float(placement[item, rank]) * EXPOSURE_ONE)
        counted.pairs[item, rank + 1, "exposure"] += fixed


def _summary(counted: GroupCounts, items: Sequence[str]) -> CellSummary:
    pairs = _table(counted.pairs, 2, PAIR_NAMES[2:])
    sums = _table(_split_squares(counted.sums), 1, ITEM_NAMES[1:])
    names = tuple(counted.rows)
    totals = [counted.totals[name] for name in TOTAL_NAMES]
    return merge(
        [
            CellSummary(
                tuple(items),
                np.array(totals, np.int64),
                pairs,
                sums,
                _rows_of(counted.click_pairs, 5),
                names,
                np.array([counted.rows[name] for name in names], np.int64),
                _rows_of(counted.rewards, 4),
            )
        ]
    )


def _split_squares(sums: Counter[tuple[int, str]]) -> Counter[tuple[int, str]]:
    """Squares in two parts, as integers of 64 bits cannot hold them."""
    split: Counter[tuple[int, str]] = Counter()
    for (item, name), number in sums.items():
        if name == "squared":
            split[item, "squared_high"] = number >> SQUARED_BITS
            split[item, "squared_low"] = number & ((1 << SQUARED_BITS) - 1)
        else:
            split[item, name] = number
    return split


def _table(counts: Mapping[Any, int], n_keys: int, names: Sequence[str]) -> Int64:
    """Counts by (key, ..., name) as rows of keys and of one number for each name."""
    keys = sorted({key[:n_keys] for key in counts})
    rows = [[*key, *(counts.get((*key, name), 0) for name in names)] for key in keys]
    return np.array(rows, np.int64).reshape(len(rows), n_keys + len(names))


def _rows_of(counts: Mapping[Any, int], width: int) -> Int64:
    """Counts by key as rows of key and count, [n, width]."""
    rows = [[*key, number] for key, number in counts.items()]
    return np.array(rows, np.int64).reshape(-1, width)
