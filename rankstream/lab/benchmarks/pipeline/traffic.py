"""What a broker has written, by topic: read from its files, so that nothing is asked.

A segment is a row of batches, each with its length and its number of records in its
head. What is appended is read soon, as the broker compacts older segments.
"""

import contextlib
import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEAD = struct.Struct(">qiiBIhiqqqhii")
"""Of a batch: offset, length behind that, epoch, magic, checksum, attributes, last
offset, two times, producer's id, epoch and sequence, number of records."""

_BEFORE_LENGTH = 12
"""Bytes of the offset and the length, which the length does not count."""

_CONTROL = 1 << 5
"""Attribute of a batch that is the marker of a transaction."""


class Written(NamedTuple):
    """Records, the batches that they came in, markers of transactions; bytes of all."""

    records: int = 0
    batches: int = 0
    markers: int = 0
    n_bytes: int = 0

    def plus(self, *more: int) -> "Written":
        """Both together."""
        return Written(*(a + b for a, b in zip(self, more, strict=True)))


class Traffic:
    """What is appended from now on.

    Parameters
    ----------
    data
        The folder of the broker's data.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._at: dict[Path, tuple[str, int]] = {}
        self._written: defaultdict[str, Written] = defaultdict(Written)
        self.sample()
        self._written.clear()

    def sample(self) -> dict[str, Written]:
        """Read on; what each topic has got since the start, by its full name."""
        for folder in self._data.glob("*-*/"):
            topic, _, partition = folder.name.rpartition("-")
            if partition.isdigit():
                for batch in self._appended(folder):
                    self._written[topic] = self._written[topic].plus(*batch)
        return dict(self._written)

    def _appended(self, folder: Path) -> Iterator[Written]:
        known, at = self._at.get(folder, ("", 0))
        # A segment is named after its first offset, in digits of one width.
        for segment in sorted(folder.glob("*.log")):
            if segment.name < known:
                continue
            # One that is gone by now has been compacted, or its topic deleted.
            with contextlib.suppress(FileNotFoundError), segment.open("rb") as file:
                file.seek(at if segment.name == known else 0)
                yield from _batches(file)
                self._at[folder] = segment.name, file.tell()


def _batches(file: BinaryIO) -> Iterator[Written]:
    """What is whole, from where the file stands; it stands behind that then."""
    size = os.fstat(file.fileno()).st_size
    start = file.tell()
    while start + _HEAD.size <= size:
        _, length, _, _, _, attributes, *_, n = _HEAD.unpack(file.read(_HEAD.size))
        length += _BEFORE_LENGTH
        if start + length > size:
            break
        start += length
        file.seek(start)
        is_marker = bool(attributes & _CONTROL)
        yield Written(0 if is_marker else n, 1, n if is_marker else 0, length)
    file.seek(start)
