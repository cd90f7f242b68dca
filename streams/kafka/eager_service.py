"""How a callback that does not wait costs no task of the event loop."""

import inspect
import types
from collections.abc import Awaitable, Generator
from typing import Any

from mode.services import Service, WaitResults


class EagerService(Service):
    """A service that makes no task of what needs no waiting."""

    async def wait_first(self, *coros: Any, timeout: Any = None) -> WaitResults:
        """As Faust's, but steps the first coroutine before it makes tasks of all."""
        first = coros[0]
        if not inspect.iscoroutine(first):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            pending = first.send(None)
        except StopIteration as done:
            _close(coros[1:])
            return WaitResults([first], [done.value], False)
        except BaseException:  # a cancelled wait closes the others too
            _close(coros[1:])
            raise
        rest = _resumed(first, pending)
        return await super().wait_first(
            _as_coroutine(rest), *coros[1:], timeout=timeout
        )


def _close(others: tuple[Any, ...]) -> None:
    for other in others:
        if inspect.iscoroutine(other):
            other.close()


async def _as_coroutine(rest: Awaitable[Any]) -> Any:
    return await rest


@types.coroutine
def _resumed(coroutine: Any, pending: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that was stepped once."""
    while True:
        try:
            sent = yield pending
        except BaseException as error:  # noqa: BLE001  whatever comes goes in
            step = coroutine.throw, error
        else:
            step = coroutine.send, sent
        try:
            pending = step[0](step[1])
        except StopIteration as done:
            return done.value
