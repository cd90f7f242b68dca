"""Stored statistics in the plain dictionaries that the recount compares with."""

from collections.abc import Sequence
from typing import Any

import msgspec

from models.counts.cells import TOTAL_NAMES, CellSummary
from streams.fold.statistics_keys import checked
from streams.fold.statistics_reader import CellName
from streams.fold.statistics_reader import Statistics as StoredStatistics
from streams.recount.query_counts import Cell, CellKey
from streams.recount.recount import Statistics
from streams.state_pieces import Parts


def stored(values: Sequence[tuple[bytes, bytes]]) -> Statistics:
    """Statistics as they lie in their topic, cell by cell."""
    statistics = StoredStatistics(values)
    masks = _masks_of(values)
    by_query: dict[str, list[CellName]] = {}
    for name in statistics.names():
        by_query.setdefault(name.query, []).append(name)

    def cells_of(query: str) -> dict[CellKey, Cell]:
        cells = {}
        for name in by_query.get(query, ()):
            cell = cells[CellKey(*name[1:])] = cell_of(statistics, name)
            items = statistics.items(query, name.candidate_set)
            cell.masks = _named_masks(masks.get(name), items)
        return cells

    return Statistics(set(by_query), cells_of)


def cell_of(statistics: StoredStatistics, name: CellName) -> Cell:
    """A stored cell in plain dictionaries."""
    summary = statistics.cell(name)
    items = summary.items
    cell = Cell(totals=dict(zip(TOTAL_NAMES, summary.totals.tolist(), strict=True)))
    for item, rank, *counts, exposure in summary.pairs.tolist():
        place = (items[item], rank)
        if counts[0]:
            cell.pairs[place] = counts
        if exposure:
            cell.exposures[place] = exposure
    _take_sums(cell, summary)
    for a, rank, b, other_rank, count in summary.click_pairs.tolist():
        first, second = sorted([(items[a], rank), (items[b], other_rank)])
        cell.click_pairs[first, second] = count
    for row_name, count in zip(
        summary.row_names, summary.row_counts.tolist(), strict=True
    ):
        row = statistics.row(name, row_name)
        named: tuple[Any, ...] = ()
        if row.items:
            named = tuple(msgspec.msgpack.decode(row.items))
        cell.rows[row.policy, row.n_ranks, row.material, named] = count
    return cell


def _masks_of(values: Sequence[tuple[bytes, bytes]]) -> dict[CellName, bytes]:
    masks = {}
    for key, value in Parts().joined(dict(values)).items():
        kind, *place = msgspec.msgpack.decode(key)
        if kind == "masks":
            masks[CellName(*place)] = value
    return masks


def _named_masks(
    value: bytes | None, items: Sequence[str]
) -> dict[tuple[tuple[str, ...], tuple[int, ...]], int]:
    if value is None:
        return {}
    (rows,) = checked(msgspec.msgpack.decode(value))
    named = {}
    for numbers, packed, count in rows:
        shown = tuple(items[number] for number in memoryview(numbers).cast("i"))
        mask = int.from_bytes(packed, "little")
        ranks = tuple(r for r in range(1, len(shown) + 1) if mask >> (r - 1) & 1)
        named[shown, ranks] = count
    return named


def _take_sums(cell: Cell, summary: CellSummary) -> None:
    squares = summary.squared_inverses()
    for (item, plus, minus, inverse, *_), squared in zip(
        summary.sums.tolist(), squares, strict=True
    ):
        cell.sums[summary.items[item]] = [plus, minus, inverse, squared]
