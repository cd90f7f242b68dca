"""Stored statistics in the plain dictionaries that the recount compares with.

Sums of cells are what readers see of them; what else there is, masks among it, is
read from the records themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from models.counts.cells import TOTAL_NAMES, CellSummary
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown
from models.estimators.intervention_aware import item_sums
from rankstream.wire.schemas import SchemaRefused
from streams.recount.recount import Statistics
from streams.recount.scopes import (
    OPEN_SET,
    OVERFLOW_SET,
    Cell,
    Counted,
    RowKey,
    Scope,
    ScopeKey,
    Scopes,
)
from streams.recount.weights import CURVES, ItemWeights
from streams.state_pieces import Parts
from streams.statistics.logged_queries import QueryGatherer
from streams.statistics.reader import CellName
from streams.statistics.reader import Statistics as StoredStatistics

_decode = msgspec.msgpack.Decoder().decode

Place = tuple[Any, ...]
"""A decoded key without its kind."""


class Records(NamedTuple):
    """Whole values by kind and place; a query's scopes."""

    sets: dict[Place, bytes]
    rows: dict[Place, bytes]
    pieces: dict[Place, bytes]
    lists: dict[Place, bytes]
    scopes: dict[str, dict[Place, bytes]]


def stored(values: Sequence[tuple[bytes, bytes]]) -> Statistics:
    """Statistics as they lie in their topic.

    Parameters
    ----------
    values
        Keys and values; the key of what was counted may come once a partition.
    """
    # Pieces that no head names are differences, and told as such.
    statistics = StoredStatistics(values, is_strict=False)
    records = _records_of(values)
    names: dict[tuple[Any, ...], list[CellName]] = {}
    for name in statistics.names():
        names.setdefault(tuple(name[:4]), []).append(name)

    def scopes_of(query: str) -> Scopes:
        scopes: Scopes = {}
        for place, value in records.scopes.get(query, {}).items():
            scope = _scope_of(place, value, records)
            for name in names.get(place, ()):
                cell = scope.cells.setdefault(name.group, Cell())
                _take_summary(cell, statistics.cell(name), place, records)
            _, candidate_set, intervention, era = place
            items: tuple[str, ...] | bytes = candidate_set
            if candidate_set not in (OPEN_SET, OVERFLOW_SET):
                items = _items_of(place, records)
            key = ScopeKey(items, intervention, era)
            if key in scopes:
                # Two names of one set: the second one is shown as it is named.
                key = ScopeKey(candidate_set, intervention, era)
            scopes[key] = scope
        return scopes

    strays = list(_strays(records))
    queries = set(records.scopes)

    def weights(query: str, curve: str) -> dict[str, ItemWeights] | None:
        return _weights_of(statistics, query, curve)

    counted = dict(_counted_of(values))
    return Statistics(queries, scopes_of, strays, counted, weights)


def _weights_of(
    statistics: StoredStatistics, query: str, curve: str
) -> dict[str, ItemWeights] | None:
    """What readers correct clicks by; None where a scope cannot be read, or settings.

    Those who cannot be read are told of where scopes are compared.
    """
    if not statistics.counted:
        return None
    alpha, beta = (np.array(column) for column in CURVES[curve])
    n_groups = statistics.counted[0].groups
    gatherer = QueryGatherer(np.arange(n_groups), n_groups, Unknown.LEFT_OUT)
    try:
        found = [*gatherer.of(statistics.columns([query]))] or [gatherer.together()]
    except (ValueError, SchemaRefused):
        return None
    (gathered,) = found
    sums = item_sums(gathered.log, gathered.impressions, BiasCurve(alpha, beta))
    totals = (table.sum(axis=0).tolist() for table in sums)
    rows = zip(*totals, strict=True)
    return {
        item: ItemWeights(int(n), int(clicked), alphas, betas)
        for item, (n, alphas, betas, clicked) in zip(gathered.items, rows, strict=True)
    }


def _records_of(values: Sequence[tuple[bytes, bytes]]) -> Records:
    records = Records({}, {}, {}, {}, {})
    kinds = {
        "set": records.sets,
        "row": records.rows,
        "piece": records.pieces,
        "lists": records.lists,
    }
    for key, value in Parts().joined(dict(values)).items():
        kind, *place = _decode(key)
        if kind in kinds:
            kinds[kind][tuple(place)] = value
        elif kind == "scope":
            records.scopes.setdefault(place[0], {})[tuple(place)] = value
    return records


