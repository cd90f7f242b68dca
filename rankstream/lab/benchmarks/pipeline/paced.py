"""What is measured while events come at a steady pace: snapshots, and a killed role.

A snapshot names how many interactions of each partition of `events` it has seen, so
each record that closes something has one moment at which all of that is visible to a
ranker. A role that was killed is back when all partitions are restored, with much state
to read, and fold what is new.
"""

import asyncio
import contextlib
import dataclasses
import os
import re
import signal
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

import numpy as np

from producers.topic_reader import TopicReader
from rankstream.lab.benchmarks.pipeline.bed import (
    Bed,
    BenchmarkFailed,
    Worker,
    say,
)
from rankstream.lab.benchmarks.pipeline.logs import (
    ResumePositions,
    await_end,
    new_producer,
    preload,
)
from rankstream.lab.benchmarks.pipeline.recount import Recount
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, decode_snapshot, store_of
from rankstream.wire.events import Frontier, Impression, decode_event_record
from rankstream.wire.topics import EVENTS, full_name
from streams.worker_roles import kinds_of

POLL_S = 0.005
PATIENCE_S = 60.0
RESTART_PATIENCE_S = 120.0

_BEHIND = re.compile(
    r"event=restored partition=(\S+) .*checkpoint=(-?\d+) position=(-?\d+)"
)
_CAUGHT_UP = re.compile(r"event=caught-up partition=(\S+)")
_RESTORED = re.compile(r"event=restored .*records=(\d+) keys=(\d+) ")

Record = tuple[int, bytes, int]
"""Partition, value and number of events."""

Seen = dict[int, list[tuple[int, float]]]
"""For each partition of `events`: interactions in a snapshot, and when it was seen."""


class Watcher(threading.Thread):
    """Looks at Redis all the time, as a ranker would."""

    def __init__(self, store: SnapshotStore, model: str) -> None:
        super().__init__(daemon=True)
        self.seen: Seen = defaultdict(list)
        self.done = threading.Event()
        self._store = store
        self._model = model

    def run(self) -> None:
        """Until `done`."""
        known = None
        while not self.done.wait(POLL_S):
            answer = self._store.current(self._model, known)
            if answer is None or answer[1] is None:
                continue
            known, at_s = answer[0], time.monotonic()
            for source, reached in decode_snapshot(answer[1]).sources:
                marks = self.seen[source]
                if not marks or marks[-1][0] < reached:
                    marks.append((reached, at_s))

    def total(self) -> int:
        """Interactions in the last snapshot."""
        return sum(marks[-1][0] for marks in list(self.seen.values()))


def latencies_s(
    bed: Bed, settings: Settings, plan: Workload, per_second: float, paced_s: float
) -> list[float]:
    """Seconds of each paced record that closes anything.

    Parameters
    ----------
    plan
        Its number of impressions is set here: those of one window at first, flat out,
        then as many as are paced.
    per_second
        Events.
    """
    window_ms = settings.time.click_window_ms
    n_first = int(plan.per_second * (window_ms // 1_000 + 40))
    n_paced = int(per_second * paced_s / (1.0 + plan.clicks_per_list))
    plan = dataclasses.replace(plan, n_impressions=n_first + n_paced)
    records = list(canonical_records(plan, np.random.default_rng(1)))
    # The last records end the log: nobody waits for what they close.
    records = records[: -plan.n_partitions]
    closed = _closed_by(records, window_ms)
    n_before = _records_of(records, n_first * (1.0 + plan.clicks_per_list))
    say(
        f"latency: {n_before:,} records at once, then {len(records) - n_before:,} paced"
    )
    store = store_of(settings)
    watcher = Watcher(store, "model")
    wanted_before = _latest(records[:n_before], closed)
    wanted = _latest(records, closed)
    lengths = Counter(partition for partition, _, _ in records[:n_before])

    def is_settled() -> bool:
        # The burst's state is written, as it would be long before in a steady stream.
        worker.check()
        return watcher.total() >= wanted_before and _is_written(positions, lengths)

    with (
        TopicReader(settings) as reader,
        bed.worker(settings, "fold", "learn", "publish") as worker,
    ):
        positions = ResumePositions(reader, "fold")
        watcher.start()
        sent = asyncio.run(_feed(settings, records, n_before, per_second, is_settled))
        deadline = time.monotonic() + PATIENCE_S
        while watcher.total() < wanted and time.monotonic() < deadline:
            worker.check()
            time.sleep(0.1)
        got = watcher.total()
    watcher.done.set()
    watcher.join()
    store.close()
    if got < wanted:
        raise BenchmarkFailed(f"{wanted} interactions must be learned; got {got}")
    return _waits(records, closed, sent, watcher.seen)


async def _feed(
    settings: Settings,
    records: list[Record],
    n_before: int,
    per_second: float,
    is_settled: Callable[[], bool],
) -> dict[int, float]:
    """When each paced record was sent, by its number."""
    topic = full_name(settings.namespace, EVENTS)
    producer = new_producer(settings.kafka.bootstrap)
    sent: dict[int, float] = {}
    await producer.start()
    try:
        for partition, value, _ in records[:n_before]:
            await producer.send(topic, value, partition=partition)
        await producer.flush()
        while not is_settled():
            await asyncio.sleep(0.1)
        due_s = time.monotonic()
        for n, (partition, value, n_events) in enumerate(records[n_before:], n_before):
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            sent[n] = time.monotonic()
            await producer.send(topic, value, partition=partition)
            due_s += n_events / per_second
        await producer.flush()
    finally:
        await producer.stop()
    return sent


def _is_written(positions: ResumePositions, lengths: Counter[int]) -> bool:
    """Whether state was written behind so many records of each partition."""
    reached = positions()
    return all(reached.get((EVENTS, one), -1) >= n for one, n in lengths.items())


def _closed_by(records: list[Record], window_ms: int) -> list[int]:
    """Interactions of its partition that are closed once a record was folded."""
    times: dict[int, list[int]] = defaultdict(list)
    closed = []
    for partition, value, _ in records:
        n_closed = 0
        for element in decode_event_record(value).elements:
            if isinstance(element, Impression):
                times[partition].append(element.at_ms)
            elif isinstance(element, Frontier):
                n_closed = bisect_right(times[partition], element.at_ms - window_ms)
        closed.append(n_closed)
    return closed


def _latest(records: list[Record], closed: list[int]) -> int:
    """Interactions of all partitions after the last of the records."""
    of_partition = {
        partition: n for (partition, _, _), n in zip(records, closed, strict=False)
    }
    return sum(of_partition.values())


def _records_of(records: list[Record], n_events: float) -> int:
    """How many records hold the first events."""
    total = 0
    for n, (_, _, count) in enumerate(records):
        total += count
        if total >= n_events:
            return n + 1
    return len(records)


def _waits(
    records: list[Record], closed: list[int], sent: dict[int, float], seen: Seen
) -> list[float]:
    waits = []
    before: dict[int, int] = {}
    for n, (partition, _, _) in enumerate(records):
        if n in sent and closed[n] > before.get(partition, 0):
            marks = seen[partition]
            at = bisect_left(marks, closed[n], key=lambda mark: mark[0])
            waits.append(marks[at][1] - sent[n])
        before[partition] = closed[n]
    return waits


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
    deadline = time.monotonic() + RESTART_PATIENCE_S
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
