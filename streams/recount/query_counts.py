"""The statistics of one query, counted again in plain dictionaries.

A query is counted by itself, impression after impression in closing order: its
cells, the limits on them, and what leaves because it was not shown for long.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    decode_items,
)
from streams.recount.placement import ERROR, placements
from streams.recount.rules import Closed, Rules

OPEN_SET = bytes(16)
OVERFLOW_SET = b"\xff" * 16
LEAST = 2.0**-20
EXPOSURE_ONE = 2.0**30
INVERSE_ONE = 2.0**16

Place = tuple[str, int]
"""Item and 1-based rank."""

RowKey = tuple[int, int, bytes, tuple[str, ...]]
"""Policy, length of the list, material, candidates where the set is open."""


class CellKey(NamedTuple):
    """Where a cell of a query is."""

    candidate_set: bytes
    intervention: str
    group: int


@dataclass
class Cell:
    """What a cell holds, and by how much what follows from placements may be off.

    `pairs` by (item, rank): shown, clicked, first_click, shown_to_first,
    shown_to_last, last_shown_ms. `exposures` by (item, rank): fixed point of the rows
    that had no room. `sums` by item: plus, minus, inverse, inverse squared.
    """

    totals: dict[str, int] = field(default_factory=dict)
    pairs: dict[Place, list[int]] = field(default_factory=dict)
    exposures: dict[Place, int] = field(default_factory=dict)
    sums: dict[str, list[int]] = field(default_factory=dict)
    click_pairs: dict[tuple[Place, Place], int] = field(default_factory=dict)
    rows: dict[RowKey, int] = field(default_factory=dict)
    masks: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = field(
        default_factory=dict
    )
    slack: dict[object, float] = field(default_factory=dict)

    def add_total(self, name: str, count: int) -> None:
        """Count one of the totals."""
        self.totals[name] = self.totals.get(name, 0) + count

    def add_slack(self, what: object, size: float) -> None:
        """Say that a number may be off by so much more."""
        self.slack[what] = self.slack.get(what, 0.0) + size


def count_query(
    impressions: Iterable[Closed], expiries: Sequence[int], rules: Rules
) -> dict[CellKey, Cell]:
    """The cells of a query.

    Parameters
    ----------
    impressions
        In closing order.
    expiries
        At the beginning of each era: what was last shown before leaves.
    """
    cells: dict[CellKey, Cell] = {}
    era = 0
    for one in impressions:
        for before_ms in expiries[era : one.era]:
            _expire(cells, before_ms)
        era = one.era
        _count(cells, one, rules)
    for before_ms in expiries[era:]:
        _expire(cells, before_ms)
    return cells


def _count(cells: dict[CellKey, Cell], one: Closed, rules: Rules) -> None:
    key = _key_of(cells, one, rules)
    cell = cells.setdefault(key, Cell())
    items = decode_items(one.candidates)
    rows = np.frombuffer(one.shown, "<u2").tolist()
    shown = [items[row] for row in rows]
    _count_lists(cell, one, shown)
    if key.candidate_set == OVERFLOW_SET:
        return
    _count_preferences(cell, one.ranks, shown)
    for pair in combinations([(shown[rank - 1], rank) for rank in one.ranks], 2):
        a, b = sorted(pair)
        cell.click_pairs[a, b] = cell.click_pairs.get((a, b), 0) + 1
    if rules.list_masks:
        _count_mask(cell, (tuple(shown), one.ranks), rules.list_masks)
    if one.policy in (UNKNOWN, MULTILEAVE):
        cell.add_total("without_exposure", 1)
        return
    for rank in one.ranks:
        _count_inverse(cell, one, rank, rows[rank - 1], shown[rank - 1])
    _count_exposure(cell, one, items, rules.exposure_rows)


def _key_of(cells: dict[CellKey, Cell], one: Closed, rules: Rules) -> CellKey:
    name = hashlib.blake2b(one.candidates, digest_size=16).digest()
    if one.is_open_set:
        name = OPEN_SET
    key = CellKey(name, one.intervention, one.group)
    if key in cells:
        return key
    scopes = {(each.candidate_set, each.intervention) for each in cells}
    scopes = {scope for scope in scopes if scope[0] != OVERFLOW_SET}
    names = {candidate_set for candidate_set, _ in scopes}
    interventions = {intervention for _, intervention in scopes}
    is_full = (name not in names and len(names) >= rules.candidate_sets) or (
        one.intervention not in interventions
        and len(interventions) >= rules.interventions
    )
    return CellKey(OVERFLOW_SET, "", one.group) if is_full else key


def _count_lists(cell: Cell, one: Closed, shown: list[str]) -> None:
    """Parts (a) and (b)."""
    n_clicked = len(one.ranks)
    cell.add_total("impressions", 1)
    cell.add_total("without_click", int(n_clicked == 0))
    cell.add_total("clicks", n_clicked)
    cell.add_total("clicks_squared", n_clicked**2)
    first, last = (one.ranks[0], one.ranks[-1]) if one.ranks else (None, 0)
    for rank, item in enumerate(shown, 1):
        counts = cell.pairs.setdefault((item, rank), [0] * 6)
        counts[0] += 1
        counts[1] += rank in one.ranks
        counts[2] += rank == first
        counts[3] += first is None or rank <= first
        counts[4] += rank <= last
        counts[5] = max(counts[5], one.at_ms)


def _count_preferences(cell: Cell, ranks: tuple[int, ...], shown: list[str]) -> None:
    """Part (c), clicked above or below unclicked."""
    if not ranks:
        return
    last = ranks[-1]
    for rank in range(1, last + 1):
        sums = cell.sums.setdefault(shown[rank - 1], [0, 0, 0, 0])
        if rank in ranks:
            sums[0] += last - len(ranks)
        else:
            sums[1] += len(ranks)


def _count_mask(
    cell: Cell, key: tuple[tuple[str, ...], tuple[int, ...]], limit: int
) -> None:
    """Part (f)."""
    if key not in cell.masks and len(cell.masks) >= limit:
        return
    cell.masks[key] = cell.masks.get(key, 0) + 1


def _count_inverse(cell: Cell, one: Closed, rank: int, row: int, item: str) -> None:
    """Part (c), inverse probabilities of clicked places."""
    probability = _probability(one, rank, row)
    if not probability > 0:
        return
    if one.policy == PLACKETT_LUCE:
        if abs(probability - LEAST) <= ERROR:
            cell.add_slack("clipped", 1)
        close = max(probability - ERROR, LEAST)
        cell.add_slack(("sum", item, 2), 1 + INVERSE_ONE * ERROR / close**2)
        cell.add_slack(("sum", item, 3), 1 + 2 * INVERSE_ONE * ERROR / close**3)
    cell.add_total("clipped", int(probability < LEAST))
    probability = max(probability, LEAST)
    sums = cell.sums.setdefault(item, [0, 0, 0, 0])
    sums[2] += round(INVERSE_ONE / probability)
    sums[3] += round(INVERSE_ONE / (probability * probability))


def _probability(one: Closed, rank: int, row: int) -> float:
    n_ranks = len(one.shown) // 2
    if one.policy == DETERMINISTIC:
        return 1.0
    if one.policy == LOGGED:
        n_items = len(decode_items(one.candidates))
        return float(_logged(one.material, n_items, n_ranks)[row, rank - 1])
    if one.policy == TAIL_SHUFFLE:
        n_items = len(decode_items(one.candidates))
        return 1.0 if rank < n_ranks else 1.0 / (n_items - n_ranks + 1)
    # What was shown had some chance, however small.
    return max(float(placements(one.material, n_ranks)[row, rank - 1]), LEAST / 2)


def _logged(material: bytes, n_items: int, n_ranks: int) -> NDArray[np.float64]:
    """Exposures, given whole or as places and their values."""
    matrix = np.zeros(n_items * n_ranks)
    numbers = np.frombuffer(material, "<f4")
    if len(numbers) == len(matrix):
        matrix[:] = numbers
    else:
        places, values = np.split(numbers, 2)
        for place, value in zip(places.view("<u4").tolist(), values, strict=True):
            matrix[place] = value
    return matrix.reshape(n_items, n_ranks)


def _count_exposure(cell: Cell, one: Closed, items: list[str], limit: int) -> None:
    """Part (e): the newest rows, and the sum of those before."""
    named = tuple(items) if one.is_open_set else ()
    key = (one.policy, len(one.shown) // 2, one.material, named)
    if key not in cell.rows and len(cell.rows) >= limit:
        oldest = next(iter(cell.rows))
        _overflow(cell, oldest, cell.rows.pop(oldest), items)
    cell.rows[key] = cell.rows.get(key, 0) + 1


def _overflow(cell: Cell, row: RowKey, count: int, items: list[str]) -> None:
    policy, n_ranks, material, named = row
    items = list(named) or items
    if policy == PLACKETT_LUCE:
        matrix = placements(material, n_ranks)
    elif policy == LOGGED:
        matrix = _logged(material, len(items), n_ranks)
    else:
        first = np.frombuffer(material, "<u2")
        matrix = np.zeros((len(items), n_ranks))
        matrix[first, np.arange(len(first))] = 1.0
        if policy == TAIL_SHUFFLE:
            rest = np.setdiff1d(np.arange(len(items)), first)
            matrix[rest, -1] = 1.0 / len(rest)
    for (item, rank), probability in np.ndenumerate(matrix):
        place = (items[item], rank + 1)
        fixed = round(float(probability) * EXPOSURE_ONE)
        if policy == PLACKETT_LUCE:
            cell.add_slack(place, 1 + count * (1 + ERROR * EXPOSURE_ONE))
        if fixed:
            cell.exposures[place] = cell.exposures.get(place, 0) + count * fixed


def _expire(cells: dict[CellKey, Cell], before_ms: int) -> None:
    """Items of a cell that were not shown since leave, and cells without any."""
    for key, cell in list(cells.items()):
        newest: dict[str, int] = {}
        for (item, _), counts in cell.pairs.items():
            newest[item] = max(newest.get(item, 0), counts[5])
        gone = {item for item, last_ms in newest.items() if last_ms < before_ms}
        if gone == newest.keys():
            del cells[key]
            continue
        if not gone:
            continue
        cell.pairs = {k: v for k, v in cell.pairs.items() if k[0] not in gone}
        cell.exposures = {k: v for k, v in cell.exposures.items() if k[0] not in gone}
        cell.sums = {k: v for k, v in cell.sums.items() if k not in gone}
        cell.click_pairs = {
            (a, b): count
            for (a, b), count in cell.click_pairs.items()
            if a[0] not in gone and b[0] not in gone
        }
