"""From kill -9 of the fold role to its first fold, with much state to read back."""

import os
import re
import signal
import time
from datetime import datetime

import numpy as np

from rankstream.commands.benchmarks.pipeline_bed import Bed, BenchmarkFailed, Worker
from rankstream.commands.benchmarks.pipeline_logs import await_quiet, preload
from rankstream.commands.benchmarks.pipeline_recount import Recount
from rankstream.commands.benchmarks.workload import Workload, canonical_records
from rankstream.settings import Settings
from rankstream.topics import EVENTS, full_name

AFTER_CUT = 8
"""Records at the end that are folded between the last cut and the kill."""

PATIENCE_S = 120.0

_RESTORED = re.compile(r"event=restored .*records=(\d+) keys=(\d+) ")


def restart_s(
    bed: Bed, settings: Settings, plan: Workload
) -> tuple[float, int, int, list[str]]:
    """Seconds, keys, records read back, and what is wrong with the outputs.

    Counts until the last partition is restored and the first has caught up, where any
    has records between its last cut and its marker.
    """
    topic = full_name(settings.namespace, EVENTS)
    recount = Recount()
    records = []
    for partition, value, _ in canonical_records(plan, np.random.default_rng(1)):
        recount.take(partition, value)
        records.append((topic, partition, value))
    before, after = records[:-AFTER_CUT], records[-AFTER_CUT:]
    width = settings.kafka.partitions
    preload(settings.kafka.bootstrap, before)
    with bed.worker(settings, "fold") as worker:
        await_quiet(settings, ("fold-state",), width, worker.check)
        preload(settings.kafka.bootstrap, after[: AFTER_CUT // 2])
        time.sleep(0.5)
        n_lines = len(worker.lines())
        killed_s = time.time()
        for child in worker.children():
            os.kill(child, signal.SIGKILL)
        lines = _restarted(worker, n_lines, width)
        preload(settings.kafka.bootstrap, after[AFTER_CUT // 2 :])
        await_quiet(settings, ("fold-state",), width, worker.check)
    restored = [found for line in lines if (found := _RESTORED.search(line))]
    ready = [_seconds_of(line) for line in lines if "event=restored" in line]
    caught_up = [_seconds_of(line) for line in lines if "event=caught-up" in line]
    n_records = sum(int(found[1]) for found in restored)
    n_keys = sum(int(found[2]) for found in restored)
    first_fold_s = min(caught_up) if caught_up else max(ready)
    wrong = recount.disagreements(settings)
    return first_fold_s - killed_s, n_keys, n_records, wrong


def _restarted(worker: Worker, n_lines: int, n_partitions: int) -> list[str]:
    """What was logged until all partitions are back, and a moment longer."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = worker.lines()[n_lines:]
        if sum("event=restored" in line for line in lines) >= n_partitions:
            time.sleep(1.0)
            return worker.lines()[n_lines:]
        worker.check()
        time.sleep(0.05)
    logged = "\n".join(worker.lines()[n_lines:])
    raise BenchmarkFailed(f"the worker must be back after kill -9; it logged {logged}")


def _seconds_of(line: str) -> float:
    """The time of a log line, seconds since 1970."""
    text = " ".join(line.split()[:2]).replace(",", ".")
    return datetime.fromisoformat(text).astimezone().timestamp()