def _strays(records: Records) -> Iterator[str]:
    """Records that no scope refers to."""
    sets, rows, pieces, lists = set(), set(), set(), set()
    for of_query in records.scopes.values():
        for place, value in of_query.items():
            _, _, _, names, in_head, _, groups, _ = _decode(value)
            query, candidate_set, _, era = place
            sets.add((query, candidate_set, era))
            rows |= {(*place, name) for name in names}
            pieces |= {(*place, group) for group in groups}
            n_apart = in_head if isinstance(in_head, int) else 0
            lists |= {(*place, number) for number in range(n_apart)}
    for kind, referred, found in (
        ("set", sets, records.sets),
        ("row", rows, records.rows),
        ("piece", pieces, records.pieces),
        ("lists", lists, records.lists),
    ):
        for place in found.keys() - referred:
            yield f"{kind} {place!r:.160} of no scope"


def _counted_of(
    values: Iterable[tuple[bytes, bytes]],
) -> Iterator[tuple[int, Counted]]:
    for key, value in values:
        if _decode(key)[0] != "counted":
            continue
        _, groups, keep_ms, classes, reward, watermark_ms, *rest = _decode(value)
        sources, counts, _ = rest
        n_left, oldest, capped, clipped, without_exposure = counts
        for source, n_interactions in sources:
            yield (
                source,
                Counted(
                    n_interactions,
                    watermark_ms,
                    n_left,
                    oldest,
                    capped,
                    clipped,
                    without_exposure,
                    settings=(groups, keep_ms, tuple(classes), reward),
                ),
            )


def _scope_of(place: Place, value: bytes, records: Records) -> Scope:
    """A scope with its flags, rows, masks and rewards; its cells are not summed."""
    _, flags, last_ms, row_names, lists, _, _, rewards = _decode(value)
    if isinstance(lists, int):
        apart = (_decode(records.lists[(*place, n)])[1] for n in range(lists))
        lists = [*chain.from_iterable(apart)]
    items = _items_of(place, records)
    scope = Scope(last_ms, flags)
    scope.rows = [_row_of(place, name, records) for name in row_names]
    for row, numbers, counts in _chunks(lists, 3):
        source = scope.rows[row] if row >= 0 else -1 - row
        shown = tuple(items[number] for number in numbers)
        for group, n, masks in _chunks(counts, 3):
            cell = scope.cells.setdefault(group, Cell())
            of_list = dict(_chunks(masks, 2))
            unclicked = n - sum(of_list.values())
            for mask, count in (*of_list.items(), (0, unclicked)):
                ranks = tuple(r for r in range(1, 33) if mask >> (r - 1) & 1)
                if count:
                    cell.masks[source, shown, ranks] = count
    for group, number, item, rank, count in _chunks(rewards, 5):
        cell = scope.cells.setdefault(group, Cell())
        cell.rewards[number, items[item], rank] = count
    return scope


def _chunks(flat: Sequence[Any], size: int) -> Iterator[tuple[Any, ...]]:
    return zip(*(flat[i::size] for i in range(size)), strict=True)


def _items_of(place: Place, records: Records) -> tuple[str, ...]:
    query, candidate_set, _, era = place
    _, items = _decode(records.sets[query, candidate_set, era])
    return tuple(items)


def _row_of(place: Place, name: bytes, records: Records) -> RowKey:
    _, policy, n_ranks, material, items = _decode(records.rows[(*place, name)])
    named = tuple(_decode(items)) if items else ()
    return policy, n_ranks, material, named


def _take_summary(
    cell: Cell, summary: CellSummary, place: Place, records: Records
) -> None:
    """What readers see of a group."""
    items = summary.items
    cell.totals = dict(zip(TOTAL_NAMES, summary.totals.tolist(), strict=True))
    for item, rank, *counts, exposure in summary.pairs.tolist():
        if counts[0]:
            cell.pairs[items[item], rank] = counts
        if exposure:
            cell.exposures[items[item], rank] = exposure
    squares = summary.squared_inverses()
    for sums, squared in zip(summary.sums.tolist(), squares, strict=True):
        item, plus, minus, inverse, *_ = sums
        cell.sums[items[item]] = [plus, minus, inverse, squared]
    for a, rank, b, other_rank, count in summary.click_pairs.tolist():
        first, second = sorted([(items[a], rank), (items[b], other_rank)])
        cell.click_pairs[first, second] = count
    named = zip(summary.row_names, summary.row_counts.tolist(), strict=True)
    for name, count in named:
        cell.rows[_row_of(place, name, records)] = count
