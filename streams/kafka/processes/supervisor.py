"""A parent that restarts its children, and passes SIGTERM on to them."""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO

from streams.kafka.processes.child_end import (
    ASKS_WHERE,
    FAILURE_EXIT,
    heard_from,
    reason_of,
)
from streams.kafka.processes.role_processes import Running, Start, spawned

log = logging.getLogger("rankstream.supervisor")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
STEADY_S = 60.0
"""After a child ran so long, it is started again at once."""

LOOK_S = 1.0
"""How long a child has to say where it is before it is killed."""


class Child:
    """One role's process, started again whenever it ends by accident."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        final: frozenset[int],
        start: Start = spawned,
    ) -> None:
        self.name = name
        self.status: int | None = None
        self.reason = ""
        self._command = list(command)
        self._final = final
        self._start = start
        self._stopping = threading.Event()
        self._process: Running | None = None
        self.thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def stop(self) -> None:
        """Pass SIGTERM on; do not start it again."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def kill(self) -> None:
        """End what would not stop, after it has said where it is."""
        if self._process is None or self._process.poll() is not None:
            return
        log.warning("event=stopping-too-long role=%s", self.name)
        self._process.send_signal(ASKS_WHERE)
        self.thread.join(LOOK_S)
        self._process.kill()

    def _keep(self) -> None:
        next_pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            status, told = self._run()
            # SIGTERM before the child has its handler: it stopped as asked.
            if self._stopping.is_set() and status == -signal.SIGTERM:
                status = 0
            self.reason = reason_of(status, told)
            if self._stopping.is_set() or status in self._final:
                self.status = status
                return
            is_steady = time.monotonic() - started >= STEADY_S
            pause_s = 0.0 if is_steady else next_pause_s
            log.warning(
                "event=child-ended role=%s status=%d again_in_s=%.1f reason=%s",
                self.name, status, pause_s, self.reason,
            )  # fmt: skip
            self._stopping.wait(pause_s)
            next_pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause_s))
        self.status = 0 if self.status is None else self.status

    def _run(self) -> tuple[int, str]:
        """Start it and wait for its end: the status, and what it told."""
        ours, its = socket.socketpair()
        with ours:
            with its:
                process = self._start(self._command, its, self._stopping)
            if process is None:  # asked to stop before it had begun
                return -signal.SIGTERM, ""
            self._process = process
            if self._stopping.is_set():
                process.terminate()
            return process.wait(), heard_from(ours)


def stop_with_parent(stdin: IO[bytes], *, patience_s: float) -> None:
    """In a child: stop as if asked to when the parent is gone, killed for example.

    Parameters
    ----------
    stdin
        Open for as long as the parent lives.
    patience_s
        How long that may take, as where Kafka is away; then the process ends at once,
        with `FAILURE_EXIT`, since nobody else is there to kill it.
    """

    def wait() -> None:
        # Not through the stream: its lock would be held when the interpreter ends.
        with contextlib.suppress(ConnectionError):
            os.read(stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(patience_s)
        os._exit(FAILURE_EXIT)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def supervise(
    commands: dict[str, Sequence[str]],
    *,
    final: frozenset[int],
    patience_s: float,
    on_started: Callable[[], None] = lambda: None,
    start: Start = spawned,
) -> int:
    """Run one child for each name until a signal, or until one of them ends for good.

    Parameters
    ----------
    final
        Exit statuses after which starting again would not help.
    patience_s
        How long all may take to stop before they are killed.
    start
        Starts a child by its words, which are a whole command where nothing is said.

    Returns
    -------
    int
        0 if all stopped as asked, else the first other status.
    """
    # No event: a handler that interrupts a wait for one would wait for its lock.
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    children = [
        Child(name, command, final, start) for name, command in commands.items()
    ]
    for child in children:
        child.thread.start()
    on_started()
    while not asked and all(child.thread.is_alive() for child in children):
        time.sleep(0.1)
    ended = [child for child in children if not child.thread.is_alive()]
    for child in children:
        child.stop()
    deadline = time.monotonic() + patience_s
    for child in children:
        child.thread.join(max(0.0, deadline - time.monotonic()))
        if child.thread.is_alive():
            child.kill()
            child.thread.join()
    # Whoever ended by itself is why all end; after a signal, whoever did not obey it.
    culprits = [child for child in children if child.status] if asked else ended
    for child in culprits:
        log.error(
            "event=worker-ended role=%s status=%d reason=%s",
            child.name, child.status, child.reason,
        )  # fmt: skip
    return next((child.status for child in children if child.status), 0)
