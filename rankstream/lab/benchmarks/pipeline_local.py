"""The in-process runtime over decoding the same canonical log and doing nothing."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from rankstream.lab.benchmarks.pipeline_repeats import (
    Figure,
    Run,
    in_turns,
    throughput_figure,
)
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import decode_event_record
from streams.local import LocalPipeline


class Timed(NamedTuple):
    """Seconds of a run, by the clock and of all threads on the processors."""

    wall_s: float
    cpu_s: float
    faults: list[str]


def local_figure(plan: Workload, n_repeats: int) -> Figure:
    """The log is in memory for both. A first run that does not count compiles."""
    written = list(canonical_records(plan, np.random.default_rng(1)))
    records = [(partition, value) for partition, value, _ in written]
    n_events = sum(count for _, _, count in written)
    n_bytes = sum(len(value) for _, value in records) / n_events
    settings = Settings(
        kafka=KafkaSettings(partitions=plan.n_partitions, learner_partitions=1)
    )

    def rival() -> list[str]:
        for _, value in records:
            decode_event_record(value)
        return []

    def ours() -> list[str]:
        return _faults(_replay(settings, records), plan.n_impressions, n_events)

    with as_in_workers():
        _replay(settings, records[:8])
        turns = in_turns(lambda: timed(ours), lambda: timed(rival), n_repeats)
    pairs = [
        (
            Run(n_events / mine.wall_s, n_bytes, mine.faults),
            Run(n_events / other.wall_s, n_bytes, other.faults),
        )
        for mine, other in turns
    ]
    seconds = {
        "wall_s": median(mine.wall_s for mine, _ in turns),
        "cpu_s": median(mine.cpu_s for mine, _ in turns),
        "rival_wall_s": median(other.wall_s for _, other in turns),
        "rival_cpu_s": median(other.cpu_s for _, other in turns),
    }
    name = (
        "in-process replay over decoding the same records, deterministic; "
        "{wall_s:.2f} s, {cpu_s:.2f} s of CPU, against {rival_wall_s:.2f} s, "
        "{rival_cpu_s:.2f} s of CPU"
    ).format(**seconds)
    return throughput_figure(name, pairs, goal=0.6, floor=0.3) | seconds


@contextlib.contextmanager
def as_in_workers() -> Iterator[None]:
    """Garbage is collected as rarely as in the workers."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def timed(work: Callable[[], list[str]]) -> Timed:
    """How long it takes; it says what is wrong with what it did."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    faults = work()
    return Timed(time.perf_counter() - wall_s, time.process_time() - cpu_s, faults)


def _faults(counters: dict[str, int], n_impressions: int, n_events: int) -> list[str]:
    expected = {
        "applied_impressions": n_impressions,
        "applied_clicks": n_events - n_impressions,
        "statistics_impressions": n_impressions,
    }
    return [
        f"{name} must be {value}; got {counters[name]}"
        for name, value in expected.items()
        if counters[name] != value
    ]


def _replay(settings: Settings, records: list[tuple[int, bytes]]) -> dict[str, int]:
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for partition, value in records:
        pipeline.fold_events(partition, value)
    pipeline.flush()
    return pipeline.counters()
