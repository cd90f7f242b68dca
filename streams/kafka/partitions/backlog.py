"""Records of a partition that were folded, until a commit has them."""

import asyncio
from typing import Any, NamedTuple

from rankstream.wire.topics import MIB
from streams.source_records import SourceRecords
from streams.stage import Change, Output

RECORD_BYTES = 512
"""What a record costs in memory beside its value, roughly."""

SOON_BYTES = 8 * MIB
"""After so much a commit is due, whatever the clock says."""

FULL_BYTES = 16 * MIB
"""After so much nothing more is folded before a commit has begun."""


class Commit(NamedTuple):
    """What one transaction writes, and what is acknowledged once it is committed."""

    outputs: list[Output]
    changes: list[Change]
    events: list[Any]
    is_checkpoint: bool


class Backlog:
    """What waits for the next commit: acknowledgements, and roughly how many bytes.

    Attributes
    ----------
    n_bytes
        What waits, roughly.
    """

    def __init__(self) -> None:
        self._events: list[Any] = []
        self.n_bytes = 0
        self._has_room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def is_due(self) -> bool:
        """Whether the next commit should begin at once."""
        return self.n_bytes >= SOON_BYTES

    @property
    def is_full(self) -> bool:
        """Whether folding is to wait for `room`."""
        return self.n_bytes >= FULL_BYTES

    def weigh(self, records: SourceRecords) -> None:
        """Count records whose outputs are to be written."""
        self.n_bytes += RECORD_BYTES * len(records) + records.n_bytes

    def hold(self, event: Any) -> None:
        """Keep what is acknowledged when a commit covers it."""
        self._events.append(event)

    def emptied(self) -> list[Any]:
        """Everything that is held, for the commit that begins."""
        events, self._events = self._events, []
        self.n_bytes = 0
        self.release()
        return events

    def release(self) -> None:
        """Let those go on who wait for room."""
        self._has_room.set()

    async def room(self) -> None:
        """Wait until a commit has begun, or the partition is closed."""
        self._has_room.clear()
        await self._has_room.wait()


def acknowledge(events: list[Any]) -> None:
    """Tell the reader that records need not come again."""
    for event in events:
        event.ack()
