"""A server process of ours: started, awaited, paused, stopped, on loopback only."""

import contextlib
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class ServerFailed(RuntimeError):
    """A server did not start or did not answer.

    Operator action: read the log that the message names.
    """


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
    return False


def wait_for_a_signal() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    done.wait()


class ServerProcess:
    """One process; its output goes to a log file in its folder."""

    def __init__(self, command: Sequence[str], folder: Path, name: str) -> None:
        self._command = list(command)
        self._folder = folder
        self._name = name
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def start(self, is_ready: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Start, and wait until it answers.

        Raises
        ------
        ServerFailed
            Where it ends, or stays silent for too long.
        """
        with self.log.open("ab") as log:
            # A group of its own: Ctrl-C in the terminal is for us to pass on.
            self.process = subprocess.Popen(  # noqa: S603  our own command
                self._command, cwd=self._folder, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise ServerFailed(f"{self._name} ended at its start; see {self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"{self._name} did not answer; see {self.log}")
            time.sleep(0.1)

    def stop(self, timeout_s: float = 30.0) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        if self.process is None:
            return
        if self.is_running:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)
