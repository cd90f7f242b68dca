"""Features of items in files: CSV, Parquet, JSON lines or LETOR, a row an item.

A row names an item, and a query where features are of both. Features have names: those
of columns, of members of a JSON object, or `f1`, `f2` ... of a LETOR file.
"""

import io
import itertools
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from models.arrays import Singles
from producers.formats.letor import read_letor
from producers.formats.source_file import (
    UNPACKING_ERRORS,
    FileUnreadable,
    lines_of,
    opened,
)
from producers.formats.tables import csv_rows, parted_by

QUERY = ("query", "query_id")
ITEM = ("item", "item_id")
"""Names that these columns have, unless others are named; the first that is there."""

OTHERS = frozenset(
    {
        *QUERY, *ITEM, "impression", "impression_id", "at", "at_ms", "position", "rank",
        "clicked", "clicked_at", "label", "user", "session", "score", "policy",
    }
)  # fmt: skip
"""Columns that are no features unless they are named."""


LARGEST = float(np.finfo(np.float32).max)

ROWS_AT_ONCE = 8_192


@dataclass(frozen=True)
class FeatureRows:
    """Rows of one or more files, one behind the other.

    Parameters
    ----------
    names : [n_features]
    queries : [n_rows]
        None where rows are of items alone.
    items : [n_rows]
    features : [n_rows, n_features]
    left_out
        Columns that are no features, and how many rows of each hold no number.
    """

    names: list[str]
    queries: list[str] | None
    items: list[str]
    features: Singles
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass
class _Taken:
    """What was read so far."""

    names: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    values: "array[float]" = field(default_factory=lambda: array("f"))
    left_out: dict[str, int] = field(default_factory=dict)
    takes_missing: bool = False

    def number(self, value: Any) -> float:
        """A feature; NaN where it may be missing, and is."""
        return np.nan if self.takes_missing and value in (None, "") else float(value)

    def note_gaps(self, row: Mapping[str, Any]) -> None:
        """Count what is no number in columns that are no features."""
        for name in self.left_out:
            self.left_out[name] += not _is_number(row.get(name))


def read_feature_rows(
    paths: Sequence[Path],
    *,
    columns: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    queries: Sequence[str] = QUERY,
    takes_missing: bool = False,
) -> FeatureRows:
    """The rows of files, in their order.

    Parameters
    ----------
    columns
        The columns of the roles `query`, `item` and `features`, where they have other
        names. `features` are columns joined by `+`; one that ends with `*` stands for
        all that begin so.
    names
        Names of features that are wanted, in their order; without them those that
        `columns` names, else all columns of numbers.
    queries
        Names that the column of queries may have, where none is named.
    takes_missing
        Whether an empty cell is NaN, a feature that is missing; else it is refused.

    Raises
    ------
    FileUnreadable
        With file, line and reason: a column that is missing, a value that is no finite
        number, a file without rows, files with other features than the first.
    """
    taken = _Taken(takes_missing=takes_missing)
    has_queries: bool | None = None
    for path in paths:
        before = len(taken.items)
        found = _read(path, columns or {}, names or taken.names, queries, taken)
        if len(taken.items) == before:
            raise FileUnreadable(path, 0, "a file must hold rows of items; got none")
        if has_queries not in (None, found):
            raise FileUnreadable(
                path,
                1,
                "files of features must all name queries, or none of them; this one "
                f"{'does' if found else 'does not'}: give those of one kind",
            )
        has_queries = found
    features = np.frombuffer(taken.values, np.float32)
    return FeatureRows(
        taken.names,
        taken.queries if has_queries else None,
        taken.items,
        features.reshape(len(taken.items), len(taken.names)),
        taken.left_out,
    )


