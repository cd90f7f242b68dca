"""When a process commits its partitions: how far apart, and what hurries it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

SHORTEST_PAUSE_S = 0.005
"""Between two rounds of commits, however long the first took."""

LOOK_S = 1.0
"""Between two looks at what waits, however far apart commits are."""

GATHER_S = 0.05
"""What comes together is committed together, where a commit is due once it comes."""


class CommitPace:
    """Commits are an interval apart, or as far as something comes after that.

    So what stages hand on one to another waits at the first of them only. Intervals
    double, up to the longest, while something comes. A second in which nothing does
    ends one that has lasted the shortest, and the next ones are short again.

    Parameters
    ----------
    shortest_s
        Seconds between commits, after a silence.
    longest_s
        Tells how many there may be as things are.
    look
        Is called each second between commits; tells whether one is due at once.
    """

    def __init__(
        self,
        shortest_s: float,
        longest_s: Callable[[], float],
        look: Callable[[], bool],
    ) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._look = look
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()

    def take(self, *, is_due: bool) -> None:
        """Hear that something was folded, and whether it is to be committed at once."""
        self._news.set()
        if is_due:
            self._hurry.set()

    async def run(self, commit: Callable[[], Awaitable[None]]) -> None:
        """Commit, again and again."""
        loop, pause_s = asyncio.get_running_loop(), self._shortest_s
        while True:
            started_s = loop.time()
            self._hurry.clear()
            self._news.clear()
            await commit()
            pause_s = await self._next_pause_s(started_s, pause_s)

    async def _next_pause_s(self, started_s: float, pause_s: float) -> float:
        """Wait until a commit is due after that one; how far off the next one is."""
        loop, shortest_s, waits = asyncio.get_running_loop(), self._shortest_s, False
        while True:
            left_s = started_s + min(pause_s, self._longest_s()) - loop.time()
            look_s = max(SHORTEST_PAUSE_S, min(left_s, LOOK_S))
            if await _is_set(self._hurry, look_s):
                return pause_s
            is_silent = (
                not self._news.is_set()
                and look_s >= min(shortest_s, LOOK_S)
                and loop.time() >= started_s + shortest_s
            )
            waits = waits or self._news.is_set()
            self._news.clear()
            if left_s <= LOOK_S or is_silent or self._look():
                break
        if not waits and await self._comes():
            await _is_set(self._hurry, min(GATHER_S, shortest_s))
        is_longer = waits and not is_silent
        return min(2.0 * pause_s, self._longest_s()) if is_longer else shortest_s

    async def _comes(self) -> bool:
        """Wait for something as long as the shortest interval; whether it came."""
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self._shortest_s
        while (left_s := ends_s - loop.time()) > 0.0:
            self._look()
            if await _is_set(self._news, min(left_s, LOOK_S)):
                return True
        return False


async def _is_set(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for it so long; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()
