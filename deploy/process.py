"""A server process of ours: started, awaited, paused, stopped, on loopback only."""

import contextlib
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

PORTS = range(20_000, 30_000)
"""Below the ports that systems lend to clients: a client that knocks at the door of a
server that is down could otherwise be given that very port, and keep it. Nodes of a
Redis cluster talk 10,000 ports higher, where nobody else shall be."""

MOST_KEPT = 32
"""So many calls for ports are remembered: what was asked for before them listens."""

_kept: deque[contextlib.ExitStack] = deque()


class ServerFailed(RuntimeError):
    """A server did not start or did not answer.

    Operator action: read the log that the message names.
    """


def free_port(n_in_a_row: int = 1) -> int:
    """A port of the loopback interface that nobody listens on, the first of so many.

    On Linux nobody else is given it, in whatever process, as it is bound here: a server
    takes seconds to listen, and may be started again. Servers bind beside it, as they
    all reuse addresses.
    """
    chooser = random.SystemRandom()
    for _ in range(100):
        first = chooser.choice(PORTS[: len(PORTS) - n_in_a_row + 1])
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + n_in_a_row):
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":
                _kept.append(stack.pop_all())
            while len(_kept) > MOST_KEPT:
                _kept.popleft().close()
            return first
    raise ServerFailed(f"a port must be free; none found in {PORTS}")


def answers(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
    return False


def stop_signals() -> list[int]:
    """Where Ctrl-C and SIGTERM are noted, from now on.

    No event: a handler that interrupts a wait for one would wait for its lock.
    """
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: asked.append(number))
    return asked


class ServerProcess:
    """One process; its output goes to a log file in its folder.

    It never outlives us unless that is asked for, however we end: a shell holds the
    other end of a pipe of ours, and kills the server when that pipe closes.
    """

    def __init__(self, command: Sequence[str], folder: Path, name: str) -> None:
        self._command = list(command)
        self._folder = folder
        self._name = name
        self._guard: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        if self.process is None or self.process.poll() is not None:
            self._dismiss_guard()
            return False
        return True

    def has_logged(self, text: bytes) -> bool:
        """Whether a text is in the log since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return text in log.read()

    def start(
        self,
        is_ready: Callable[[], bool],
        *,
        timeout_s: float = 180.0,
        outlives_us: bool = False,
    ) -> None:
        """Start, and wait until it answers.

        Raises
        ------
        ServerFailed
            Where it ends, or stays silent for too long.
        """
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            # A session of its own: Ctrl-C in the terminal is for us to pass on.
            self.process = subprocess.Popen(  # noqa: S603  our own command
                self._command, cwd=self._folder, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        with contextlib.ExitStack() as unready:
            unready.callback(self.kill)
            if not outlives_us:
                self._set_guard(self.process.pid)
            self._await(is_ready, timeout_s)
            unready.pop_all()

    def stop(self, timeout_s: float = 30.0) -> None:
        """SIGTERM, also to a paused process, and SIGKILL where that does not help."""
        if self.process is not None and self.is_running:
            self.process.terminate()
            self.process.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL."""
        self._dismiss_guard()
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _await(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise ServerFailed(f"{self._name} ended at its start; see {self.log}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self._name} did not answer; see {self.log}")
            time.sleep(0.05)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)

    def _set_guard(self, pid: int) -> None:
        self._guard = subprocess.Popen(  # noqa: S603  our own command
            ["/bin/sh", "-c", f"read -r _; kill -KILL {pid}"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            # Killed before its pipe closes: it must not strike a reused process id.
            self._guard.kill()
            self._guard.wait()
            if self._guard.stdin:
                self._guard.stdin.close()
            self._guard = None
