"""What clients may take at once: bytes under way, turns of large requests, a rate."""

import asyncio
import time
from collections import OrderedDict

from rankstream.operations.serving.problems import busy

RECORD_BYTES = 512
"""What a record takes in memory beside its own bytes, about."""


class InFlight:
    """Counts bytes of requests that are read, and of records that Kafka has not.

    Parameters
    ----------
    n_bytes
        As many as may be under way.

    Attributes
    ----------
    taken
        Bytes that are under way.
    refused
        How often there was no room.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.taken = 0
        self.refused = 0

    def take(self, n_bytes: int, *, is_last: bool = False) -> None:
        """Take so many bytes, to be given back.

        Raises
        ------
        Problem
            Where there is no room; ask again later.
        """
        if self.taken + n_bytes > self.n_bytes:
            self.refused += 1
            raise busy(
                f"at most {self.n_bytes:,} bytes may be under way; {self.taken:,} are "
                f"and {n_bytes:,} more were asked for: ask again later",
                is_last=is_last,
            )
        self.taken += n_bytes

    def give(self, n_bytes: int) -> None:
        """Give bytes back."""
        self.taken -= n_bytes


SLICE_BYTES = 64 * 1_024
"""Bytes that are worked on at once, and of requests that are not large."""

PASSES = 8
"""Of the loop between two large requests: about as many as an answer takes."""


class Turns:
    """Who of the large requests is worked on: one at a time, in the order they came.

    All others are answered between their slices. A thread would not help: while it
    decodes it has the interpreter's lock, and where it could be interrupted it gives
    the lock back after milliseconds, each time that it is asked. On the loop a slice
    lasts as long as what is in it, and the next one begins when everything that waited
    was looked at.

    Parameters
    ----------
    within_s
        How long a request waits for its turn before it is told to come again.

    Attributes
    ----------
    n_slices
        How often a large request let all others go first.
    """

    def __init__(self, within_s: float) -> None:
        self.n_slices = 0
        self.within_s = within_s
        self.lock = asyncio.Lock()


class Turn:
    """The turn of one request, which only large ones ask for."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_begun = False
        self._n_spent = 0

    async def begin(self) -> None:
        """Wait until no other large request is worked on; till `end` none will be.

        Raises
        ------
        Problem
            Where that takes too long.
        """
        if self._is_begun:
            return
        within_s, lock = self._turns.within_s, self._turns.lock
        is_behind = lock.locked()
        try:
            async with asyncio.timeout(within_s):
                await lock.acquire()
        except TimeoutError:
            raise busy(
                f"a large request must have its turn within {within_s:g} s; too many "
                "came before it: ask again later, or send less at once"
            ) from None
        self._is_begun = True
        for _ in range(PASSES * is_behind):
            await asyncio.sleep(0)

    async def spend(self, n_bytes: int) -> None:
        """Say what will be worked on next, and let others go first now and then.

        Raises
        ------
        Problem
        """
        self._n_spent += n_bytes
        if self._n_spent > SLICE_BYTES:
            self._n_spent = n_bytes
            await self.begin()
            self._turns.n_slices += 1
            await asyncio.sleep(0)

    def end(self) -> None:
        """Let the next one begin."""
        if self._is_begun:
            self._is_begun = False
            self._turns.lock.release()


MOST_CLIENTS = 20_000
"""Clients that are remembered; the one that was silent for longest goes first."""


class Rates:
    """Token buckets by client: so many requests a second, twice as many at once.

    There is a bucket for each of as many clients as memory allows.

    Parameters
    ----------
    per_second
        0: no limit.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, 2.0 * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Count a request: 0 where it may pass, else the seconds to wait."""
        if not self._per_second:
            return 0.0
        now_s = time.monotonic()
        left, at_s = self._buckets.get(client, (self._most, now_s))
        left = min(self._most, left + (now_s - at_s) * self._per_second)
        passes = left >= 1.0
        self._buckets[client] = (left - 1.0 if passes else left, now_s)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._per_second
