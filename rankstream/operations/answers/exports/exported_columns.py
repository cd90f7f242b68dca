"""What an export of statistics has: cells, in SQL-friendly rows."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from models.counts.cells import PAIR_NAMES, TOTAL_NAMES, CellSummary
from models.counts.scope_record import CONVERTED
from rankstream.operations.answers.relevance import QueryRelevance
from rankstream.wire.events import LOGGED, POLICIES, decode_items
from streams.statistics.columns import Columns as StatisticsColumns
from streams.statistics.keys import Row
from streams.statistics.reader import CellName, Statistics
from streams.statistics.scopes import STRIDE, ScopeBatch
from streams.statistics.summaries import summaries_of_batch

CELL_FIELDS = [
    ("query", pa.string()),
    ("candidate_set", pa.string()),
    ("intervention", pa.string()),
    ("era", pa.int64()),
    ("group", pa.int16()),
]

COUNTED = ".counted"
"""Suffix of the file of partitions."""

COUNTED_FIELDS = [
    ("partition", pa.int64()),
    ("interactions", pa.int64()),
    ("watermark_ms", pa.int64()),
    ("left", pa.int64()),
    ("oldest_era", pa.int64()),
    ("capped", pa.int64()),
    ("clipped", pa.int64()),
    ("without_exposure", pa.int64()),
    ("groups", pa.int64()),
    ("keep_ms", pa.int64()),
    ("reward", pa.string()),
    ("classes", pa.list_(pa.string())),
]

SETS = ".sets"
"""Suffix of the file of candidate sets, which groups and interventions share."""

SETS_FIELDS = [*CELL_FIELDS[:2], CELL_FIELDS[3], ("items", pa.list_(pa.string()))]

RELEVANCE = ".relevance"
"""Suffix of the file of corrected relevance, which groups, sets and eras share."""

RELEVANCE_FIELDS = [
    ("query", pa.string()),
    ("item", pa.string()),
    ("impressions", pa.int64()),
    ("clicked", pa.int64()),
    ("exposure", pa.float64()),
    ("relevance", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("degrees", pa.int64()),
    ("is_under_exposed", pa.bool_()),
    ("no_interval", pa.string()),
    ("warning", pa.string()),
    ("estimator", pa.string()),
    ("chosen", pa.string()),
]

Columns = dict[str, list[Any]]


class ExportedCell(NamedTuple):
    """A cell with what its rows need.

    Parameters
    ----------
    name
        Which cell.
    cell
        What it counted.
    expected
        Expected times by number of the item (as in `cell`) and rank, sorted.
    entries
        Entries of the batch's lists that are the cell's.
    batch, scope
        Where it is from, and the number of its scope there.
    classes
        Names of reward classes by number.
    """

    name: CellName
    cell: CellSummary
    expected: dict[tuple[int, int], float]
    entries: list[int]
    batch: ScopeBatch
    scope: int
    classes: tuple[str, ...]

    @property
    def flags(self) -> int:
        """Of its scope."""
        return int(self.batch.heads[self.scope, 0])

    @property
    def is_converted(self) -> bool:
        """Whether an earlier release counted it, so that exposures are refused."""
        return bool(self.flags & CONVERTED)

    @property
    def last_ms(self) -> int:
        """When its scope was last shown, epoch milliseconds."""
        return int(self.batch.heads[self.scope, 1])

    @property
    def items(self) -> tuple[str, ...]:
        """Candidates of its scope, by number in the set."""
        return self.batch.items[self.scope]

    def row(self, name: bytes) -> Row:
        """An exposure row of its scope."""
        first, end = np.searchsorted(
            self.batch.row_scopes, (self.scope, self.scope + 1)
        )
        return self.batch.rows[self.batch.row_names.index(name, int(first), int(end))]


def exported_cells(
    statistics: Statistics,
    on_columns: Callable[[StatisticsColumns], None] = lambda _: None,
) -> Iterator[ExportedCell]:
    """All cells, sorted; `on_columns` is shown the columns, which come in between."""
    classes = statistics.counted[0].classes if statistics.counted else ()
    reader = statistics.column_reader()
    for batch in statistics.batches():
        groups = batch.lists.groups
        order = np.argsort(groups, kind="stable")
        sorted_groups = groups[order]
        number = {name: i for i, name in enumerate(batch.names)}
        expected = _expected(reader.of_batch(batch), on_columns)
        for name, group, cell in summaries_of_batch(batch):
            scope = number[name]
            own = scope * STRIDE + group
            first, end = np.searchsorted(sorted_groups, (own, own + 1))
            entries = order[first:end].tolist()
            yield ExportedCell(
                CellName(*name, group),
                cell,
                next(expected),
                entries,
                batch,
                scope,
                classes,
            )


def _expected(
    chunks: Iterable[StatisticsColumns], on_columns: Callable[[StatisticsColumns], None]
) -> Iterator[dict[tuple[int, int], float]]:
    """What each cell is expected to show, cell after cell."""
    for chunk in chunks:
        on_columns(chunk)
        cells = chunk.cells[:, 0] * STRIDE + chunk.cells[:, 1]
        rows = chunk.scope * STRIDE + chunk.group
        starts = np.searchsorted(rows, cells).tolist()
        ends = np.searchsorted(rows, cells, side="right").tolist()
        for start, end in zip(starts, ends, strict=True):
            of_cell = slice(start, end)
            columns = (chunk.item, chunk.rank, chunk.expected)
            items, ranks, sums = (column[of_cell].tolist() for column in columns)
            places = zip(items, ranks, strict=True)
            yield {p: n for p, n in zip(places, sums, strict=True) if n}


def schemas() -> dict[str, pa.Schema]:
    """What the files hold, by what their names have before `.parquet`."""
    of_cells = {
        suffix: pa.schema([*CELL_FIELDS, *fields]) for suffix, fields, _ in FILES
    }
    others = {
        SETS: SETS_FIELDS,
        RELEVANCE: RELEVANCE_FIELDS,
        COUNTED: COUNTED_FIELDS,
    }
    return of_cells | {name: pa.schema(fields) for name, fields in others.items()}


def set_of(one: ExportedCell) -> Columns:
    """The candidates of a scope; numbers of items and `material` follow their order."""
    return {
        "query": [one.name.query],
        "candidate_set": [one.name.candidate_set.hex()],
        "era": [one.name.era],
        "items": [list(one.items)],
    }


def relevance_columns(query: str, found: QueryRelevance) -> Columns:
    """A row for each item of a query; nothing where there is no number."""
    of_query = found.warning, found.choice.estimator, found.chosen
    rows = [(query, *map(_or_nothing, one), *of_query) for one in found.items]
    names = [name for name, _ in RELEVANCE_FIELDS]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _or_nothing(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _named(cell: CellSummary, numbers: Any) -> list[str]:
    return [cell.items[number] for number in numbers.tolist()]


def counted_columns(statistics: Statistics) -> Columns:
    """A row for each partition of `events`; of a log in process there is one."""
    rows = [
        (
            *(partition, number, one.watermark_ms, one.n_left, one.oldest),
            *(one.capped, one.clipped, one.without_exposure),
            *(one.groups, one.keep_ms, one.reward, list(one.classes)),
        )
        for one in statistics.counted
        for partition, number in sorted(one.sources.items())
    ]
    names = [name for name, _ in COUNTED_FIELDS]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _pairs(one: ExportedCell) -> Columns:
    """Places that were shown or expected; no exposures where they are refused."""
    cell = one.cell
    columns: Columns = {"item": _named(cell, cell.pairs[:, 0])}
    for i, column in enumerate(PAIR_NAMES[1:], 1):
        columns[_EXPORTED.get(column, column)] = cell.pairs[:, i].tolist()
    if one.is_converted:
        nothing = [None] * len(cell.pairs)
        return columns | {"exposure_fixed_30": nothing, "expected": nothing}
    expected = dict(one.expected)
    places = zip(*cell.pairs[:, :2].T.tolist(), strict=True)
    columns["expected"] = [expected.pop(place, 0.0) for place in places]
    for (item, rank), number in expected.items():
        never: dict[str, Any] = {"item": cell.items[item], "rank": rank}
        never["expected"] = number
        for column, values in columns.items():
            values.append(never.get(column, 0))
    return columns


def _totals(one: ExportedCell) -> Columns:
    """Of the cell; flags and the latest time are those of its scope."""
    columns: Columns = {name: [one.cell.total(name)] for name in TOTAL_NAMES}
    return columns | {"flags": [one.flags], "last_ms": [one.last_ms]}


def _items(one: ExportedCell) -> Columns:
    cell = one.cell
    return {
        "item": _named(cell, cell.sums[:, 0]),
        "plus": cell.sums[:, 1].tolist(),
        "minus": cell.sums[:, 2].tolist(),
        "inverse_fixed_16": cell.sums[:, 3].tolist(),
        "inverse_squared": [number / (1 << 16) for number in cell.squared_inverses()],
        "inverse_squared_fixed_16": [str(n) for n in cell.squared_inverses()],
    }


def _click_pairs(one: ExportedCell) -> Columns:
    cell = one.cell
    return {
        "item": _named(cell, cell.click_pairs[:, 0]),
        "rank": cell.click_pairs[:, 1].tolist(),
        "other_item": _named(cell, cell.click_pairs[:, 2]),
        "other_rank": cell.click_pairs[:, 3].tolist(),
        "clicked_together": cell.click_pairs[:, 4].tolist(),
    }


def _rows(one: ExportedCell) -> Columns:
    if one.is_converted:
        return {"row": []}
    cell = one.cell
    rows = [one.row(name) for name in cell.row_names]
    return {
        "row": [name.hex() for name in cell.row_names],
        "impressions": cell.row_counts.tolist(),
        "policy": [POLICIES[row.policy] for row in rows],
        "n_ranks": [row.n_ranks for row in rows],
        "material": [row.material for row in rows],
        "items": [decode_items(row.items) if row.items else [] for row in rows],
    }


def _lists(one: ExportedCell) -> Columns:
    """A row for each list and mask of the group; mask 0 where nothing was clicked."""
    items, lists = one.items, one.batch.lists
    columns: Columns = {key: [] for key in ("row", "policy", "items", "mask")}
    counts: list[int] = []
    for entry in one.entries:
        owner = int(lists.owners[entry])
        row = int(lists.rows[owner])
        places = lists.items[lists.starts[owner] : lists.starts[owner + 1]]
        of_entry = slice(*np.searchsorted(lists.mask_owners, (entry, entry + 1)))
        times = lists.mask_counts[of_entry].tolist()
        unclicked = int(lists.shown[entry]) - sum(times)
        found = list(zip(lists.masks[of_entry].tolist(), times, strict=True))
        for mask, number in [(0, unclicked)] * bool(unclicked) + found:
            columns["row"].append(one.batch.row_names[row].hex() if row >= 0 else "")
            columns["policy"].append(POLICIES[LOGGED if row >= 0 else -1 - row])
            columns["items"].append([items[place] for place in places.tolist()])
            columns["mask"].append(mask)
            counts.append(number)
    return columns | {"impressions": counts}


def _rewards(one: ExportedCell) -> Columns:
    cell, classes = one.cell, one.classes
    numbers = cell.rewards[:, 0].tolist()
    return {
        "class": [classes[n] if n < len(classes) else str(n) for n in numbers],
        "item": _named(cell, cell.rewards[:, 1]),
        "rank": cell.rewards[:, 2].tolist(),
        "impressions": cell.rewards[:, 3].tolist(),
    }


_EXPORTED = {"exposure": "exposure_fixed_30"}

_INT = pa.int64()
FILES: list[tuple[str, list[tuple[str, Any]], Callable[..., Columns]]] = [
    (
        "",
        [
            ("item", pa.string()),
            *((_EXPORTED.get(name, name), _INT) for name in PAIR_NAMES[1:]),
            ("expected", pa.float64()),
        ],
        _pairs,
    ),
    (".cells", [(name, _INT) for name in (*TOTAL_NAMES, "flags", "last_ms")], _totals),
    (
        ".items",
        [
            ("item", pa.string()),
            ("plus", _INT),
            ("minus", _INT),
            ("inverse_fixed_16", _INT),
            ("inverse_squared", pa.float64()),
            ("inverse_squared_fixed_16", pa.string()),
        ],
        _items,
    ),
    (
        ".click-pairs",
        [
            ("item", pa.string()),
            ("rank", _INT),
            ("other_item", pa.string()),
            ("other_rank", _INT),
            ("clicked_together", _INT),
        ],
        _click_pairs,
    ),
    (
        ".rows",
        [
            ("row", pa.string()),
            ("impressions", _INT),
            ("policy", pa.string()),
            ("n_ranks", _INT),
            ("material", pa.binary()),
            ("items", pa.list_(pa.string())),
        ],
        _rows,
    ),
    (
        ".lists",
        [
            ("row", pa.string()),
            ("policy", pa.string()),
            ("items", pa.list_(pa.string())),
            ("mask", _INT),
            ("impressions", _INT),
        ],
        _lists,
    ),
    (
        ".rewards",
        [
            ("class", pa.string()),
            ("item", pa.string()),
            ("rank", _INT),
            ("impressions", _INT),
        ],
        _rewards,
    ),
]
