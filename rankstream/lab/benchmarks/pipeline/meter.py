"""What the processes of a run take of the cores while it is measured, and what binds.

Sampled from outside while the run goes on, as only its commits say afterwards when the
measured part began and ended. Between two samples time is taken to pass evenly.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankstream.lab.benchmarks.harness import Run
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.logs import Part, Progress, await_end
from rankstream.settings import Settings

TICKS = os.sysconf("SC_CLK_TCK")

FULL, SHARED = 0.85, 0.1
"""A thread that runs so much of the time has no more to give; so much waiting for a
core, or so little of the cores idle, says that there are too few of them."""


class Usage(NamedTuple):
    """Seconds of CPU, of waiting for a core (`*_waits_s`), and of cores doing nothing.

    `main` is the role's first thread, `consumer` all its others: those but Faust's
    thread that reads do next to nothing.
    """

    role_s: float
    main_s: float
    main_waits_s: float
    consumer_s: float
    consumer_waits_s: float
    broker_s: float
    idle_s: float

    def us_each(self, n_events: int) -> dict[str, float]:
        """Microseconds of CPU an event, by process and thread."""
        seconds = {
            "role": self.role_s,
            "main thread": self.main_s,
            "consumer thread": self.consumer_s,
            "broker": self.broker_s,
        }
        return {name: 1e6 * s / max(1, n_events) for name, s in seconds.items()}


class Sampled:
    """Samples, each with its time, that are taken while something goes on."""

    def __init__(self) -> None:
        self._at_s: list[float] = []

    def sample(self) -> None:
        """Look once."""
        raise NotImplementedError

    def sampling(self, check: Callable[[], object]) -> Callable[[], None]:
        """A check that looks, too."""

        def both() -> None:
            check()
            self.sample()

        return both

    def _check_around(self, start_s: float, end_s: float) -> None:
        if not self._at_s or not self._at_s[0] <= start_s <= end_s <= self._at_s[-1]:
            raise BenchmarkFailed(
                "samples must lie before and after what is measured, "
                f"{start_s:.3f} to {end_s:.3f}; they are from "
                f"{self._at_s[:1]} to {self._at_s[-1:]}"
            )


class Meter(Sampled):
    """Samples of a role and its broker.

    Parameters
    ----------
    broker, role
        Their process ids, asked for at each sample; they raise `BenchmarkFailed` where
        there is none yet.
    """

    def __init__(self, broker: Callable[[], int], role: Callable[[], int]) -> None:
        super().__init__()
        self._broker = broker
        self._role = role
        self._samples: list[Usage] = []

    def sample(self) -> None:
        """Look once; nothing where a process is not there."""
        with contextlib.suppress(BenchmarkFailed, OSError):
            found = _usage(self._broker(), self._role())
            self._at_s.append(time.time())
            self._samples.append(found)

    def between(self, start_s: float, end_s: float) -> Usage:
        """What was used from one moment to another, seconds since 1970.

        Raises
        ------
        BenchmarkFailed
            Where no sample was taken before the start, or none after the end.
        """
        self._check_around(start_s, end_s)
        return Usage(
            *(
                float(np.interp(end_s, self._at_s, each))
                - float(np.interp(start_s, self._at_s, each))
                for each in zip(*self._samples, strict=True)
            )
        )

    def measured(self, part: Part, event_bytes: float, faults: list[str]) -> Run:
        """A run whose measured part is this one."""
        used = self.between(part.start_ms / 1e3, part.end_ms / 1e3)
        return Run(
            part.rate,
            event_bytes,
            faults,
            part.lasted_s,
            used.us_each(part.n_events),
            what_binds(used, part.lasted_s, os.cpu_count() or 1),
        )


def metered(
    bed: Bed, settings: Settings, role: str
) -> tuple[Meter, dict[str, list[Progress]]]:
    """Samples of a role that takes its log to the end alone, and of the broker.

    With the commits of the role by state topic.
    """
    with bed.worker(settings, role) as worker:
        meter = Meter(bed.broker_pid, lambda: worker.child(role))
        commits = await_end(settings, role, meter.sampling(worker.check))
        meter.sample()
    return meter, commits


def what_binds(used: Usage, lasted_s: float, n_cores: int) -> str:
    """One line: which thread has no more to give, else whether the cores have.

    Parameters
    ----------
    used
        In `lasted_s` seconds, over 0.
    """
    threads = {
        "main thread": (used.main_s / lasted_s, used.main_waits_s / lasted_s),
        "consumer thread": (
            used.consumer_s / lasted_s,
            used.consumer_waits_s / lasted_s,
        ),
    }
    name, (ran, waited) = max(threads.items(), key=lambda item: sum(item[1]))
    all_s = n_cores * lasted_s
    idle = used.idle_s / all_s
    others = max(0.0, 1.0 - idle - (used.role_s + used.broker_s) / all_s)
    of_cores = f"{n_cores} cores: idle {idle:.0%}, other work {others:.0%}"
    it = f"{name} ran {ran:.0%} of the time and waited for a core {waited:.0%}"
    if ran >= FULL:
        return f"its {name} binds: {it}; {of_cores}"
    if waited >= SHARED or idle < SHARED:
        return f"the cores bind: {it}; {of_cores}"
    return f"waiting binds, not CPU: {it}; {of_cores}"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _usage(broker: int, role: int) -> Usage:
    main, others = np.zeros(2), np.zeros(2)
    for task in Path(f"/proc/{role}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            into = main if task.name == str(role) else others
            into += _scheduled(task)
    (main_s, main_waits_s), (consumer_s, consumer_waits_s) = main, others
    return Usage(
        cpu_s(role),
        float(main_s),
        float(main_waits_s),
        float(consumer_s),
        float(consumer_waits_s),
        cpu_s(broker),
        idle_s(),
    )


def _scheduled(task: Path) -> tuple[float, float]:
    """Seconds that a thread ran, and that it waited for a core."""
    ran, waited, _ = (task / "schedstat").read_text().split()
    return int(ran) / 1e9, int(waited) / 1e9


def idle_s() -> float:
    """Seconds that all cores together did nothing; waiting for a disk is nothing."""
    fields = Path("/proc/stat").read_text().split(None, 6)
    return (int(fields[4]) + int(fields[5])) / TICKS
