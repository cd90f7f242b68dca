"""A parent that restarts its children, and passes SIGTERM on to them."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO

log = logging.getLogger("rankstream.supervisor")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
STEADY_S = 60.0
"""After a child ran so long, the next pause is the shortest again."""

PATIENCE_S = 30.0
"""How long a child may take to stop before it is killed."""


class Child:
    """One role's process, started again whenever it ends by accident."""

    def __init__(
        self, name: str, command: Sequence[str], final: frozenset[int]
    ) -> None:
        self.name = name
        self.status: int | None = None
        self._command = list(command)
        self._final = final
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def stop(self) -> None:
        """Pass SIGTERM on; do not start it again."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def kill(self) -> None:
        """End what would not stop."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            self._process = subprocess.Popen(  # noqa: S603  our own
                self._command, stdin=subprocess.PIPE
            )
            if self._stopping.is_set():
                self._process.terminate()
            status = self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            if self._stopping.is_set() or status in self._final:
                # SIGTERM before the child has its handler: it stopped as asked.
                self.status = 0 if status == -signal.SIGTERM else status
                return
            if time.monotonic() - started >= STEADY_S:
                pause_s = FIRST_PAUSE_S
            log.warning(
                "event=child-ended role=%s status=%d again_in_s=%.1f",
                self.name, status, pause_s,
            )  # fmt: skip
            self._stopping.wait(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        self.status = 0 if self.status is None else self.status


def stop_with_parent(stdin: IO[bytes]) -> None:
    """In a child: stop as if asked to when the parent is gone, killed for example.

    Parameters
    ----------
    stdin
        Open for as long as the parent lives.
    """

    def wait() -> None:
        # Not through the stream: its lock would be held when the interpreter ends.
        os.read(stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def supervise(
    commands: dict[str, Sequence[str]],
    *,
    final: frozenset[int],
    on_started: Callable[[], None] = lambda: None,
) -> int:
    """Run one child for each name until a signal, or until one of them ends for good.

    Parameters
    ----------
    final
        Exit statuses after which starting again would not help.

    Returns
    -------
    int
        0 if all stopped as asked, else the first other status.
    """
    # No event: a handler that interrupts a wait for one would wait for its lock.
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    children = [Child(name, command, final) for name, command in commands.items()]
    for child in children:
        child.thread.start()
    on_started()
    while not asked and all(child.thread.is_alive() for child in children):
        time.sleep(0.1)
    for child in children:
        child.stop()
    deadline = time.monotonic() + PATIENCE_S
    for child in children:
        child.thread.join(max(0.0, deadline - time.monotonic()))
        if child.thread.is_alive():
            child.kill()
            child.thread.join()
    return next((child.status for child in children if child.status), 0)
