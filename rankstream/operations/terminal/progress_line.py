"""Progress of a long command: a bar in a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_EVERY_S = 5.0
RATE_OVER_S = 3.0
SETTLE_S = 0.3
"""A rate is taken over no less than this, and over no more than `RATE_OVER_S`."""


class ProgressLine:
    """Shows how many of how many, the rate and the time left; a context manager.

    Parameters
    ----------
    label
        What is going on, a word or two.
    total
        None where it is not known.
    start
        What was done before.
    unit
        What is counted.
    """

    def __init__(
        self, label: str, *, total: int | None, start: int = 0, unit: str = "events"
    ) -> None:
        self._label = label
        self._unit = unit
        self._total = total
        self._start = start
        self._done = start
        self._console = Console(file=sys.stderr)
        self._started_s = self._said_s = time.monotonic()
        self._recent = (self._started_s, start)
        self._rate = 0.0
        self._note = ""
        self._bar = _bar(self._console, total) if self._console.is_terminal else None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._stack.enter_context(self._bar)
            self._task = self._bar.add_task(
                self._label, total=self._total, completed=self._start, rate=""
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, done: int, note: str = "") -> None:
        """Show what is done by now, with a few words on it."""
        self._note = note
        self._done = max(self._done, done)
        now = time.monotonic()
        since_s, before = self._recent
        elapsed_s = now - since_s
        if elapsed_s >= SETTLE_S:
            self._rate = (self._done - before) / elapsed_s
        if elapsed_s >= RATE_OVER_S:
            self._recent = (now, self._done)
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=self._done,
                rate=self._speed(),
                description=f"{self._label} {note}".rstrip(),
            )
        elif now - self._said_s >= LINE_EVERY_S and self._has_begun():
            self._said_s = now
            self.say(self._line())

    def note(self, words: str) -> None:
        """Show what goes on while nothing more is done."""
        self.show(self._done, words)

    def say(self, line: str) -> None:
        """Print a line beside the bar."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def mean_rate(self) -> float:
        """Events a second since the beginning."""
        elapsed_s = time.monotonic() - self._started_s
        return (self._done - self._start) / max(elapsed_s, 1e-6)

    def _has_begun(self) -> bool:
        """Whether there is more to say than `0`, of nobody knows how many."""
        return bool(self._done or self._total is not None or self._note)

    def _speed(self) -> str:
        digits = 0 if self._rate >= 10.0 or self._rate == 0.0 else 1
        return f"{self._rate:,.{digits}f} {self._unit}/s"

    def _line(self) -> str:
        if not self._done and self._total is None:
            return f"{self._label}: {self._note}"
        text = f"{self._label}: {self._done:,}"
        if self._total is not None:
            text += f" of {self._total:,} {self._unit}"
        text += f", {self._speed()}"
        if self._total is not None and self._rate > 0:
            left_s = (self._total - self._done) / self._rate
            text += f", {left_s:,.0f} s left"
        return f"{text}, {self._note}" if self._note else text


def _bar(console: Console, total: int | None) -> Progress:
    columns = [TextColumn("{task.description}", markup=False)]
    if total is None:
        shown = [SpinnerColumn(), *columns, TextColumn("{task.completed:,.0f}")]
        return Progress(
            *shown, TextColumn("{task.fields[rate]}"), TimeElapsedColumn(),
            console=console,
        )  # fmt: skip
    return Progress(
        *columns, BarColumn(), TaskProgressColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), console=console,
    )  # fmt: skip
