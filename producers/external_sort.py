"""Sorting on disk what memory does not hold, and events in the order of their time."""

import contextlib
import heapq
import itertools
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Generic, Self, TypeVar

from rankstream.wire.input_events import MAX_WORDS_BYTES, Event
from rankstream.wire.topics import CLICKS, QUERIES

MEMORY_BYTES = 256 * 1024 * 1024
"""Events are held in memory up to about this."""

OVERHEAD_BYTES = 200
"""What an event takes beyond its own bytes."""

BUFFER_BYTES = 1 << 18

_head = struct.Struct("<qQBIH")
_KINDS = (QUERIES, CLICKS)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}

_Stored = tuple[int, int, str, bytes, str]

Entry = TypeVar("Entry", bound=tuple[Any, ...])


class SortedRuns(Generic[Entry]):
    """Takes entries in any order, and gives them in theirs, as often as one likes.

    Parameters
    ----------
    write, read
        Put an entry into a file, and take all out of it.
    memory_bytes
        Beyond this, sorted runs go to files in `scratch`, which are removed on exit.
    scratch
        Where those files lie; the system's place for temporary files if not given.
    is_sorted
        Whether to sort at all; else they keep the order in which they came.
    """

    def __init__(
        self,
        write: Callable[[IO[bytes], Entry], None],
        read: Callable[[IO[bytes]], Iterator[Entry]],
        *,
        memory_bytes: int,
        scratch: Path | None = None,
        is_sorted: bool = True,
    ) -> None:
        self._write, self._read = write, read
        self._memory_bytes = memory_bytes
        self._scratch = scratch
        self._is_sorted = is_sorted
        self._stack = contextlib.ExitStack()
        self._folder: Path | None = None
        self._runs: list[Path] = []
        self._held: list[Entry] = []
        self._n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what lies on disk."""
        self._held = []
        self._stack.close()

    @property
    def n_runs(self) -> int:
        """How many files they lie in beside those in memory."""
        return len(self._runs)

    def take(self, entry: Entry, n_bytes: int) -> None:
        """Take an entry, and about what it takes in memory."""
        self._held.append(entry)
        self._n_bytes += n_bytes
        if self._n_bytes >= self._memory_bytes:
            self._spill()

    def entries(self) -> Iterator[Entry]:
        """All of them."""
        self._sort_held()
        join = heapq.merge if self._is_sorted else itertools.chain
        return iter(join(*map(self._stored, self._runs), self._held))

    def _sort_held(self) -> None:
        if self._is_sorted:
            self._held.sort()

    def _spill(self) -> None:
        if self._folder is None:
            folder = tempfile.TemporaryDirectory(
                prefix="rankstream-sort-", dir=self._scratch
            )
            self._folder = Path(self._stack.enter_context(folder))
        self._sort_held()
        run = self._folder / f"{len(self._runs):06d}"
        with run.open("wb", buffering=BUFFER_BYTES) as file:
            for entry in self._held:
                self._write(file, entry)
        self._runs.append(run)
        self._held, self._n_bytes = [], 0

    def _stored(self, path: Path) -> Iterator[Entry]:
        with path.open("rb", buffering=BUFFER_BYTES) as file:
            yield from self._read(file)


class OrderedEvents(SortedRuns[_Stored]):
    """A sequence of events sorted by time that can be read more than once.

    The order is total: events of the same time keep the order in which they came, so
    that the same input always gives the same sequence.

    Parameters
    ----------
    events
        In any order; all are read at once.
    memory_bytes, scratch, is_sorted
        As in `SortedRuns`.

    Attributes
    ----------
    n_events
        How many there are.
    n_disordered
        How many came after a later one.
    """

    def __init__(
        self,
        events: Iterable[Event],
        *,
        memory_bytes: int = MEMORY_BYTES,
        scratch: Path | None = None,
        is_sorted: bool = True,
    ) -> None:
        super().__init__(
            _write, _read, memory_bytes=memory_bytes, scratch=scratch,
            is_sorted=is_sorted,
        )  # fmt: skip
        self.n_events = 0
        self.n_disordered = 0
        with contextlib.ExitStack() as unread:
            unread.callback(self.close)
            latest_ms = None
            for number, (at_ms, kind, value, refusal) in enumerate(events):
                if latest_ms is not None and at_ms < latest_ms:
                    self.n_disordered += 1
                else:
                    latest_ms = at_ms
                self.n_events = number + 1
                n_bytes = len(value) + OVERHEAD_BYTES
                self.take((at_ms, number, kind, value, refusal), n_bytes)
            unread.pop_all()

    def __iter__(self) -> Iterator[Event]:
        return (event for _, event in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Event]]:
        """Each event with its number in the order in which it came, from 0."""
        for at_ms, number, kind, value, refusal in self.entries():
            yield number, Event(at_ms, kind, value, refusal)


def _write(file: IO[bytes], entry: _Stored) -> None:
    at_ms, number, kind, value, refusal = entry
    words = refusal.encode("utf-8", "backslashreplace")[:MAX_WORDS_BYTES]
    file.write(_head.pack(at_ms, number, _NUMBER[kind], len(value), len(words)))
    file.write(value)
    file.write(words)


def _read(file: IO[bytes]) -> Iterator[_Stored]:
    while head := file.read(_head.size):
        at_ms, number, kind, length, n_words = _head.unpack(head)
        value, words = file.read(length), file.read(n_words)
        yield at_ms, number, _KINDS[kind], value, words.decode("utf-8", "ignore")
