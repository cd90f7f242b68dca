"""Rows in the order of a key, sorted on disk where memory does not hold them."""

import contextlib
import heapq
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

MEMORY_BYTES = 64 << 20
"""Rows are held in memory up to about this."""

OVERHEAD_BYTES = 250
"""What a row takes beyond its own bytes."""

BUFFER_BYTES = 1 << 18

_head = struct.Struct("<IQI")

SortedRow = tuple[bytes, int, bytes]
"""Key, number, content."""


class SortedRows:
    """Takes rows in any order, and gives them by key and number.

    Parameters
    ----------
    memory_bytes
        Beyond this, sorted runs go to files in `scratch`, which are removed on exit.
    scratch
        Where those files lie; the system's place for temporary files if not given.
    """

    def __init__(
        self, *, memory_bytes: int = MEMORY_BYTES, scratch: Path | None = None
    ) -> None:
        self._memory_bytes = memory_bytes
        self._scratch = scratch
        self._stack = contextlib.ExitStack()
        self._folder: Path | None = None
        self._runs: list[Path] = []
        self._held: list[SortedRow] = []
        self._n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held = []
        self._stack.close()

    @property
    def n_runs(self) -> int:
        """How many files they lie in beside those in memory."""
        return len(self._runs)

    def add(self, key: bytes, number: int, content: bytes) -> None:
        """Take a row; `number` tells rows of a key apart and orders them."""
        self._held.append((key, number, content))
        self._n_bytes += len(key) + len(content) + OVERHEAD_BYTES
        if self._n_bytes >= self._memory_bytes:
            self._spill()

    def __iter__(self) -> Iterator[SortedRow]:
        self._held.sort()
        return heapq.merge(*map(_stored, self._runs), self._held)

    def _spill(self) -> None:
        if self._folder is None:
            folder = tempfile.TemporaryDirectory(
                prefix="rankstream-rows-", dir=self._scratch
            )
            self._folder = Path(self._stack.enter_context(folder))
        self._held.sort()
        run = self._folder / f"{len(self._runs):06d}"
        with run.open("wb", buffering=BUFFER_BYTES) as file:
            for key, number, content in self._held:
                file.write(_head.pack(len(key), number, len(content)))
                file.write(key)
                file.write(content)
        self._runs.append(run)
        self._held, self._n_bytes = [], 0


def _stored(path: Path) -> Iterator[SortedRow]:
    with path.open("rb", buffering=BUFFER_BYTES) as file:
        while head := file.read(_head.size):
            n_key, number, n_content = _head.unpack(head)
            yield file.read(n_key), number, file.read(n_content)
