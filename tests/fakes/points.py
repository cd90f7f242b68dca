"""Points at which a coroutine waits until somebody lets it on.

Every await of the fake clients is one. Whoever owns the points decides which
coroutine goes on, and so in which order things happen; what it never lets on has
been killed there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Point = Callable[[str], Awaitable[None]]
"""Waits until it may go on; is told what is about to happen."""

_owner: ContextVar[str] = ContextVar("owner", default="nobody")


async def straight_on(_: str) -> None:
    """Go on at once."""


@dataclass(eq=False)
class Waiting:
    """A coroutine at a point."""

    owner: str
    what: str
    future: "asyncio.Future[None]"


class Points:
    """Where the coroutines of some owners wait.

    A task belongs to whom the task belonged to that began it.
    """

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self._is_over = False

    async def point(self, what: str) -> None:
        """Wait to be let on."""
        if self._is_over:
            return
        future = asyncio.get_running_loop().create_future()
        waiting = Waiting(_owner.get(), what, future)
        self.waiting.append(waiting)
        try:
            await future
        except asyncio.CancelledError:
            if waiting in self.waiting:
                self.waiting.remove(waiting)
            raise

    def let_on(self, waiting: Waiting) -> None:
        """Let a coroutine go on; it runs when the loop does."""
        self.waiting.remove(waiting)
        waiting.future.set_result(None)

    def end(self) -> None:
        """Hold nobody from now on, so that what is left can be cancelled."""
        self._is_over = True


def owner() -> str:
    """Whom the task that runs belongs to."""
    return _owner.get()


def begin(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], name: str
) -> "asyncio.Task[T]":
    """Begin a task that belongs to an owner, with all that it begins."""
    context = copy_context()
    context.run(_owner.set, name)
    return context.run(loop.create_task, work)
