"""Rows of a list brought together, wherever they lie in their table."""

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from producers.external_sort import SortedRuns
from producers.formats.source_file import FileUnreadable

Row = Mapping[str, Any]
Numbered = tuple[int, Row]

MOST_ROWS = 10_000
"""Of a list: as many documents as a list may have by default."""

MEMORY_BYTES = 64 << 20
"""Rows that are sorted are held in memory up to about this."""

OVERHEAD_BYTES = 250
"""What a row takes beyond its own bytes."""

SortedRow = tuple[bytes, int, bytes]
"""Key, number, content; the number tells rows of a key apart and orders them."""

_EPOCH_MS, _NUMBER_BYTES = 1, 16

_head = struct.Struct("<IQI")

OF_SESSION = ("session", "query", "at")
"""What stands for the id of a list that has none."""


class EpochMs(int):
    """A time whose unit is known, of any year."""


class SortedRows(SortedRuns[SortedRow]):
    """Takes rows in any order, and gives them by key and number."""

    def add(self, key: bytes, number: int, content: bytes) -> None:
        """Take a row."""
        self.take((key, number, content), len(key) + len(content) + OVERHEAD_BYTES)

    def __iter__(self) -> Iterator[SortedRow]:
        return self.entries()


class Tables(NamedTuple):
    """How tables are read.

    Parameters
    ----------
    joins_sessions
        Whether session, query and time stand for the id of a list.
    memory_bytes, scratch
        What sorting may take; see `SortedRuns`.
    """

    joins_sessions: bool = False
    memory_bytes: int = MEMORY_BYTES
    scratch: Path | None = None

    def sorted_rows(self) -> SortedRows:
        """Room for rows."""
        return SortedRows(
            _write, _read, memory_bytes=self.memory_bytes, scratch=self.scratch
        )


PLAIN = Tables()


class ReadRows(NamedTuple):
    """A table whose rows can be read again.

    Parameters
    ----------
    read
        Gives its rows with their numbers, all columns of them or some roles only.
    path
        Where they are from.
    """

    read: Callable[[tuple[str, ...]], Iterator[Numbered]]
    path: Path


def rows_together(table: ReadRows, tables: Tables = PLAIN) -> Iterator[list[Numbered]]:
    """The rows of each list, in their order; lists in that of their first rows.

    Where rows of a list follow one another, they are given as they come. Where they
    do not, all are sorted first, on disk beyond the memory that is allowed.

    Raises
    ------
    FileUnreadable
        Where a list has more than `MOST_ROWS` rows.
    """
    roles = ("impression", *(OF_SESSION if tables.joins_sessions else ()))
    # What can be read but once, as a pipe, is sorted at once.
    if table.path.is_file() and _follow(table.read(roles)):
        for _, group in _runs(table.read(())):
            yield _bounded(group, table.path)
        return
    yield from _sorted(table, tables)


def packed(row: Any) -> bytes:
    """A row for `SortedRows`."""
    return msgspec.msgpack.encode(row, enc_hook=_hooked)


def unpacked(content: bytes) -> Any:
    """A row that was `packed`."""
    return msgspec.msgpack.decode(content, ext_hook=_unhooked)


def _follow(rows: Iterator[Numbered]) -> bool:
    # Hashes of texts: those of the numbers -1 and -2 are the same.
    seen: set[int] = set()
    for key, _ in _runs(rows):
        if not _is_name(key):
            continue
        if hash(str(key)) in seen:
            return False
        seen.add(hash(str(key)))
    return True


def _sorted(table: ReadRows, tables: Tables) -> Iterator[list[Numbered]]:
    half = tables._replace(memory_bytes=max(1, tables.memory_bytes // 2))
    with half.sorted_rows() as by_list, half.sorted_rows() as by_place:
        for key, group in _runs(table.read(())):
            first: int | None = None
            for number, row in group:
                first = number if first is None else first
                # What has no name is a list for itself: its refusal says why.
                name = str(key) if _is_name(key) else f"\0{first}"
                by_list.add(name.encode("utf-8", "replace"), number, packed(row))
        lists = itertools.groupby(by_list, lambda each: each[0])
        for _, rows in lists:
            together = _bounded(
                ((number, unpacked(content)) for _, number, content in rows),
                table.path,
            )
            by_place.add(b"", together[0][0], packed(together))
        for _, _, content in by_place:
            yield [(number, row) for number, row in unpacked(content)]


def _runs(rows: Iterator[Numbered]) -> Iterator[tuple[Any, Iterator[Numbered]]]:
    return itertools.groupby(rows, lambda each: _key(each[1]))


def _key(row: Row) -> Any:
    return row["impression"] if "impression" in row else tuple(map(row.get, OF_SESSION))


def _is_name(key: Any) -> bool:
    return isinstance(key, tuple) or (isinstance(key, str | int) and key != "")


def _bounded(group: Iterator[Numbered], path: Path) -> list[Numbered]:
    rows = list(itertools.islice(group, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise FileUnreadable(
            path,
            rows[0][0],
            f"a list must have at most {MOST_ROWS:,} rows; one has more: name the "
            "column that has the id of a list with --columns impression=COLUMN",
        )
    return rows


def _hooked(value: Any) -> Any:
    if isinstance(value, EpochMs):
        return msgspec.msgpack.Ext(
            _EPOCH_MS, int(value).to_bytes(_NUMBER_BYTES, "big", signed=True)
        )
    return str(value)


def _unhooked(code: int, content: memoryview) -> Any:
    return EpochMs(int.from_bytes(content, "big", signed=True)) if code else content


def _write(file: IO[bytes], row: SortedRow) -> None:
    key, number, content = row
    file.write(_head.pack(len(key), number, len(content)))
    file.write(key)
    file.write(content)


def _read(file: IO[bytes]) -> Iterator[SortedRow]:
    while head := file.read(_head.size):
        n_key, number, n_content = _head.unpack(head)
        yield file.read(n_key), number, file.read(n_content)
