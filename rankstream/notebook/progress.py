"""How far a log is read: said while it takes long; what stays is kept, not printed."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Self

from models.kernels.compilation import telling_of_compilation
from rankstream.operations.terminal.progress_line import ProgressLine


class NotedLine:
    """A line whose remarks are kept.

    Parameters
    ----------
    line
        Says how far it is; None where nobody wants to know.
    remarks
        Takes what stays.
    """

    def __init__(self, line: ProgressLine | None, remarks: list[str]) -> None:
        self._line = line
        self._remarks = remarks

    def __enter__(self) -> Self:
        if self._line is not None:
            self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._line is not None:
            self._line.__exit__(*error)

    def show(self, done: int, note: str = "") -> None:
        """Show what is done by now."""
        if self._line is not None:
            self._line.show(done, note)

    def note(self, words: str) -> None:
        """Show what goes on while nothing more is done."""
        if self._line is not None:
            self._line.note(words)

    def say(self, line: str) -> None:
        """Keep what is to be told, once."""
        if line not in self._remarks:
            self._remarks.append(line)


class NotedLines:
    """Gives the lines of one log.

    Parameters
    ----------
    is_shown
        Whether anybody wants to know how far it is.

    Attributes
    ----------
    remarks
        What was said of the log.
    """

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self.remarks: list[str] = []

    def __call__(
        self, label: str, *, total: int | None, unit: str = "events"
    ) -> NotedLine:
        """The line of what is called so."""
        line = ProgressLine(label, total=total, unit=unit) if self._is_shown else None
        return NotedLine(line, self.remarks)

    def counting(
        self, label: str, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[[int], object]]:
        """What is told how many things are done."""

        @contextlib.contextmanager
        def told() -> Iterator[Callable[[int], object]]:
            with self(label, total=total, unit=unit) as line:
                yield line.show

        return told()

    @contextlib.contextmanager
    def compiling(self, label: str) -> Iterator[NotedLine]:
        """A line that also says when kernels are compiled, which takes a while once."""
        with self(label, total=None) as line:
            told = telling_of_compilation(
                lambda n: line.note(
                    "compiling, once for each release, which takes a minute or two "
                    f"in all: kernel {n}"
                )
            )
            with told:
                yield line
