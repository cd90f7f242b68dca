"""Events as Parquet: columns are the fields of the events, and `kind`.

`kind` is `query` or `click`; without that column a row with `shown` is a query.
Null means that a field is absent. `at_ms` may be a timestamp, vectors may be lists
of numbers or little-endian float32 bytes, and the fields with a structure
(`experiment`, `rankings`, `attributes`) may be structs, maps or JSON text.
"""

import base64
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from producers.formats.adapted import Adapted
from producers.formats.columns import EPOCH_MS, TableForm, events_of
from producers.formats.jsonl import converted
from producers.formats.rows_together import (
    PLAIN,
    EpochMs,
    Numbered,
    ReadRows,
    Tables,
)
from producers.formats.source_file import FileUnreadable
from rankstream.adapters.adapter import AdapterOptions
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.input_events import LARGEST_TIME, Event
from rankstream.wire.topics import CLICKS, QUERIES

ROWS_AT_ONCE = 8_192

A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

KINDS = {"query": QUERIES, "click": CLICKS, QUERIES: QUERIES, CLICKS: CLICKS}

STRUCTURED = frozenset({"experiment", "rankings", "attributes"})

TABLE_NAMES = frozenset({"impression", "item", "items", "at", "clicked"})
"""Columns that a table of shown items has, and no event."""

FIELDS = frozenset({*QueryEvent.__struct_fields__, *ClickEvent.__struct_fields__})

_encode = msgspec.json.Encoder(enc_hook=int).encode


def read_parquet(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
    epoch_ms: int = EPOCH_MS,
    tables: Tables = PLAIN,
) -> Iterator[Event]:
    """The events of a file, in its order; rows count as lines in errors.

    Parameters
    ----------
    columns
        With these it is a table of shown items, as `read_csv` reads it; so is a file
        with columns that each table needs, which are no fields of events.

    Raises
    ------
    FileUnreadable
        Where the file is no Parquet, has columns that no event has, or a row is no
        event.
    """
    options = adapter_options or AdapterOptions()
    with _opened(path) as file:
        names = set(file.schema_arrow.names)
        if is_table(names, columns or {}, tables.joins_sessions):
            form = TableForm(columns or {}, joins_sessions=tables.joins_sessions)
            yield from events_of(
                parquet_table(path, form),
                options=options,
                adapted=adapted or Adapted(),
                epoch_ms=epoch_ms,
                tables=tables,
            )
            return
        if unknown := names - FIELDS - {"kind"}:
            named = ", ".join(sorted(unknown))
            raise FileUnreadable(
                path,
                0,
                f"columns must be event fields; got {named}: rename them, or say with "
                "--columns which are those of a table of shown items",
            )
        if "at_ms" not in names:
            raise FileUnreadable(
                path,
                0,
                "a column at_ms must be there: name that of the time, and the "
                "others, with --columns",
            )
        number = 0
        for rows in _batches(file, path):
            for row in rows:
                number += 1
                is_ms = isinstance(row.get("at_ms"), EpochMs)
                event = _event(row, path, number)
                if options.time_unit and not is_ms:
                    event = converted(event, options.time_unit, adapted or Adapted())
                yield event


def is_table(
    names: Collection[str], columns: Mapping[str, str], joins_sessions: bool
) -> bool:
    """Whether columns of these names are those of a table, and not of events."""
    return bool(columns) or joins_sessions or not TABLE_NAMES.isdisjoint(names)


def parquet_names(path: Path) -> list[str]:
    """The names of the columns of a file.

    Raises
    ------
    FileUnreadable
    """
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def parquet_table(path: Path, form: TableForm) -> ReadRows:
    """The rows of a file, named by roles."""

    def read(roles: tuple[str, ...]) -> Iterator[Numbered]:
        with _opened(path) as file:
            names = form.by_role(file.schema_arrow.names, path)
            chosen = {x: name for x, name in names.items() if not roles or x in roles}
            number = 0
            for rows in _batches(file, path, sorted({*chosen.values()})):
                for row in rows:
                    number += 1
                    yield number, {x: row.get(name) for x, name in chosen.items()}

    return ReadRows(read, path)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise FileUnreadable(
            path, 0, f"a file must be Parquet; {error}: correct --format"
        ) from error


def _batches(
    file: pq.ParquetFile, path: Path, wanted: list[str] | None = None
) -> Iterator[list[dict[str, Any]]]:
    batches = file.iter_batches(ROWS_AT_ONCE, columns=wanted)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as error:
            reason = f"a file must be readable to its end; {error}"
            raise FileUnreadable(path, 0, reason) from error
        if batch is None:
            return
        try:
            columns = [_values(column) for column in batch.columns]
        except (ValueError, OverflowError, pa.ArrowException) as error:
            reason = f"values of a column must be what its type says; {error}"
            raise FileUnreadable(path, 0, reason) from error
        names = batch.schema.names
        yield [
            {
                name: value
                for name, value in zip(names, row, strict=True)
                if value is not None
            }
            for row in zip(*columns, strict=True)
        ]


def _values(column: pa.Array) -> list[Any]:
    """As Python has them. A time without a zone is UTC: its type says no other."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    # Years beyond 9999 are for whoever reads them to refuse.
    per_second = A_SECOND[column.type.unit]
    times = column.cast(pa.int64()).to_pylist()
    return [
        None if time is None else EpochMs(time * 1_000 // per_second) for time in times
    ]


def _event(row: dict[str, Any], path: Path, number: int) -> Event:
    named = row.pop("kind", "query" if "shown" in row else "click")
    kind, at_ms = KINDS.get(named), row.get("at_ms")
    if kind is None:
        raise FileUnreadable(
            path,
            number,
            f"kind must be query or click; got {named!r}: correct the "
            "column, or leave it out",
        )
    if not isinstance(at_ms, int) or abs(at_ms) > LARGEST_TIME:
        raise FileUnreadable(
            path, number, f"at_ms must be a whole number of 64 bits; got {at_ms!r:.60}"
        )
    for name in row.keys() & STRUCTURED:
        row[name] = _structure(row[name], name, path, number)
    return Event(at_ms, kind, _encode(row) if kind == CLICKS else _query(row))


def _query(row: dict[str, Any]) -> bytes:
    for name in ("scores", "exposures", "features"):
        if isinstance(row.get(name), bytes):
            row[name] = base64.b64encode(row[name]).decode()
    return _encode(row)


def _structure(value: Any, name: str, path: Path, number: int) -> Any:
    if isinstance(value, list):
        return dict(value)
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise FileUnreadable(
                path, number, f"{name} must be JSON; {error}"
            ) from error
    return value