def chosen_columns(told: str, there: Sequence[str], path: Path) -> list[str]:
    """The columns that `--columns features=...` names, in the order of the file.

    Raises
    ------
    FileUnreadable
        Where there is none of a name.
    """
    found: set[str] = set()
    for word in filter(None, told.split("+")):
        matching = (
            {each for each in there if each.startswith(word[:-1])}
            if word.endswith("*")
            else {word} & {*there}
        )
        if not matching:
            raise FileUnreadable(
                path,
                1,
                f"columns of features must be there; no {word!r} among "
                f"{', '.join(there)!r:.300}: name them with --columns features=A+B, or "
                "features=PREFIX*",
            )
        found |= matching
    return [each for each in there if each in found]


def _read(
    path: Path,
    columns: Mapping[str, str],
    names: Sequence[str],
    queries: Sequence[str],
    taken: _Taken,
) -> bool:
    """Take the rows of a file; whether they name queries."""
    with opened(path) as file:
        start = file.read(1 << 16)
    if start.startswith(b"PAR1"):
        return _read_table(path, _parquet_rows(path), columns, names, queries, taken)
    if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
        return _read_table(path, _json_rows(path), columns, names, queries, taken)
    if b"qid:" in start.split(b"\n", 1)[0]:
        return _read_letor(path, names, taken)
    return _read_table(path, _csv_rows(path), columns, names, queries, taken)


def _read_table(
    path: Path,
    rows: Iterator[tuple[int, Mapping[str, Any]]],
    columns: Mapping[str, str],
    names: Sequence[str],
    queries: Sequence[str],
    taken: _Taken,
) -> bool:
    """Rows by the names of their columns; the first one decides which are there."""
    first = next(rows, None)
    if first is None:
        return False
    there = [*first[1]]
    item = _column("item", ITEM, columns, there)
    if item is None:
        known = " or ".join(repr(x) for x in [columns.get("item"), *ITEM] if x)
        raise FileUnreadable(
            path,
            1,
            f"a column item must be there; no {known} among "
            f"{', '.join(there)!r:.300}: rename it, or name it with --columns "
            "item=COLUMN",
        )
    query = _column("query", queries, columns, there)
    if not names:
        names, others = _features_in(first[1], columns, {item, query}, path)
        taken.left_out = dict.fromkeys(others, 0)
    elif missing := [each for each in names if each not in there]:
        raise FileUnreadable(
            path,
            1,
            f"features must be all that are wanted; no column {missing[0]!r} among "
            f"{', '.join(there)!r:.300}: rename the column, or add it",
        )
    taken.names = [*names]
    for number, row in itertools.chain([first], rows):
        if query is not None:
            taken.queries.append(_text(row.get(query), query, path, number))
        taken.items.append(_text(row.get(item), item, path, number))
        taken.note_gaps(row)
        try:
            taken.values.extend([taken.number(row.get(name)) for name in names])
        except (TypeError, ValueError, OverflowError):
            _refuse_number(row, taken, path, number)
    _check_finite(taken, len(names), path)
    return query is not None


def _column(
    role: str, usual: Sequence[str], columns: Mapping[str, str], there: Sequence[str]
) -> str | None:
    """The column that is named for a role, else one of a usual name."""
    known = (columns.get(role), *usual)
    return next((each for each in known if each and each in there), None)


def _features_in(
    row: Mapping[str, Any],
    columns: Mapping[str, str],
    keys: set[str | None],
    path: Path,
) -> tuple[list[str], tuple[str, ...]]:
    """Names of features by the first row, and of columns that are none."""
    there = [each for each in row if each not in keys]
    if "features" in columns:
        return chosen_columns(columns["features"], there, path), ()
    named = {*columns.values()} | OTHERS
    asked = [each for each in there if each not in named]
    found = [each for each in asked if _is_number(row[each])]
    if not found:
        raise FileUnreadable(
            path,
            1,
            "a file must have columns of numbers, which are the features; of "
            f"{', '.join(row)!r:.300} none is one: name them with --columns "
            "features=A+B, or features=PREFIX*",
        )
    return found, tuple(each for each in asked if each not in found)


