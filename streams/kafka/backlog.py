"""Records of a partition that were folded and are in no commit yet."""

import asyncio
from typing import Any

from rankstream.wire.bounds import carried_bytes
from rankstream.wire.topics import MIB
from streams.stage import SourceRecord

RECORD_BYTES = 512
"""What a record costs in memory beside its value, roughly."""

SOON_BYTES = 8 * MIB
"""After so much a commit is due, whatever the clock says."""

FULL_BYTES = 16 * MIB
"""After so much nothing more is folded before a commit has begun."""


class Backlog:
    """What waits for the next commit: acknowledgements, and roughly how many bytes."""

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._n_bytes = 0
        self._has_room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def is_due(self) -> bool:
        """Whether the next commit should begin at once."""
        return self._n_bytes >= SOON_BYTES

    @property
    def is_full(self) -> bool:
        """Whether folding is to wait for `room`."""
        return self._n_bytes >= FULL_BYTES

    def weigh(self, record: SourceRecord) -> None:
        """Count a record whose outputs are to be written."""
        self._n_bytes += RECORD_BYTES + len(record.value or b"")
        if record.key or record.headers:
            self._n_bytes += carried_bytes(record.key, record.headers)

    def hold(self, event: Any) -> None:
        """Keep what is acknowledged when a commit covers it."""
        self._events.append(event)

    def emptied(self) -> list[Any]:
        """Everything that is held, for the commit that begins."""
        events, self._events = self._events, []
        self._n_bytes = 0
        self.release()
        return events

    def release(self) -> None:
        """Let those go on who wait for room."""
        self._has_room.set()

    async def room(self) -> None:
        """Wait until a commit has begun, or the partition is closed."""
        self._has_room.clear()
        await self._has_room.wait()
