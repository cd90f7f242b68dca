"""Whose lists count nothing: users by name, and sessions that are too fast for people.

What is decided here stands in the log, so the settings may change at any time: for what
comes after.
"""

from typing import Any

from rankstream.settings import ExcludeSettings
from rankstream.wire.events import QueryEvent
from streams.ingest.identifiers import unit_of

MOST_COUNTED = 1_024
"""Sessions of a minute that are counted apart."""

MOST_ROBOTS = 1_024
"""Sessions that are known as robots."""

MINUTE_MS = 60_000

SPREAD = 0x9E37_79B9_7F4A_7C15
"""2^64 divided by the golden ratio: multiples of it are far apart modulo 2^64."""


class Exclusion:
    """Of one partition of `queries`.

    Lists of the running minute are counted by session, else user: those that the broker
    took in one minute and that were shown in one, by their own time. For a history that
    is replayed comes at once, as does what senders kept while the broker was away.
    There are `MOST_COUNTED` counters: if none is free for a new session, each loses a
    list (Misra and Gries, 1982). So no count is ever too high, and one of n lists in a
    minute is at most n / 1,025 too low: people are never taken for robots, robots are
    found later where a partition has more lists.
    """

    def __init__(self, settings: ExcludeSettings) -> None:
        self._users = frozenset(settings.users)
        self._most = settings.lists_per_minute
        self._minutes = settings.minutes
        self._minute = 0
        self._lists: dict[int, int] = {}
        self._robots: dict[int, int] = {}

    def excludes(self, event: QueryEvent, appended_ms: int) -> bool:
        """Whether an accepted event's list enters no sum; counts it."""
        is_robot = self._most > 0 and self._is_robot(event, appended_ms)
        return is_robot or event.user in self._users

    def _is_robot(self, event: QueryEvent, appended_ms: int) -> bool:
        if not event.session and not event.user:
            return False
        minute = appended_ms // MINUTE_MS
        if minute != self._minute:  # also where a broker's clock is put back
            self._minute = minute
            self._lists = {}
            self._robots = {
                unit: last for unit, last in self._robots.items() if last >= minute
            }
        unit = unit_of(event)
        if self._count(_of_minute(unit, event.at_ms)) > self._most:
            # The newest are kept where there are too many.
            self._robots.pop(unit, None)
            self._robots[unit] = self._minute + self._minutes
            if len(self._robots) > MOST_ROBOTS:
                del self._robots[next(iter(self._robots))]
        return unit in self._robots

    def _count(self, counted: int) -> int:
        """Lists of a session in this minute, at least."""
        if counted in self._lists or len(self._lists) < MOST_COUNTED:
            self._lists[counted] = self._lists.get(counted, 0) + 1
            return self._lists[counted]
        self._lists = {one: n - 1 for one, n in self._lists.items() if n > 1}
        return 0

    def state(self) -> list[Any]:
        """What `restore` takes; empty while nobody was counted."""
        if not self._lists and not self._robots:
            return []
        return [self._minute, [*self._lists.items()], [*self._robots.items()]]

    def restore(self, state: list[Any]) -> None:
        """Take back a state; nothing of it where nobody is counted any more."""
        if state and self._most:
            self._minute, lists, robots = state
            self._lists, self._robots = dict(lists), dict(robots)


def _of_minute(unit: int, at_ms: int) -> int:
    """A hash of a session in a minute of event time, as `unit` is one of a session."""
    return (unit + at_ms // MINUTE_MS * SPREAD) % (1 << 64)