def _is_number(value: Any, number: Callable[[Any], float] = float) -> bool:
    try:
        number(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _text(value: Any, name: str, path: Path, number: int) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    found = str(value) if is_whole or isinstance(value, str) else ""
    if not found:
        raise FileUnreadable(
            path, number, f"{name} must be a name or a whole number; got {value!r:.60}"
        )
    return found


def _refuse_number(
    row: Mapping[str, Any], taken: _Taken, path: Path, number: int
) -> NoReturn:
    is_wrong = (not _is_number(row.get(each), taken.number) for each in taken.names)
    wrong = next(itertools.compress(taken.names, is_wrong))
    filled = "leave it empty" if taken.takes_missing else "fill it, with 0 say"
    raise FileUnreadable(
        path,
        number,
        f"a feature must be a number in each row; {wrong!r} is {row.get(wrong)!r:.60}: "
        f"{filled}, or take other columns with --columns features=A+B",
    )


def _check_finite(taken: _Taken, width: int, path: Path) -> None:
    values = np.frombuffer(taken.values, np.float32)
    is_known = np.isfinite(values) | (taken.takes_missing & np.isnan(values))
    if not is_known.all():
        place = int(np.flatnonzero(~is_known)[0])
        raise FileUnreadable(
            path,
            0,
            f"features must be finite, at most {LARGEST:.3g}; "
            f"{taken.names[place % width]!r} of item "
            f"{taken.items[place // width]!r:.60} is {values[place]}: correct it",
        )


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with opened(path) as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
            rows = csv_rows(path, lines, parted_by, "correct it")
            _, names = next(rows)
            again = next((each for each in names if names.count(each) > 1), None)
            if again is not None:
                raise FileUnreadable(
                    path, 1, f"columns must differ in names; {again!r:.60} is there "
                    "again: rename one"
                )  # fmt: skip
            for number, cells in rows:
                yield number, dict(zip(names, cells, strict=True))
    except UNPACKING_ERRORS as error:  # it is opened
        raise FileUnreadable(
            path, 1, f"a file must be readable to its end; {error}"
        ) from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa  # noqa: PLC0415  for such files alone
    import pyarrow.parquet as pq  # noqa: PLC0415

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, FileUnreadable):
            raise
        raise FileUnreadable(
            path, number, f"a file must be Parquet; {error}"
        ) from error


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Objects of a line each; an object or array `features` becomes members."""
    for number, line in lines_of(path):
        try:
            row = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, RecursionError) as error:
            raise FileUnreadable(
                path, number, f"a line must be JSON; {error}"
            ) from error
        if not isinstance(row, dict):
            raise FileUnreadable(
                path,
                number,
                'a line must be an object such as {"item": "a", "price": 3}; got '
                f"{line[:60].decode(errors='replace')!r}",
            )
        inside = row.pop("features", None)
        if isinstance(inside, list):
            inside = {f"f{n}": value for n, value in enumerate(inside, 1)}
        yield number, {**row, **(inside if isinstance(inside, dict) else {})}


def _read_letor(path: Path, names: Sequence[str], taken: _Taken) -> bool:
    data = read_letor(path, n_features=len(names))
    width = data.features.shape[1]
    own = [f"f{n}" for n in range(1, width + 1)]
    if names and len(names) != width:
        raise FileUnreadable(
            path,
            0,
            f"features must be the {len(names)} that are wanted; the file has {width}: "
            "give the file of the same features",
        )
    taken.names = [*(names or own)]
    sizes = np.diff(data.offsets).tolist()
    for query, size in zip(data.query_ids, sizes, strict=True):
        taken.queries += [query] * size
        if not data.document_ids:
            taken.items += [str(n) for n in range(1, size + 1)]
    taken.items += data.document_ids
    taken.values.frombytes(np.ascontiguousarray(data.features, np.float32).tobytes())
    return True
