"""From the record that closes a window to the snapshot that a ranker sees.

A snapshot names how many interactions of each partition of `events` it has seen, so
each record that closes something has one moment at which all of that is visible.
"""

import asyncio
import dataclasses
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from producers.topic_reader import TopicReader
from rankstream.lab.benchmarks.pipeline.bed import (
    Bed,
    BenchmarkFailed,
    say,
)
from rankstream.lab.benchmarks.pipeline.logs import ResumePositions, new_producer
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, decode_snapshot, store_of
from rankstream.wire.events import Frontier, Impression, decode_event_record
from rankstream.wire.topics import EVENTS, full_name

POLL_S = 0.005
PATIENCE_S = 60.0

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
