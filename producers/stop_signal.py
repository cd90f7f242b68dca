"""Ctrl-C and SIGTERM set a flag that loops ask, so that nothing is left half done."""

import signal
import threading
import time
from types import FrameType
from typing import Self

SLICE_S = 0.1

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Says whether the user wants to stop; a second Ctrl-C interrupts at once.

    A context manager that takes the signals over while it lasts; in another than the
    main thread it only waits.
    """

    def __init__(self) -> None:
        # A plain flag: a lock could be held where a signal strikes.
        self._asked = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked

    def ask(self) -> None:
        """Ask to stop."""
        self._asked = True

    def wait(self, seconds: float) -> bool:
        """Sleep, or less if asked to stop; whether to stop."""
        ends_s = time.monotonic() + seconds
        while not self._asked and (left_s := ends_s - time.monotonic()) > 0:
            time.sleep(min(left_s, SLICE_S))
        return self._asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
