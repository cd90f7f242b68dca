"""An event loop without sockets, threads or a clock: the same run every time.

What is ready runs in the order in which it became ready. Timers run when somebody
says that time passes, and what is handed to a thread runs when a point lets it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.fakes.points import Point, straight_on


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready, and stands still in between.

    Parameters
    ----------
    point
        Where work for a thread waits until it is done.
    """

    def __init__(self, point: Point = straight_on) -> None:
        super().__init__()
        self._point = point
        self._now_s = 0.0
        # What `BaseEventLoop` asks for events from outside.
        self._selector = self

    def time(self) -> float:
        """Seconds since the beginning; only `pass_time` moves it."""
        return self._now_s

    def run_ready(self) -> None:
        """Run until nothing is ready."""
        loop: Any = self
        asyncio._set_running_loop(self)
        try:
            while loop._ready:
                loop._run_once()
        finally:
            asyncio._set_running_loop(None)

    def pass_time(self) -> bool:
        """Go on to the next timer, and run what follows; whether there was one."""
        loop: Any = self
        timers = [each for each in loop._scheduled if not each.cancelled()]
        if not timers:
            return False
        self._now_s = max(self._now_s, min(each.when() for each in timers))
        # Looks for timers only once something is ready or somebody waits.
        self.call_soon(lambda: None)
        self.run_ready()
        return True

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Work for a thread: done at once, at a point."""
        assert executor is None

        async def work() -> Any:
            await self._point("thread")
            done = func(*args)
            await self._point("thread, done")
            return done

        return self.create_task(work())

    def finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end, where nothing holds it."""
        task = self.create_task(coroutine)
        self.run_ready()
        return task.result()

    def select(self, timeout: float | None) -> list[Any]:
        """Nothing comes from outside."""
        assert timeout is not None
        return []

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits."""
