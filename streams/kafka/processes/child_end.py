"""Why a child process ended: what it tells its parent, and what its status says.

A child's standard input is one end of a pair of sockets, and its parent has the other:
the child hears on it that the parent is gone, and writes why it ends itself. So the
reason comes as certainly as the status, whatever becomes of the log.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import socket
import stat
import sys
import threading
from typing import Any, NoReturn

CONFIGURATION_EXIT = 78
"""Exit status where starting again would not help."""

FAILURE_EXIT = 70
"""Exit status where the parent is to start the process again."""

LONGEST_REASON = 1_000
"""Bytes; much less than a socket holds, so that telling never waits."""

ASKS_WHERE = signal.SIGUSR1
"""Asks a child that does not stop what its threads do."""

CRASHES = frozenset(
    (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
)

_STDIN = 0

_MEANINGS = {
    0: "it stopped though nobody asked it to",
    FAILURE_EXIT: "it failed",
    CONFIGURATION_EXIT: "it was refused, and another start would not help",
}


def tell_where_asked() -> None:
    """In a child: from now on, write the stacks of all threads where it is asked."""
    faulthandler.register(ASKS_WHERE)


def tell_parent(reason: str) -> None:
    """In a child: say why it is about to end; the last word counts.

    Nothing happens where nobody supervises the process.
    """
    told = " ".join(reason.split()).encode()[:LONGEST_REASON]
    try:
        if not stat.S_ISSOCK(os.fstat(_STDIN).st_mode):
            return
        with socket.socket(fileno=os.dup(_STDIN)) as parent:
            parent.send(told + b"\n", socket.MSG_DONTWAIT)
    except OSError:  # the parent is gone, and so is whoever would read it
        return


def heard_from(child: socket.socket) -> str:
    """In the parent, once the child has ended: what it told last; "" for nothing."""
    heard = b""
    child.setblocking(False)
    try:
        while some := child.recv(65_536):
            heard = (heard + some)[-2 * LONGEST_REASON :]
    except OSError:  # nothing more, though a process of the child's may live on
        pass
    lines = heard.decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


def reason_of(status: int, told: str) -> str:
    """Why a child ended, in words.

    Parameters
    ----------
    status
        Its exit status; of a child that was killed, the signal below zero.
    told
        What it said itself.
    """
    words = _words_of(status)
    if told:
        return f"{words}: {told}"
    return words if status <= 0 else f"{words}; it did not say why, read the log above"


def _words_of(status: int) -> str:
    if status in _MEANINGS:
        return _MEANINGS[status]
    if status > 0:
        return f"it ended by an error that nobody foresaw (status {status})"
    try:
        by = signal.Signals(-status)
    except ValueError:
        return f"it was killed by signal {-status}"
    if by is signal.SIGKILL:
        return (
            "it was killed by SIGKILL, which the kernel sends too where memory runs "
            "out: see its log"
        )
    crashed = "; it crashed, report it" if by in CRASHES else ""
    return f"it was killed by {by.name}{crashed}"


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
    """From now on, end this process where a callback or a thread finds no memory.

    Its parent starts it again. asyncio takes a lack of memory in one of its callbacks
    for the failure of a connection, and a thread may die of it without a word. What is
    left would live on and do nothing.
    """
    _reserve.append(bytearray(RESERVE_BYTES))
    asyncio.set_event_loop_policy(_Loops())
    threading.excepthook = _thread_ended
    sys.unraisablehook = _ignored


def end_for_memory() -> NoReturn:
    """Say so, as far as possible, and end."""
    _reserve.clear()
    try:
        tell_parent(REASON)
        log.error("event=failed error=MemoryError reason=%s", REASON)
    finally:
        os._exit(FAILURE_EXIT)


def _heard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(context.get("exception"), MemoryError):
        end_for_memory()
    loop.default_exception_handler(context)


def _thread_ended(told: threading.ExceptHookArgs) -> None:
    if issubclass(told.exc_type, MemoryError):
        end_for_memory()
    threading.__excepthook__(told)


def _ignored(told: "sys.UnraisableHookArgs") -> None:
    if issubclass(told.exc_type, MemoryError):
        end_for_memory()
    sys.__unraisablehook__(told)
