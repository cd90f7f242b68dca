"""Why a child process ended: what it tells its parent, and what its status says.

A child's standard input is one end of a pair of sockets, and its parent has the other:
the child hears on it that the parent is gone, and writes why it ends itself. So the
reason comes as certainly as the status, whatever becomes of the log.
"""

import os
import signal
import socket
import stat

CONFIGURATION_EXIT = 78
"""Exit status where starting again would not help."""

FAILURE_EXIT = 70
"""Exit status where the parent is to start the process again."""

LONGEST_REASON = 1_000
"""Bytes; much less than a socket holds, so that telling never waits."""

CRASHES = frozenset(
    (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
)

_STDIN = 0

_MEANINGS = {
    0: "it stopped though nobody asked it to",
    FAILURE_EXIT: "it failed",
    CONFIGURATION_EXIT: "it was refused, and another start would not help",
}


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
