"""From kill -9 of the fold role to its first fold, with much state to read back."""

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import numpy as np

from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, Worker
from rankstream.lab.benchmarks.pipeline.logs import await_end, preload
from rankstream.lab.benchmarks.pipeline.recount import Recount
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, full_name
from streams.worker_roles import kinds_of

PATIENCE_S = 120.0

_BEHIND = re.compile(
    r"event=restored partition=(\S+) .*checkpoint=(-?\d+) position=(-?\d+)"
)
_CAUGHT_UP = re.compile(r"event=caught-up partition=(\S+)")
_READY = re.compile(r"event=(restored|caught-up) ")
_RESTORED = re.compile(r"event=restored .*records=(\d+) keys=(\d+) ")


class Restart(NamedTuple):
    """How long it took, what was read back, and what is wrong with the outputs.

    `n_bytes` is what the state topics held at the kill, whether anybody needs it or
    not: all of it is read.
    """

    seconds: float
    n_keys: int
    n_records: int
    n_bytes: int
    wrong: list[str]


class Feed(threading.Thread):
    """Writes a canonical log at a steady pace until told to end, and counts it."""

    def __init__(self, settings: Settings, plan: Workload, per_second: float) -> None:
        super().__init__(daemon=True)
        self.recount = Recount()
        self.is_over = threading.Event()
        self._settings = settings
        self._plan = plan
        self._per_second = per_second

    def run(self) -> None:
        """Write, and close everything at last."""
        preload(self._settings.kafka.bootstrap, self._paced())

    def _paced(self) -> Iterator[tuple[str, int, bytes]]:
        topic = full_name(self._settings.namespace, EVENTS)
        due_s = time.monotonic()
        rng = np.random.default_rng(1)
        records = canonical_records(self._plan, rng, is_over=self.is_over.is_set)
        for partition, value, n_events in records:
            time.sleep(max(0.0, due_s - time.monotonic()))
            due_s += n_events / self._per_second
            self.recount.take(partition, value)
            yield topic, partition, value


def restart(
    bed: Bed, settings: Settings, plan: Workload, per_second: float, paced_s: float
) -> Restart:
    """Kill the fold role, and see it come back.

    Events come at a steady pace before, during and after the kill. Counts until the
    last partition is restored and folds what is new.
    """
    width = settings.kafka.partitions
    feed = Feed(settings, plan, per_second)
    with bed.worker(settings, "fold") as worker:
        feed.start()
        ends_s = time.monotonic() + paced_s
        while time.monotonic() < ends_s:
            worker.check()
            time.sleep(0.5)
        n_lines = len(worker.lines())
        n_bytes = _state_bytes(bed, settings)
        killed_s = time.time()
        os.kill(worker.child("fold"), signal.SIGKILL)
        lines = _restarted(worker, n_lines, width)
        feed.is_over.set()
        feed.join()
        await_end(settings, "fold", worker.check)
    restored = [found for line in lines if (found := _RESTORED.search(line))]
    is_ready = ("event=restored", "event=caught-up")
    ready = [
        _seconds_of(line) for line in lines if any(each in line for each in is_ready)
    ]
    n_records = sum(int(found[1]) for found in restored)
    n_keys = sum(int(found[2]) for found in restored)
    wrong = feed.recount.disagreements(settings)
    return Restart(max(ready) - killed_s, n_keys, n_records, n_bytes, wrong)


def _state_bytes(bed: Bed, settings: Settings) -> int:
    """Bytes of the fold's state topics as the broker stores them, markers and all."""
    names = [
        full_name(settings.namespace, topic)
        for kind in kinds_of("fold")
        for topic in kind.state_topics
    ]
    data = bed.broker.folder / "data"
    n_bytes = 0
    for segment in (each for name in names for each in data.glob(f"{name}-*/*.log")):
        with contextlib.suppress(FileNotFoundError):  # it was just compacted
            n_bytes += segment.stat().st_size
    return n_bytes


def _restarted(worker: Worker, n_lines: int, n_partitions: int) -> list[str]:
    """What was logged until all partitions are back, and a moment longer."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = worker.lines()[n_lines:]
        if sum("event=restored" in line for line in lines) >= n_partitions:
            behind = {m[1] for m in map(_BEHIND.search, lines) if m and m[2] != m[3]}
            done = {m[1] for m in map(_CAUGHT_UP.search, lines) if m}
            if behind <= done:
                return lines
        worker.check()
        time.sleep(0.05)
    logged = "\n".join(worker.lines()[n_lines:])
    raise BenchmarkFailed(f"the worker must be back after kill -9; it logged {logged}")


def _seconds_of(line: str) -> float:
    """The time of a log line, seconds since 1970."""
    text = " ".join(line.split()[:2]).replace(",", ".")
    return datetime.fromisoformat(text).astimezone().timestamp()
