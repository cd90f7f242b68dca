"""DataFrames of any library as files of events, so that they are read as all files are.

A frame is anything with Arrow's PyCapsule interface. It goes to the disk batch by batch
and never lies in memory a second time.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from producers.formats.parquet import FIELDS, TABLE_NAMES
from producers.formats.tables import columns_by_role
from rankstream.adapters.file_formats import LISTS, roles_of
from rankstream.operations.recorded_log import Line
from rankstream.wire.nearest_name import nearest

ROWS_AT_ONCE = 1 << 16
"""Of a batch that is written, so that as few are read at a time."""

IDS = frozenset({"impression", "item", "query", "user", "session", "event"})
"""Roles whose columns hold names: whole numbers are, others are not."""

INDEX = "__index_level_"
"""Columns that begin so are the index of a DataFrame of pandas that has no name."""

LIKELY = ("position", "clicked", "query")
"""Roles that a table may lack, so that nobody refuses one of another name."""

ZONELESS = "times of {} have no zone: they are taken as UTC"


class Frame(NamedTuple):
    """A frame that was given, and what it is called.

    Parameters
    ----------
    value
        With `__arrow_c_stream__`.
    name
        As somebody who made it knows it.
    """

    value: Any
    name: str

    def write(self, path: Path, line: Line) -> pa.Schema:
        """Write it as Parquet; returns its columns and types.

        Raises
        ------
        ValueError
            Where it is of values that Arrow has no type for.
        """
        try:
            with pa.RecordBatchReader.from_stream(self.value) as reader:
                n_rows = 0
                schema = _without_index(reader.schema)
                with pq.ParquetWriter(path, schema) as writer:
                    for batch in _pieces(reader):
                        writer.write_batch(batch.select(schema.names))
                        n_rows += len(batch)
                        line.show(n_rows)
                return schema
        except pa.ArrowException as error:
            if "non-struct" in str(error):
                kind = type(self.value).__name__
                raise ValueError(
                    f"a table must be a DataFrame; {self.name} is a {kind}: give the "
                    "columns of one, as df, or series.to_frame()"
                ) from error
            raise ValueError(
                f"columns of {self.name} must each hold one kind of values; {error}: "
                "convert the column that the message names, such as with "
                'df["item"].astype(str)'
            ) from error


def is_frame(value: object) -> bool:
    """Whether it is a table of some library."""
    return hasattr(value, "__arrow_c_stream__")


def columns_of(
    frame: Frame,
    schema: pa.Schema,
    asked: Mapping[str, str],
    *,
    table: str = LISTS,
    joins_sessions: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """The column of each role of a frame, and what must be known of them.

    Of a frame of events as they are sent, with `at_ms` and `shown`, no column.

    Parameters
    ----------
    asked
        Columns by role, where they have other names.

    Raises
    ------
    FileUnreadable
        Where a column is missing; it names the nearest.
    ValueError
        Where ids are fractions.
    """
    if _is_of_events(schema.names, asked, table):
        return {}, []
    own = {each.name for each in roles_of(table)}
    named = {role: name for role, name in asked.items() if role in own}
    found = columns_by_role(
        schema.names, named, Path(frame.name), table, joins_sessions=joins_sessions
    )
    for role in sorted(IDS & found.keys()):
        _check_id(frame, schema.field(found[role]), role)
    times = [found[role] for role in ("at", "clicked_at") if role in found]
    notes = [*_likely(schema.names, found)] if table == LISTS else []
    zoneless = [name for name in times if _is_zoneless(schema.field(name).type)]
    if zoneless:
        notes.append(ZONELESS.format(" and ".join(zoneless)))
    return found, notes


def _likely(names: Sequence[str], found: Mapping[str, str]) -> Iterator[str]:
    """Columns that nothing is read from, and that are likely to be misspelt."""
    free = [each for each in names if each not in found.values()]
    for role in LIKELY:
        if role not in found and (near := nearest(role, free)):
            yield (
                f"column {near!r:.60} is not read; if it is {role}, say "
                f'columns={{"{role}": "{near:.60}"}}'
            )


def _without_index(schema: pa.Schema) -> pa.Schema:
    fields = [each for each in schema if not each.name.startswith(INDEX)]
    if len(fields) == len(schema):
        return schema
    return pa.schema(fields, schema.metadata)


def _pieces(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for start in range(0, len(batch), ROWS_AT_ONCE):
            yield batch.slice(start, ROWS_AT_ONCE)


def _is_of_events(names: list[str], asked: Mapping[str, str], table: str) -> bool:
    is_plain = not asked and TABLE_NAMES.isdisjoint(names)
    has_all = "at_ms" in names and {"shown", "kind"} & {*names}
    return (
        table == LISTS and is_plain and bool(has_all) and FIELDS | {"kind"} >= {*names}
    )


def _check_id(frame: Frame, field: pa.Field, role: str) -> None:
    kind = field.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        raise ValueError(
            f"ids must be text or whole numbers; column {field.name!r:.60} of "
            f"{frame.name}, which is {role}, holds {kind}, as pandas makes of whole "
            f"numbers where one is missing: leave those rows out, then "
            f'df["{field.name}"] = df["{field.name}"].astype("int64")'
        )


def _is_zoneless(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None
