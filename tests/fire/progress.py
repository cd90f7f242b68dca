"""What a run is doing, told while it does it, and the most memory that it took."""

import sys
import threading
import time
from collections.abc import Iterable

import psutil

from tests.fire.cluster import Worker
from tests.fire.observer import Observer
from tests.fire.sender import Sender

TELL_S = 10.0
SAMPLE_S = 1.0
MB = 1_000_000


class Progress:
    """Lines on standard error: what happened at once, how far it is now and then.

    Attributes
    ----------
    peak_mb
        The most resident memory that a process of each role had.
    """

    def __init__(self) -> None:
        self.peak_mb: dict[str, int] = {}
        self._began_s = time.monotonic()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def say(self, what: str) -> None:
        """Tell of something, with the seconds since the run began."""
        seconds = time.monotonic() - self._began_s
        sys.stderr.write(f"fire {seconds:6.1f} s  {what}\n")
        sys.stderr.flush()

    def follow(
        self, n_events: int, workers: Iterable[Worker], sender: Sender, seen: Observer
    ) -> None:
        """Tell how far the run is, until `stop`."""
        family = list(workers)

        def run() -> None:
            told_s = time.monotonic()
            while not self._stopped.wait(SAMPLE_S):
                self._sample(family)
                if time.monotonic() - told_s >= TELL_S:
                    told_s = time.monotonic()
                    self.say(
                        f"{sender.n_sent:,} of {n_events:,} events sent, "
                        f"{seen.n_events:,} in the log"
                    )

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Follow no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(10)

    def _sample(self, workers: list[Worker]) -> None:
        for worker in workers:
            for role, process in worker.children():
                try:
                    used_mb = process.memory_info().rss // MB
                except psutil.Error:
                    continue
                self.peak_mb[role] = max(self.peak_mb.get(role, 0), used_mb)
