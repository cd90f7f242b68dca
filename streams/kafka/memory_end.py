"""A process that finds no memory ends at once, and its parent starts it again.

asyncio takes a lack of memory in one of its callbacks for the failure of a connection,
and a thread may die of it without a word. What is left would live on and do nothing.
"""

import asyncio
import logging
import os
import sys
import threading
from typing import Any, NoReturn

from streams.kafka.child_end import FAILURE_EXIT, tell_parent

RESERVE_BYTES = 1 << 20
"""Kept to be given back at the end, so that there is room to say why."""

REASON = (
    "MemoryError: the process must find memory; it found none: give it more, or share "
    "its partitions among more workers"
)

log = logging.getLogger("rankstream.worker")

_reserve: list[bytearray] = []


class _Loops(asyncio.DefaultEventLoopPolicy):
    """Event loops, of whatever thread, that end the process."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        loop.set_exception_handler(_heard)
        return loop


def end_without_memory() -> None:
    """From now on, end this process where a callback or a thread finds no memory."""
    _reserve.append(bytearray(RESERVE_BYTES))
    asyncio.set_event_loop_policy(_Loops())
    threading.excepthook = _thread_ended
    sys.unraisablehook = _ignored


def end() -> NoReturn:
    """Say so, as far as possible, and end."""
    _reserve.clear()
    try:
        tell_parent(REASON)
        log.error("event=failed error=MemoryError reason=%s", REASON)
    finally:
        os._exit(FAILURE_EXIT)


def _heard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(context.get("exception"), MemoryError):
        end()
    loop.default_exception_handler(context)


def _thread_ended(told: threading.ExceptHookArgs) -> None:
    if issubclass(told.exc_type, MemoryError):
        end()
    threading.__excepthook__(told)


def _ignored(told: "sys.UnraisableHookArgs") -> None:
    if issubclass(told.exc_type, MemoryError):
        end()
    sys.__unraisablehook__(told)
