"""How the processes of roles are started: forked by a preloader, or by themselves.

Both are to their parent what `subprocess.Popen` is. Where no preloader can be had, as
on macOS, whose libraries do not bear a fork, or where it has died, Python starts.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from streams.kafka.processes.preloader import LONGEST_REQUEST, NUMBER

CAN_FORK = sys.platform == "linux"

LOOK_S = 0.1
"""How often who waits for the preloader looks whether the process is still wanted."""


class Running(Protocol):
    """A process that was started."""

    pid: int

    def poll(self) -> int | None:
        """Its exit status once it has ended; of one that was killed, below zero."""

    def wait(self) -> int:
        """The same, when it has ended."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def send_signal(self, number: int, /) -> None:
        """Send another signal."""


Start = Callable[[Sequence[str], socket.socket, threading.Event], Running | None]
"""Starts a process with a standard input; None once it is not wanted any more, as the
event is set."""


def spawned(
    command: Sequence[str], stdin: socket.socket, _: threading.Event
) -> Running:
    """A process of a command."""
    return subprocess.Popen(list(command), stdin=stdin.fileno())  # noqa: S603  our own


class Forked:
    """A process that the preloader has forked.

    Parameters
    ----------
    report
        Where the preloader tells its exit status.
    """

    def __init__(self, pid: int, report: socket.socket) -> None:
        self.pid = pid
        self._report = report
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status, once somebody has waited for it."""
        return self._status

    def wait(self) -> int:
        """Its exit status, when it has ended."""
        with self._report:
            self._report.settimeout(None)
            status = _number_of(self._report)
        if status is None:
            # The preloader is gone: nobody would ever hear how this process ends.
            self.kill()
            status = -signal.SIGKILL
        self._status = status
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int, /) -> None:
        """Send a signal, unless it has ended."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Preloaded:
    """Starts processes of a module by a preloader, which starts when it is needed.

    Parameters
    ----------
    python
        The interpreter, with options.
    module
        What `python -m` would run; its `main(words)` is called.
    loaded
        Modules that every process needs.
    """

    def __init__(
        self, python: Sequence[str], module: str, loaded: Sequence[str]
    ) -> None:
        self._module = [*python, "-m", module]
        self._preloader = [
            *python,
            "-m",
            "streams.kafka.processes.preloader",
            module,
            *loaded,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._starting = threading.Lock()

    def start(
        self, words: Sequence[str], stdin: socket.socket, stopping: threading.Event
    ) -> Running | None:
        """As `Start` says."""
        ours, its = socket.socketpair()
        with its:
            is_asked = CAN_FORK and self._is_asked(words, stdin, its)
        if is_asked:
            ours.settimeout(LOOK_S)
            while not stopping.is_set():
                try:
                    pid = _number_of(ours)
                except TimeoutError:  # it is still loading
                    continue
                if pid is None:
                    break
                return Forked(pid, ours)
        ours.close()
        if stopping.is_set():
            return None
        return spawned([*self._module, *words], stdin, stopping)

    def close(self) -> None:
        """End the preloader, when no process of it is left."""
        with self._starting:
            self._end()

    def _is_asked(
        self, words: Sequence[str], stdin: socket.socket, report: socket.socket
    ) -> bool:
        request = json.dumps(list(words)).encode()
        if len(request) > LONGEST_REQUEST:
            return False
        with self._starting:
            try:
                requests = self._living()
                socket.send_fds(requests, [request], [stdin.fileno(), report.fileno()])
            except OSError:
                return False
        return True

    def _living(self) -> socket.socket:
        """Where the preloader listens, which is started if there is none."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with its:
                self._process = subprocess.Popen(  # noqa: S603  our own
                    self._preloader, stdin=its.fileno()
                )
            self._requests = ours
        if self._requests is None:
            raise OSError("the preloader must listen; it does not")
        return self._requests

    def _end(self) -> None:
        process, requests = self._process, self._requests
        self._process = self._requests = None
        if requests is not None:
            requests.close()
        if process is not None:
            process.kill()
            process.wait()


def _number_of(report: socket.socket) -> int | None:
    """What the preloader tells; None where it is gone.

    Raises
    ------
    TimeoutError
        Where it tells nothing yet.
    """
    try:
        told = report.recv(NUMBER.size)
    except ConnectionError:
        return None
    if len(told) < NUMBER.size:
        return None
    number: int
    (number,) = NUMBER.unpack(told)
    return number
