"""CPU of each process of a run by its name, while events come or none do."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, Worker
from rankstream.lab.benchmarks.pipeline.meter import Sampled, cpu_s, idle_s
from streams.kafka.processes.preloader import short_name

BROKER = "broker"
IDLE = "idle"
"""What all cores together did not do."""

Named = Iterable[tuple[int, str]]
"""Process ids with their names; what is of one name adds up."""


class Processes(Sampled):
    """Samples of the CPU seconds of processes.

    Parameters
    ----------
    running
        Says which there are; one that has ended keeps what it took.
    """

    def __init__(self, running: Callable[[], Named]) -> None:
        super().__init__()
        self._running = running
        self._took_s: dict[tuple[str, int], float] = {}
        self._samples: list[dict[str, float]] = []

    def sample(self) -> None:
        """Look once."""
        with contextlib.suppress(BenchmarkFailed, OSError):
            for pid, name in self._running():
                self._took_s[name, pid] = cpu_s(pid)
        found: dict[str, float] = {}
        for (name, _), seconds in self._took_s.items():
            found[name] = found.get(name, 0.0) + seconds
        found[IDLE] = idle_s()
        self._at_s.append(time.time())
        self._samples.append(found)

    def between(self, start_s: float, end_s: float) -> dict[str, float]:
        """CPU seconds by name from one moment to another, seconds since 1970.

        Raises
        ------
        BenchmarkFailed
            Where no sample was taken before the start, or none after the end.
        """
        self._check_around(start_s, end_s)
        names = self._samples[-1]
        took = {name: [each.get(name, 0.0) for each in self._samples] for name in names}
        return {
            name: float(np.diff(np.interp([start_s, end_s], self._at_s, seconds))[0])
            for name, seconds in took.items()
        }


def of_workers(bed: Bed, workers: Sequence[Worker], *roles: str) -> Callable[[], Named]:
    """The broker, the roles of workers, and `watching`: what starts them."""
    known = {short_name(role): role for role in roles}

    def running() -> Named:
        yield bed.broker_pid(), BROKER
        for worker in workers:
            for pid, name in worker.processes():
                yield pid, known.get(name, "watching")

    return running


def of_rival(bed: Bed, pid: int) -> Callable[[], Named]:
    """The broker and the rival."""
    return lambda: [(bed.broker_pid(), BROKER), (pid, "application")]


def resident_mb(running: Named) -> dict[str, float]:
    """Megabytes of memory by name; what processes share is shared out (PSS)."""
    found: dict[str, float] = {}
    for pid, name in running:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
        (kib,) = re.findall(r"^Pss: +(\d+) kB$", told, re.MULTILINE)
        found[name] = found.get(name, 0.0) + int(kib) * 1_024 / 1e6
    return found


def shares_line(used: dict[str, float], lasted_s: float) -> str:
    """One line: how the cores were shared."""
    n_cores = os.cpu_count() or 1
    each = {name: s / (n_cores * lasted_s) for name, s in used.items()}
    others = max(0.0, 1.0 - sum(each.values()))
    told = ", ".join(f"{name} {share:.0%}" for name, share in each.items())
    return f"{n_cores} cores: {told}, other work {others:.0%}"
