"""Events in the order of their time, sorted on disk where memory does not hold them.

The order is total: events of the same time keep the order in which they came, so
that the same input always gives the same sequence.
"""

import contextlib
import heapq
import itertools
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from rankstream.wire.input_events import Event
from rankstream.wire.refused_header import MAX_WORDS_BYTES
from rankstream.wire.topics import CLICKS, QUERIES

MEMORY_BYTES = 256 * 1024 * 1024
"""Events are held in memory up to about this."""

OVERHEAD_BYTES = 200
"""What an event takes beyond its own bytes."""

BUFFER_BYTES = 1 << 18

_head = struct.Struct("<qQBIH")
_KINDS = (QUERIES, CLICKS)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}

_Entry = tuple[int, int, str, bytes, str]


class OrderedEvents:
    """A sequence of events sorted by time that can be read more than once.

    Parameters
    ----------
    events
        In any order; all are read at once.
    memory_bytes
        Beyond this, sorted runs go to files in `scratch`, which are removed on exit.
    scratch
        Where those files lie; the system's place for temporary files if not given.
    is_sorted
        Whether to sort at all; else they keep the order in which they came.

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
        self._memory_bytes = memory_bytes
        self._scratch = scratch
        self._is_sorted = is_sorted
        self._stack = contextlib.ExitStack()
        self._folder: Path | None = None
        self._runs: list[Path] = []
        self._held: list[_Entry] = []
        self.n_events = 0
        self.n_disordered = 0
        with contextlib.ExitStack() as unread:
            unread.callback(self.close)
            self._read(events)
            unread.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return (event for _, event in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Event]]:
        """Each event with its number in the order in which it came, from 0."""
        runs: list[Iterator[_Entry]] = [_stored(path) for path in self._runs]
        join = heapq.merge if self._is_sorted else itertools.chain
        for at_ms, number, kind, value, refusal in join(*runs, self._held):
            yield number, Event(at_ms, kind, value, refusal)

    @property
    def n_runs(self) -> int:
        """How many files the events lie in beside those in memory."""
        return len(self._runs)

    def close(self) -> None:
        """Remove what lies on disk."""
        self._held = []
        self._stack.close()

    def _read(self, events: Iterable[Event]) -> None:
        n_bytes = 0
        latest_ms = None
        for number, (at_ms, kind, value, refusal) in enumerate(events):
            self._held.append((at_ms, number, kind, value, refusal))
            if latest_ms is not None and at_ms < latest_ms:
                self.n_disordered += 1
            else:
                latest_ms = at_ms
            n_bytes += len(value) + OVERHEAD_BYTES
            self.n_events = number + 1
            if n_bytes >= self._memory_bytes:
                self._spill()
                n_bytes = 0
        self._sort_held()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(
                self._stack.enter_context(
                    tempfile.TemporaryDirectory(
                        prefix="rankstream-sort-", dir=self._scratch
                    )
                )
            )
        self._sort_held()
        run = self._folder / f"{len(self._runs):06d}"
        with run.open("wb", buffering=BUFFER_BYTES) as file:
            for at_ms, number, kind, value, refusal in self._held:
                words = refusal.encode("utf-8", "backslashreplace")[:MAX_WORDS_BYTES]
                sizes = (len(value), len(words))
                file.write(_head.pack(at_ms, number, _NUMBER[kind], *sizes))
                file.write(value)
                file.write(words)
        self._runs.append(run)
        self._held = []

    def _sort_held(self) -> None:
        if self._is_sorted:
            self._held.sort()


def _stored(path: Path) -> Iterator[_Entry]:
    with path.open("rb", buffering=BUFFER_BYTES) as file:
        while head := file.read(_head.size):
            at_ms, number, kind, length, n_words = _head.unpack(head)
            value, words = file.read(length), file.read(n_words)
            yield at_ms, number, _KINDS[kind], value, words.decode("utf-8", "ignore")
