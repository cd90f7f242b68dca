"""The statistics of one query, counted again in plain dictionaries.

A query is counted by itself, impression after impression in closing order: its
scopes, the limits on them, and the eras that leave.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

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
from streams.recount.scopes import (
    CAPPED,
    OPEN_SET,
    OVERFLOW_SET,
    OVERFLOWED,
    Cell,
    Counted,
    RowKey,
    Scope,
    ScopeKey,
    Scopes,
)

LEAST = 2.0**-20
EXPOSURE_ONE = 2.0**30
INVERSE_ONE = 2.0**16

LONGEST = 32
"""Lists of more items have no masks."""


def count_query(
    impressions: Iterable[Closed],
    leaving: Sequence[int],
    rules: Rules,
    counted: Counted,
) -> Scopes:
    """The scopes of a query.

    Parameters
    ----------
    impressions
        In closing order.
    leaving
        Each time that eras left: the least that still lived.
    counted
        Is added to.
    """
    scopes: Scopes = {}
    n_left = 0
    for one in impressions:
        for least in leaving[n_left : one.n_left]:
            _leave(scopes, least, counted)
        n_left = one.n_left
        _count(scopes, one, rules, counted)
    for least in leaving[n_left:]:
        _leave(scopes, least, counted)
    eras = [key.era for key in scopes]
    if eras and (counted.oldest is None or min(eras) < counted.oldest):
        counted.oldest = min(eras)
    return scopes


def _leave(scopes: Scopes, least: int, counted: Counted) -> None:
    for key in [key for key in scopes if key.era < least]:
        cells = scopes.pop(key).cells.values()
        counted.n_left += sum(cell.totals["impressions"] for cell in cells)


def _count(scopes: Scopes, one: Closed, rules: Rules, counted: Counted) -> None:
    key = _key_of(scopes, one, rules)
    scope = scopes.setdefault(key, Scope(one.at_ms))
    scope.last_ms = max(scope.last_ms, one.at_ms)
    cell = scope.cells.setdefault(one.group, Cell())
    items = decode_items(one.candidates)
    rows = np.frombuffer(one.shown, "<u2").tolist()
    shown = [items[row] for row in rows]
    counted.interactions += 1
    _count_lists(cell, one, shown)
    if key.candidate_set == OVERFLOW_SET:
        counted.capped += 1
        scope.flags |= CAPPED
        return
    _count_preferences(cell, one.ranks, shown)
    for pair in combinations([(shown[rank - 1], rank) for rank in one.ranks], 2):
        a, b = sorted(pair)
        cell.click_pairs[a, b] = cell.click_pairs.get((a, b), 0) + 1
    for class_number, rank in one.rewards:
        place = class_number, shown[rank - 1], rank
        cell.rewards[place] = cell.rewards.get(place, 0) + 1
    row = _count_exposure(scope, cell, one, items, rules.exposure_rows)
    if len(shown) <= LONGEST and one.policy != PLACKETT_LUCE:
        mask = row or one.policy, tuple(shown), one.ranks
        cell.masks[mask] = cell.masks.get(mask, 0) + 1
    if one.policy in (UNKNOWN, MULTILEAVE):
        cell.add_total("without_exposure", 1)
        counted.without_exposure += 1
        return
    for rank in one.ranks:
        _count_inverse(cell, one, rank, (rows[rank - 1], shown[rank - 1]), counted)


def _key_of(scopes: Scopes, one: Closed, rules: Rules) -> ScopeKey:
    """The scope of an impression, or the capped one where it has no room."""
    name: tuple[str, ...] | bytes = tuple(decode_items(one.candidates))
    if one.is_open_set:
        name = OPEN_SET
    era = one.at_ms // rules.keep_ms
    key = ScopeKey(name, one.intervention, era)
    if key in scopes:
        return key
    living = {
        other[:2]
        for other in scopes
        if other.era == era and other.candidate_set != OVERFLOW_SET
    }
    names = {candidate_set for candidate_set, _ in living}
    interventions = {intervention for _, intervention in living}
    is_full = (name not in names and len(names) >= rules.candidate_sets) or (
        one.intervention not in interventions
        and len(interventions) >= rules.interventions
    )
    return ScopeKey(OVERFLOW_SET, "", era) if is_full else key


def _count_lists(cell: Cell, one: Closed, shown: list[str]) -> None:
    """Parts (a) and (b)."""
    n_clicked = len(one.ranks)
    cell.add_total("impressions", 1)
    cell.add_total("without_click", int(n_clicked == 0))
    cell.add_total("clicks", n_clicked)
    cell.add_total("clicks_squared", n_clicked**2)
    first, last = (one.ranks[0], one.ranks[-1]) if one.ranks else (None, 0)
    for rank, item in enumerate(shown, 1):
        counts = cell.pairs.setdefault((item, rank), [0] * 5)
        counts[0] += 1
        counts[1] += rank in one.ranks
        counts[2] += rank == first
        counts[3] += first is None or rank <= first
        counts[4] += rank <= last


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


def _count_inverse(
    cell: Cell, one: Closed, rank: int, place: tuple[int, str], counted: Counted
) -> None:
    """Part (c), inverse probabilities of a clicked place: row and id of its item."""
    row, item = place
    probability = _probability(one, rank, row)
    if not probability > 0:
        return
    if one.policy == PLACKETT_LUCE:
        if abs(probability - LEAST) <= ERROR:
            cell.add_slack("clipped", 1)
            counted.clipped_slack += 1
        close = max(probability - ERROR, LEAST)
        cell.add_slack(("sum", item, 2), 1 + INVERSE_ONE * ERROR / close**2)
        cell.add_slack(("sum", item, 3), 1 + 2 * INVERSE_ONE * ERROR / close**3)
    cell.add_total("clipped", int(probability < LEAST))
    counted.clipped += probability < LEAST
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


def _count_exposure(
    scope: Scope, cell: Cell, one: Closed, items: list[str], limit: int
) -> RowKey | None:
    """Part (e): by row where a scope has kept it, else summed at once; the row kept."""
    n_ranks = len(one.shown) // 2
    if one.policy in (LOGGED, PLACKETT_LUCE):
        named = tuple(items) if one.is_open_set else ()
        row = (one.policy, n_ranks, one.material, named)
        if row not in scope.rows and len(scope.rows) < limit:
            scope.rows.append(row)
        if row in scope.rows:
            cell.rows[row] = cell.rows.get(row, 0) + 1
            return row
        scope.flags |= OVERFLOWED
    if one.policy not in (UNKNOWN, MULTILEAVE):
        matrix = _matrix_of(one, len(items), n_ranks)
        for item, rank in np.argwhere(matrix > 0).tolist():
            place = (items[item], rank + 1)
            fixed = round(float(matrix[item, rank]) * EXPOSURE_ONE)
            cell.exposures[place] = cell.exposures.get(place, 0) + fixed
            probability = float(matrix[item, rank])
            cell.expected[place] = cell.expected.get(place, 0.0) + probability
            if probability < 1.0:
                cell.loose[place] = cell.loose.get(place, 0) + 1
            if one.policy == PLACKETT_LUCE:
                cell.add_slack(place, 1 + ERROR * EXPOSURE_ONE)
    return None


def matrix_of_row(row: RowKey, n_items: int) -> NDArray[np.float64]:
    """P(item at rank) of a kept exposure row."""
    policy, n_ranks, material, _ = row
    if policy == PLACKETT_LUCE:
        return placements(material, n_ranks)
    return _logged(material, n_items, n_ranks)


def _matrix_of(one: Closed, n_items: int, n_ranks: int) -> NDArray[np.float64]:
    """P(item at rank) of an impression, whose policy has one."""
    if one.policy == PLACKETT_LUCE:
        return placements(one.material, n_ranks)
    if one.policy == LOGGED:
        return _logged(one.material, n_items, n_ranks)
    first = np.frombuffer(one.material, "<u2")
    matrix = np.zeros((n_items, n_ranks))
    matrix[first, np.arange(len(first))] = 1.0
    if one.policy == TAIL_SHUFFLE:
        rest = np.setdiff1d(np.arange(n_items), first)
        matrix[rest, -1] = 1.0 / len(rest)
    return matrix
