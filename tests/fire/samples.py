"""What the processes of a worker take and say, sampled while they run."""

import contextlib
import re
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from streams.worker_roles import ROLES
from tests.fire.cluster import Worker

PARENT = "worker"
"""The parent of all roles, as one more of them."""

TAKEN = ("rss_kb", "descriptors", "threads")
"""What each process takes."""

STATE = (
    "pending",
    "open_impressions",
    "known_identities",
    "statistics_scopes",
    "statistics_bytes",
    "unacknowledged_records_pending",
    "lag_records",
    "source_lag_records",
)
"""What a role holds, and how far behind it is, by the names on its page."""


@dataclass
class Series:
    """One number of one role, by minute."""

    minutes: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class Samples:
    """Samples a worker in a thread, until stopped.

    Attributes
    ----------
    taken, state
        By role and name.
    lines
        Of the worker's log since the sample before. All roles share one log: where
        their sum does not grow, none of them does.

    Parameters
    ----------
    port
        Where the pages of the roles begin.
    every_s
        From one sample to the next.
    """

    def __init__(
        self,
        worker: Worker,
        port: int,
        every_s: float,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.taken: dict[tuple[str, str], Series] = {}
        self.state: dict[tuple[str, str], Series] = {}
        self.lines = Series()
        self.restarted: Counter[str] = Counter()
        self._worker, self._port, self._every_s = worker, port, every_s
        self._tell = tell
        self._pids: dict[str, int] = {}
        self._n_lines = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._began_s = time.monotonic()

    def start(self) -> None:
        """Begin; minutes count from here."""
        self._began_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Take no more samples."""
        self._stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        next_s = self._began_s
        while True:
            next_s += self._every_s
            if self._stopped.wait(max(0.0, next_s - time.monotonic())):
                return
            self._take()

    def _take(self) -> None:
        minute = (time.monotonic() - self._began_s) / 60
        family = dict(self._worker.children())
        if self._worker.process is not None:
            with contextlib.suppress(psutil.Error):
                family[PARENT] = psutil.Process(self._worker.process.pid)
        told = []
        for role, process in family.items():
            try:
                with process.oneshot():
                    taken = (
                        process.memory_info().rss / 1_024,
                        process.num_fds(),
                        process.num_threads(),
                    )
            except psutil.Error:
                continue
            known = self._pids.setdefault(role, process.pid)
            self.restarted[role] += known != process.pid
            self._pids[role] = process.pid
            for name, value in zip(TAKEN, taken, strict=True):
                _add(self.taken, (role, name), minute, value)
            told.append(f"{role} {taken[0] / 1_024:.1f}")
        for role, spec in ROLES.items():
            if role in family:
                page = self._page(self._port + spec.metrics_port)
                for name in STATE:
                    if name in page:
                        _add(self.state, (role, name), minute, page[name])
        n_lines = self._worker.said().count("\n")
        self.lines.minutes.append(minute)
        self.lines.values.append(n_lines - self._n_lines)
        self._n_lines = n_lines
        self._tell(f"MB: {', '.join(told)}; {n_lines:,} lines")

    def _page(self, port: int) -> Counter[str]:
        try:
            return counted(port)
        except OSError:
            return Counter()


def _add(
    series: dict[tuple[str, str], Series],
    place: tuple[str, str],
    minute: float,
    value: float,
) -> None:
    one = series.setdefault(place, Series())
    one.minutes.append(minute)
    one.values.append(value)


def counted(port: int) -> Counter[str]:
    """Numbers on a metrics page, summed over partitions.

    Raises
    ------
    OSError
        Where nothing answers there.
    """
    found: Counter[str] = Counter()
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=10) as page:
        for line in page.read().decode().splitlines():
            match = re.match(r"rankstream_(\w+?)(?:_total)?\{.*\} (\S+)", line)
            if match:
                found[match[1]] += int(float(match[2]))
    return found
