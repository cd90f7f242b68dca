"""Turns of large requests, so that all others are answered between their slices.

A thread would not help: while it decodes it has the interpreter's lock, and where it
could be interrupted it gives the lock back after milliseconds, each time that it is
asked. On the loop a slice lasts as long as what is in it, and the next one begins when
everything that waited was looked at.
"""

import asyncio

from rankstream.operations.serving.problems import busy

SLICE_BYTES = 64 * 1_024
"""Bytes that are worked on at once, and of requests that are not large."""

PASSES = 8
"""Of the loop between two large requests: about as many as an answer takes."""


class Turns:
    """Who of the large requests is worked on: one at a time, in the order they came.

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
