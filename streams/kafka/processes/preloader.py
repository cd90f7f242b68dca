"""A process that has loaded what others need, and forks one of them at each request.

Loading Faust and the clients of Kafka takes a second or two of a core. A process that
is forked has all of it at once, shares the memory, and is from then on what it would
be if Python had started it: its own standard input, signals, and end.

What is forked is what this process has at that moment, so it has one thread, no event
loop and no connection, and it reads no settings and writes nothing.

    python -m streams.kafka.processes.preloader MODULE LOADED ...

`MODULE.main(words)` is what a forked process runs.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

STOPS = frozenset((signal.SIGTERM, signal.SIGINT))

LONGEST_REQUEST = 131_072
"""Bytes of a request: the words of a command line, as JSON."""

NUMBER = struct.Struct("<i")
"""What is told of a process that was forked: its id, and later its exit status."""

_COMMAND_LINE = Path("/proc/self/comm")


def called(name: str) -> None:
    """Say in `ps` and `top` what this process is, where the system lets it.

    Its command line is that of whoever forked it.
    """
    with contextlib.suppress(OSError):
        _COMMAND_LINE.write_text(short_name(name), encoding="ascii")


def short_name(name: str) -> str:
    """What of a name the system keeps.

    Examples
    --------
    >>> short_name("publish")
    'rankstream publ'
    """
    return f"rankstream {name}"[:15]


class Preloader:
    """Forks a process for each request, and tells how each has ended.

    Parameters
    ----------
    requests
        Each is a message: words, with two sockets. The first is to be the standard
        input of the process. On the second its id is told, and its status at its end.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._reports: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()

    def forked_words(self) -> list[str] | None:
        """Serve requests; returns in a process that was forked, with its words.

        None in this process itself, once nobody can ask any more.
        """
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._requests, self._woken], [], [])
            if self._woken in ready:
                self._reap()
            if self._requests not in ready:
                continue
            asked, sockets, _, _ = socket.recv_fds(self._requests, LONGEST_REQUEST, 2)
            if not asked:
                return None
            if len(sockets) == 2 and self._is_forked(*sockets):
                words: list[str] = json.loads(asked)
                return words

    def _is_forked(self, stdin: int, report: int) -> bool:
        """Fork; whether this is the new process."""
        telling = socket.socket(fileno=report)
        try:
            child = os.fork()
        except OSError:  # whoever asked starts it otherwise
            telling.close()
            os.close(stdin)
            return False
        if child:
            os.close(stdin)
            self._reports[child] = telling
            _tell(telling, child)
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Others' too: who holds one of them seems to be the preloader.
        for each in (telling, *self._reports.values()):
            each.close()
        for each in (self._requests, self._woken, self._wakes):
            each.close()
        os.dup2(stdin, 0)
        os.close(stdin)
        # What was asked of it since the fork comes now, as it would at any start.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        return True

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4_096):
                pass
        while self._reports:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if not ended:
                return
            with self._reports.pop(ended) as report:
                _tell(report, os.waitstatus_to_exitcode(status))


def _tell(report: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits for it any more
        report.send(NUMBER.pack(number), socket.MSG_NOSIGNAL)


def load(modules: Iterable[str]) -> None:
    """Load modules; what cannot be loaded is left to the process that needs it."""
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    # A collector that looks at what was loaded would copy its pages in each process.
    gc.freeze()


def main(words: list[str]) -> int:
    """Serve requests, or be one of the processes; returns the exit status."""
    # Ctrl-C, or a service that is stopped, reaches all processes: this one stays until
    # its parent is gone, as nobody else can tell it how its children have ended. They
    # are blocked, not ignored, so that none is lost between a fork and its handlers.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    called("preloader")
    requests = socket.socket(fileno=os.dup(0))
    module, *loaded = words
    load((module, *loaded))
    asked = Preloader(requests).forked_words()
    if asked is None:
        return 0
    sys.argv = [sys.argv[0], *asked]
    status: int = importlib.import_module(module).main(asked)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
