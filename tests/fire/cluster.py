"""The broker, Redis and workers of a run, and what can be done to them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from tests.fire.builds import environment
from tests.worker_process import PATIENCE_S, role_of

BREAKS = ("position", "watermark", "fence")


class Missed(RuntimeError):
    """A fault could not be struck as planned.

    Operator action: see the logs of the run's workers.
    """


class Worker:
    """A worker: a parent, and a process for each role.

    Parameters
    ----------
    broken
        Which of its safeguards is switched off, or `phases`, if any.
    tree
        The build that it runs; None is this one.
    """

    def __init__(
        self,
        name: str,
        config: Path,
        folder: Path,
        broken: str = "",
        tree: Path | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        program = ["-m", "rankstream", "worker"]
        if broken:
            program = ["-m", "tests.fire.broken_worker", broken]
        self._command = [sys.executable, *program, "--config", str(config)]
        self._tree = tree

    @property
    def is_running(self) -> bool:
        """Whether the parent lives."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it."""
        with self.log.open("ab") as log:
            # A group of its own, so that all of it can be killed at once.
            self.process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # Modules are searched for in the working directory first.
                cwd=self._tree,
                env=environment(self._tree) if self._tree else None,
            )

    def children(self) -> Iterator[tuple[str, psutil.Process]]:
        """The role and the process of each child that lives."""
        if self.process is None:
            return
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                role = role_of(process)
                if role is not None:
                    yield role, process

    def child(self, role: str) -> psutil.Process | None:
        """The process of a role, where it lives."""
        return dict(self.children()).get(role)

    def awaited_child(self, role: str, timeout_s: float = PATIENCE_S) -> psutil.Process:
        """The process of a role; its parent may be about to start it again."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            child = self.child(role)
            if child is not None:
                return child
            time.sleep(0.02)
        raise Missed(f"{self.name} must run {role}; it does not, see {self.log}")

    def kill(self) -> None:
        """SIGKILL to the parent and its children, at the same moment.

        One after another the children would see their parent gone, and stop in order.
        """
        if self.process is None:
            return
        family = [process for _, process in self.children()]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        psutil.wait_procs(family, timeout=10)

    def stop(self) -> tuple[int, float]:
        """SIGTERM; exit status and seconds."""
        if self.process is None:
            return 0, 0.0
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            status = -1
        return status, round(time.monotonic() - started, 1)

    def said(self, since: int = 0) -> str:
        """Its log from a place on."""
        return self._written(since).decode(errors="replace")

    def _written(self, since: int) -> bytes:
        if not self.log.exists():
            return b""
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read()

    def log_end(self) -> int:
        """Where its log ends now."""
        return self.log.stat().st_size if self.log.exists() else 0

    def wait_for(self, pattern: str, since: int, timeout_s: float) -> bool:
        """Wait until its log has a line; False if it has not in time."""
        deadline = time.monotonic() + timeout_s
        found = re.compile(pattern.encode())
        while time.monotonic() < deadline:
            written = self._written(since)
            if found.search(written):
                return True
            # No line is read twice: a log is long, and looked at often.
            since += written.rfind(b"\n") + 1
            time.sleep(0.01)
        return False


def restarts(workers: Sequence[Worker]) -> dict[str, int]:
    """How often each role ended by an exit status of its own, by that status."""
    counts: dict[str, int] = {}
    for worker in workers:
        for role, status in re.findall(
            r"event=child-ended role=(\w+) status=(-?\d+)", worker.said()
        ):
            name = f"{role}:{status}"
            counts[name] = counts.get(name, 0) + 1
    return counts
