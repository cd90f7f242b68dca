"""Entries that Redis has beyond its topic: forged, or of who has read further.

A rollback and a published experiment are written to their topic first and then to
Redis, and another publisher may be ahead of this one. So whatever lies beyond is left
alone until the topic was read to an end that the broker named after it was seen.
"""

from typing import Generic, TypeVar

Name = TypeVar("Name")
Seen = TypeVar("Seen")

SETTLED = 3
"""So many settled batches later the end is one that was asked for after the sight: the
first may have been answered before it, and the request of the second have been made.
"""


class UnexpectedEntries(Generic[Name, Seen]):
    """By name, what was seen, and when in terms of settled batches."""

    def __init__(self) -> None:
        self._now = 0
        self._seen: dict[Name, tuple[Seen, int]] = {}

    def settle(self) -> None:
        """Hear that a settled batch came."""
        self._now += 1

    def is_confirmed(self, name: Name, seen: Seen) -> bool:
        """Whether this was seen before, long enough ago; notes it where it is new."""
        known = self._seen.get(name)
        if known is None or known[0] != seen:
            self._seen[name] = known = seen, self._now
        return self._now - known[1] >= SETTLED

    def clear(self, name: Name) -> None:
        """Hear that nothing is suspicious any more."""
        self._seen.pop(name, None)
