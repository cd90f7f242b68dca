"""Statistics as Parquet: one file per kind of counter."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Choice
from rankstream.operations.answers.exports.exported_columns import (
    CELL_FIELDS,
    COUNTED,
    FILES,
    RELEVANCE,
    SETS,
    Columns,
    counted_columns,
    exported_cells,
    relevance_columns,
    schemas,
    set_of,
)
from rankstream.operations.answers.folders import writing
from rankstream.operations.answers.relevance import QueryRelevance, RelevanceByQuery
from rankstream.operations.answers.sources import LoggingPolicies
from rankstream.private_files import created_privately
from streams.statistics.columns import Columns as StatisticsColumns
from streams.statistics.keys import ScopeName
from streams.statistics.reader import CellName, Statistics

ROWS_AT_ONCE = 1 << 17

SUFFIX = ".parquet"

RECORDS_SUFFIX = ".bin"
"""Of a file of the records themselves, which `train --statistics` reads."""

NOBODY = LoggingPolicies()
"""No model learns online."""


class Exported(NamedTuple):
    """What was written: files with their rows, impressions, converted scopes.

    `chosen` says by which estimators relevance is, and of how many queries each;
    `n_beyond` are clicks at ranks that the curve does not have.
    """

    files: list[tuple[Path, int]]
    n_impressions: int
    n_converted: int
    chosen: Mapping[str, int]
    n_beyond: int


def export(
    statistics: Statistics,
    file: Path,
    curve: BiasCurve | None = None,
    policies: LoggingPolicies = NOBODY,
    estimator: str | None = None,
) -> Exported:
    """Write `file` (item and rank) and its siblings.

    For `counts.parquet` the siblings are `counts.cells.parquet` (totals),
    `counts.items.parquet` (hotfix and inverse sums), `counts.click-pairs.parquet`,
    `counts.rows.parquet` (exposure rows, their counters and material),
    `counts.lists.parquet` (lists that are kept with their clicked ranks),
    `counts.rewards.parquet` (other classes of actions), `counts.sets.parquet`
    (candidate sets), `counts.relevance.parquet` (corrected relevance of the items of
    each query, where there is a curve) and `counts.counted.parquet` (how many
    interactions of which partition all of it is). `docs/statistics.md` says what each
    column is. All are written side by side, as each scope is read and summed once, and
    get their names when all are whole.

    Parameters
    ----------
    curve
        What relevance is corrected by; its file is empty without one.
    policies
        Which policies may have been chosen from clicks.
    estimator
        The name of one that is asked for; see `relevance.relevance_of`.

    Raises
    ------
    RuntimeError
        Where a file cannot be written, or would replace what is no regular file.
    """
    with ExitStack() as stack:
        files = {
            suffix: stack.enter_context(_File(_named_after(file, suffix), schema))
            for suffix, schema in schemas().items()
        }
        files[COUNTED].add(counted_columns(statistics))
        by_query = _relevance_by_query(statistics, curve, policies, estimator)
        relevance = _Relevance(files[RELEVANCE], by_query)
        query, sets = "", set[tuple[bytes, int]]()
        n_impressions, converted = 0, set[ScopeName]()
        for one in exported_cells(statistics, relevance.take):
            n_impressions += one.cell.total("impressions")
            if one.is_converted:
                converted.add(one.name.scope)
            if one.name.query != query:
                query, sets = one.name.query, set()
            place = one.name.candidate_set, one.name.era
            if place not in sets:
                sets.add(place)
                files[SETS].add(set_of(one))
            for suffix, _, columns_of in FILES:
                files[suffix].add(columns_of(one), one.name)
        relevance.finish()
        for each in files.values():
            each.finish()
        for each in files.values():
            each.take_name()
        lengths = [(each.path, each.n_rows) for each in files.values()]
        return Exported(
            lengths,
            n_impressions,
            len(converted),
            relevance.chosen(),
            relevance.n_beyond,
        )


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
        _check_replaceable(self._partial)
        with writing(self.path):
            created_privately(self._partial).close()
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
        with writing(self.path):
            self._writer.close()

    def take_name(self) -> None:
        """Be the file that was asked for."""
        _check_replaceable(self.path)
        with writing(self.path):
            self._partial.rename(self.path)

    def _flush(self) -> None:
        with writing(self.path):
            self._writer.write_table(pa.table(self._waiting, self._schema))
        self.n_rows += self._n_waiting
        self._waiting = {name: [] for name in self._schema.names}
        self._n_waiting = 0


def _relevance_by_query(
    statistics: Statistics,
    curve: BiasCurve | None,
    policies: LoggingPolicies,
    estimator: str | None,
) -> RelevanceByQuery | None:
    if curve is None or not statistics.counted:
        return None
    return RelevanceByQuery(curve, statistics.counted[0].groups, policies, estimator)


class _Relevance:
    """Writes that of each query as its columns come, if there is a curve."""

    def __init__(self, file: _File, by_query: RelevanceByQuery | None) -> None:
        self._file = file
        self._by_query = by_query
        self.n_beyond = 0
        self._counts: dict[Choice, Counter[str]] = defaultdict(Counter)

    def chosen(self) -> dict[str, int]:
        """In words how relevance was estimated, and of how many queries."""
        return {
            choice.said(n["unknown"], n["beside"]): n["queries"]
            for choice, n in self._counts.items()
        }

    def take(self, chunk: StatisticsColumns) -> None:
        """Add columns, which come in their order."""
        if self._by_query is not None:
            self._write(self._by_query.take(chunk))

    def finish(self) -> None:
        """Write the last query."""
        if self._by_query is not None:
            self._write(self._by_query.finish())

    def _write(self, found: Iterator[tuple[str, QueryRelevance]]) -> None:
        for query, relevance in found:
            self._file.add(relevance_columns(query, relevance))
            own = self._counts[relevance.choice]
            self.n_beyond += relevance.n_beyond
            own["queries"] += 1
            own["unknown"] += relevance.n_unknown
            own["beside"] += relevance.n_beside


def _named_after(file: Path, suffix: str) -> Path:
    return file.with_suffix(f"{suffix}.parquet") if suffix else file


def check_target(file: Path) -> None:
    """Refuse a name of another format, and what a rename would destroy.

    Raises
    ------
    ValueError
        Where the name does not end in `.parquet`.
    RuntimeError
        Where something that is no regular file has the name of one of the files.
    """
    if file.suffix == RECORDS_SUFFIX:
        _check_replaceable(file)
        return
    if file.suffix != SUFFIX:
        raise ValueError(
            f"an export is Parquet, and its name must end in {SUFFIX}, or in "
            f"{RECORDS_SUFFIX} for `train --statistics`; got {str(file)!r}: name it "
            f"{file.with_suffix(SUFFIX).name!r}"
        )
    for suffix in schemas():
        _check_replaceable(_named_after(file, suffix))


def _check_replaceable(path: Path) -> None:
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise RuntimeError(
            f"{path} must be a regular file or not be there, as an export replaces "
            "it; it is a folder, a link or a device: name another file"
        )
