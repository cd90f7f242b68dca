"""Batches as aiokafka reads them, with two differences: names of headers, and sums.

Brokers do not check names, and aiokafka's reader fails on one that is not UTF-8: again
after every restart, so that one record would block a partition for ever. Its batch is
read once more, with the bytes that are not UTF-8 escaped. Sums are compared by an
instruction of the processor; aiokafka's tables take a dozen times as long.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from crc32c import crc32c

_length_of = struct.Struct(">8xi")
_sum_of = struct.Struct(">16xbI")


class _Name(bytes):
    def decode(self, *_: str) -> str:
        return super().decode("utf-8", "backslashreplace")


class _Names(bytearray):
    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Name(found) if isinstance(place, slice) else found


class Batch:
    """A batch as aiokafka reads it.

    Parameters
    ----------
    read
        What aiokafka made of it.
    data
        Its bytes.
    """

    def __init__(self, read: Any, data: memoryview) -> None:
        self._read = read
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    def __next__(self) -> Any:
        return next(self._read)

    def validate_crc(self) -> bool:
        """Whether its bytes are those that were sent."""
        magic, expected = _sum_of.unpack_from(self._data)
        if magic < 2:  # each record has a sum of its own
            return bool(self._read.validate_crc())
        return bool(crc32c(self._data[_sum_of.size :]) == expected)

    def __iter__(self) -> Iterator[Any]:
        try:
            records = list(self._read)
        except (UnicodeDecodeError, CorruptRecordException):
            records = list(_told(self._data))
        return iter(records)


class Records:
    """What a broker answers for a partition: takes the place of aiokafka's class."""

    def __init__(self, data: bytes) -> None:
        self._read: Any = MemoryRecords(data)
        self._data = memoryview(data)
        self._start = 0

    def has_next(self) -> bool:
        """Whether there is another whole batch."""
        return bool(self._read.has_next())

    def size_in_bytes(self) -> int:
        """Bytes of all batches."""
        return int(self._read.size_in_bytes())

    def next_batch(self) -> Any:
        """The next whole batch."""
        read = self._read.next_batch()
        if read is None:
            return None
        start = self._start
        (length,) = _length_of.unpack_from(self._data, start)
        self._start += _length_of.size + length
        if read.is_control_batch:  # the broker's own; there are many
            return read
        return Batch(read, self._data[start : self._start])


def _told(data: memoryview) -> Iterable[Any]:
    batch: Any = _DefaultRecordBatchPy(data)
    batch._maybe_uncompress()  # noqa: SLF001
    batch._buffer = _Names(batch._buffer)  # noqa: SLF001
    told: Iterable[Any] = batch
    return told


def tell_all_names() -> None:
    """Have consumers of this process read every record."""
    fetcher.MemoryRecords = Records
