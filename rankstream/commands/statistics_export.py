"""Statistics as Parquet: one file per kind of counter, in SQL-friendly rows."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from models.counts.cells import PAIR_NAMES, TOTAL_NAMES, CellSummary
from rankstream.wire.events import LOGGED, POLICIES
from streams.fold.statistics_reader import CellName, Statistics

ROWS_AT_ONCE = 1 << 17

CELL_FIELDS = [
    ("query", pa.string()),
    ("candidate_set", pa.string()),
    ("intervention", pa.string()),
    ("era", pa.int64()),
    ("group", pa.int16()),
]

COUNTED = ".counted"
"""Suffix of the file that is not of cells."""

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

Columns = dict[str, list[Any]]


def export(statistics: Statistics, file: Path) -> Iterator[tuple[Path, int]]:
    """Write `file` (item and rank) and its siblings; yields each and its length.

    For `counts.parquet` the siblings are `counts.cells.parquet` (totals),
    `counts.items.parquet` (hotfix and inverse sums), `counts.click-pairs.parquet`,
    `counts.rows.parquet` (exposure rows, their counters and material),
    `counts.lists.parquet` (lists that are kept with their clicked ranks),
    `counts.rewards.parquet` (other classes of actions) and `counts.counted.parquet`
    (how many interactions of which partition all of it is). `docs/statistics.md` says
    what each column is. All are written side by side, as each scope is summed once,
    and get their names when all are whole.

    Raises
    ------
    RuntimeError
        Where a file cannot be written.
    """
    with ExitStack() as stack:
        files = {
            suffix: stack.enter_context(_File(_named_after(file, suffix), schema))
            for suffix, schema in schemas().items()
        }
        files[COUNTED].add(_counted(statistics))
        for scope in statistics.scopes():
            for group, cell in statistics.cells(scope).items():
                name = CellName(*scope, group)
                for suffix, _, columns_of in _FILES:
                    files[suffix].add(columns_of(statistics, name, cell), name)
        for each in files.values():
            each.finish()
        for each in files.values():
            each.take_name()
        yield from ((each.path, each.n_rows) for each in files.values())


def schemas() -> dict[str, pa.Schema]:
    """What the files hold, by what their names have before `.parquet`."""
    of_cells = {
        suffix: pa.schema([*CELL_FIELDS, *fields]) for suffix, fields, _ in _FILES
    }
    return of_cells | {COUNTED: pa.schema(COUNTED_FIELDS)}


class _File:
    """One that is written, under a name of its own until all are whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.n_rows = 0
        self._partial = path.with_name(path.name + ".partial")
        self._schema = schema
        self._waiting: Columns = {name: [] for name in schema.names}
        self._n_waiting = 0

    def __enter__(self) -> Self:
        with _writable(self.path):
            self._writer = pq.ParquetWriter(
                self._partial, self._schema, compression="zstd"
            )
        return self

    def __exit__(self, *_: object) -> None:
        # A full disk was told of before.
        with suppress(OSError):
            self._writer.close()
        self._partial.unlink(missing_ok=True)

    def add(self, columns: Columns, name: CellName | None = None) -> None:
        """Rows, of a cell if it is named."""
        n_rows = len(next(iter(columns.values())))
        if not n_rows:
            return
        if name is not None:
            query, candidate_set, *rest = name
            place = query, candidate_set.hex(), *rest
            for (column, _), value in zip(CELL_FIELDS, place, strict=True):
                self._waiting[column] += [value] * n_rows
        for column, values in columns.items():
            self._waiting[column] += values
        self._n_waiting += n_rows
        if self._n_waiting >= ROWS_AT_ONCE:
            self._flush()

    def finish(self) -> None:
        """Write what waits, and the end."""
        self._flush()
        with _writable(self.path):
            self._writer.close()

    def take_name(self) -> None:
        """Be the file that was asked for."""
        with _writable(self.path):
            self._partial.rename(self.path)

    def _flush(self) -> None:
        with _writable(self.path):
            self._writer.write_table(pa.table(self._waiting, self._schema))
        self.n_rows += self._n_waiting
        self._waiting = {name: [] for name in self._schema.names}
        self._n_waiting = 0


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RuntimeError(
            f"{path} must be writable; {os.strerror(error.errno or errno.EIO)}"
        ) from error


def _named_after(file: Path, suffix: str) -> Path:
    return file.with_suffix(f"{suffix}.parquet") if suffix else file


