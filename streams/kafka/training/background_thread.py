"""A thread that trains beside the event loop: what it does, and how it is stopped."""

import asyncio
import logging
from typing import NamedTuple

from streams.kafka.training.memory import MemoryLimit
from streams.training.progress import TrainingProgress

COMPILING = "compiling kernels, up to a minute or two the first time"

log = logging.getLogger("rankstream.trainer")


class Stopped(Exception):
    """Nobody wants what is read or computed; nothing came of it."""


class Task(NamedTuple):
    """An intervention that is due; `request` is empty where nobody asked."""

    name: str
    reason: str
    request: str = ""


class BackgroundThread:
    """How far a thread that trains is, and how it is told to give up.

    Parameters
    ----------
    stop
        Of the role.
    memory
        What it may take.
    """

    def __init__(self, task: Task, stop: asyncio.Event, memory: MemoryLimit) -> None:
        self.task = task
        self._memory = memory
        self.said = "reading statistics"
        self._stop = stop
        self._is_over = False

    def give_up(self) -> None:
        """End the thread at its next word."""
        self._is_over = True

    def check(self) -> None:
        """Go on, or not.

        Raises
        ------
        Stopped
            Where nobody wants what comes of it.
        TrainingRefused
            Where it takes more memory than it may.
        """
        if self._is_over or self._stop.is_set():
            raise Stopped
        self._memory.check()

    def compile(self, number: int) -> None:
        """Hear that one more kernel is compiled."""
        self.said = COMPILING
        if number == 1:
            log.info("event=compiling model=%s reason=%s", self.task.name, COMPILING)

    def take(self, progress: TrainingProgress) -> None:
        """Hear how far it is; raises as `check` does."""
        self.check()
        self.said = progress.told()
        if progress.loss is not None:
            log.info(
                "event=epoch model=%s number=%d loss=%.6g held_out_dcg=%.6g",
                self.task.name, progress.number, progress.loss, progress.held_out_dcg,
            )  # fmt: skip
