"""Records by a name, in memory while they are few and in a file beyond that.

What stays in memory is where each lies, 20 bytes a record, and each name once.
"""

import os
import tempfile
from array import array
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MEMORY_BYTES = 64 << 20
"""Records of so many bytes are held in memory."""

WRITE_BYTES = 1 << 20

_KEY_BYTES = 4


class NamelessFile:
    """Bytes in the folder for temporary files (`TMPDIR`), which go with the object.

    Parameters
    ----------
    what
        Is done with them, as errors say it.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._file: IO[bytes] | None = None
        self._descriptor = -1
        self.size = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, data: bytes | bytearray) -> None:
        """Write behind what is there.

        Raises
        ------
        RuntimeError
            Where the folder is full.
        """
        view = memoryview(data)
        self.size += len(view)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115  closed above
                    prefix="rankstream-", buffering=0
                )
                self._descriptor = self._file.fileno()
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise RuntimeError(
                f"{tempfile.gettempdir()} must have room for what is {self._what}, "
                f"{self.size:,} bytes so far; {os.strerror(error.errno or 0)}: name "
                "another folder with TMPDIR"
            ) from error

    def fill(self, start: int, into: NDArray[Any]) -> None:
        """Read from a place on, as many bytes as `into` [n, ..] takes."""
        view = into.reshape(-1).view(np.uint8).data
        while view:
            n_read = os.preadv(self._descriptor, [view], start)
            if not n_read:
                raise RuntimeError(
                    f"a file of what is {self._what} must be whole; it was cut off: "
                    "begin again"
                )
            view, start = view[n_read:], start + n_read

    def read(self, place: "Span") -> bytes:
        """The bytes at a place."""
        return os.pread(self._descriptor, place.length, place.start)


class Span(NamedTuple):
    """Where a record lies, and how long it is."""

    start: int
    length: int


class ValueSpool:
    """Records in the order in which they came, found by name.

    Parameters
    ----------
    memory_bytes
        Beyond it records go to a file in the folder for temporary files (`TMPDIR`).
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._numbers: dict[str, int] = {}
        self._owners = array("q")
        self._starts = array("q")
        self._lengths = array("I")
        self._size = 0
        self._tail = bytearray()
        self._file = NamelessFile("read")
        self._order: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, name: str, key: bytes, value: bytes) -> None:
        """Keep a record; an empty value is a tombstone.

        Raises
        ------
        RuntimeError
            Where the folder for temporary files is full.
        """
        self._owners.append(self._numbers.setdefault(name, len(self._numbers)))
        self._starts.append(self._size)
        length = _KEY_BYTES + len(key) + len(value)
        self._lengths.append(length)
        self._size += length
        self._tail += len(key).to_bytes(_KEY_BYTES, "little")
        self._tail += key
        self._tail += value
        self._order = None
        most = WRITE_BYTES if self._file.size else self._memory_bytes
        if len(self._tail) > most:
            self._file.append(self._tail)
            self._tail = bytearray()

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._numbers)

    def places(self, name: str) -> list[Span]:
        """Where the records of a name lie, in the order in which they came."""
        number = self._numbers.get(name)
        if number is None:
            return []
        if self._order is None:
            owners = np.frombuffer(self._owners, np.int64)
            order = np.argsort(owners, kind="stable")
            starts = np.searchsorted(owners[order], np.arange(len(self._numbers) + 1))
            self._order = order, starts
        order, starts = self._order
        rows = order[starts[number] : starts[number + 1]].tolist()
        return [Span(self._starts[row], self._lengths[row]) for row in rows]

    def record(self, place: Span) -> tuple[bytes, bytes]:
        """Key and value at a place."""
        start = place.start - self._file.size
        if start < 0:
            record = self._file.read(place)
        else:
            record = bytes(self._tail[start : start + place.length])
        end = _KEY_BYTES + int.from_bytes(record[:_KEY_BYTES], "little")
        return record[_KEY_BYTES:end], record[end:]