def _named(cell: CellSummary, numbers: Any) -> list[str]:
    return [cell.items[number] for number in numbers.tolist()]


def _counted(statistics: Statistics) -> Columns:
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


def _pairs(_: Statistics, __: CellName, cell: CellSummary) -> Columns:
    columns: Columns = {"item": _named(cell, cell.pairs[:, 0])}
    for i, column in enumerate(PAIR_NAMES[1:], 1):
        columns[_EXPORTED.get(column, column)] = cell.pairs[:, i].tolist()
    return columns


def _totals(statistics: Statistics, name: CellName, cell: CellSummary) -> Columns:
    """Of the cell; flags and the latest time are those of its scope."""
    columns: Columns = {name: [cell.total(name)] for name in TOTAL_NAMES}
    scope = statistics.scope(name.scope)
    return columns | {"flags": [scope.flags], "last_ms": [scope.last_ms]}


def _items(_: Statistics, __: CellName, cell: CellSummary) -> Columns:
    return {
        "item": _named(cell, cell.sums[:, 0]),
        "plus": cell.sums[:, 1].tolist(),
        "minus": cell.sums[:, 2].tolist(),
        "inverse_fixed_16": cell.sums[:, 3].tolist(),
        "inverse_squared": [number / (1 << 16) for number in cell.squared_inverses()],
        "inverse_squared_fixed_16": [str(n) for n in cell.squared_inverses()],
    }


def _click_pairs(_: Statistics, __: CellName, cell: CellSummary) -> Columns:
    return {
        "item": _named(cell, cell.click_pairs[:, 0]),
        "rank": cell.click_pairs[:, 1].tolist(),
        "other_item": _named(cell, cell.click_pairs[:, 2]),
        "other_rank": cell.click_pairs[:, 3].tolist(),
        "clicked_together": cell.click_pairs[:, 4].tolist(),
    }


def _rows(statistics: Statistics, name: CellName, cell: CellSummary) -> Columns:
    rows = [statistics.row(name, row) for row in cell.row_names]
    return {
        "row": [row.hex() for row in cell.row_names],
        "impressions": cell.row_counts.tolist(),
        "policy": [POLICIES[row.policy] for row in rows],
        "n_ranks": [row.n_ranks for row in rows],
        "material": [row.material for row in rows],
        "items": [row.items for row in rows],
    }


def _lists(statistics: Statistics, name: CellName, _: CellSummary) -> Columns:
    """A row for each list and mask of the group; mask 0 where nothing was clicked."""
    scope, items = statistics.scope(name.scope), statistics.items(*name[:2], name.era)
    lists = scope.lists
    columns: Columns = {key: [] for key in ("row", "policy", "items", "mask")}
    counts: list[int] = []
    for entry in np.flatnonzero(lists.groups == name.group).tolist():
        owner = int(lists.owners[entry])
        row = int(lists.rows[owner])
        places = lists.items[lists.starts[owner] : lists.starts[owner + 1]]
        of_entry = slice(*np.searchsorted(lists.mask_owners, (entry, entry + 1)))
        times = lists.mask_counts[of_entry].tolist()
        unclicked = int(lists.shown[entry]) - sum(times)
        found = list(zip(lists.masks[of_entry].tolist(), times, strict=True))
        for mask, number in [(0, unclicked)] * bool(unclicked) + found:
            columns["row"].append(scope.rows[row].hex() if row >= 0 else "")
            columns["policy"].append(POLICIES[LOGGED if row >= 0 else -1 - row])
            columns["items"].append([items[place] for place in places.tolist()])
            columns["mask"].append(mask)
            counts.append(number)
    return columns | {"impressions": counts}


def _rewards(statistics: Statistics, _: CellName, cell: CellSummary) -> Columns:
    classes = statistics.counted[0].classes if statistics.counted else ()
    numbers = cell.rewards[:, 0].tolist()
    return {
        "class": [classes[n] if n < len(classes) else str(n) for n in numbers],
        "item": _named(cell, cell.rewards[:, 1]),
        "rank": cell.rewards[:, 2].tolist(),
        "impressions": cell.rewards[:, 3].tolist(),
    }


_EXPORTED = {"exposure": "exposure_fixed_30"}

_INT = pa.int64()
_FILES: list[tuple[str, list[tuple[str, Any]], Callable[..., Columns]]] = [
    (
        "",
        [
            ("item", pa.string()),
            *((_EXPORTED.get(name, name), _INT) for name in PAIR_NAMES[1:]),
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
            ("items", pa.binary()),
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
