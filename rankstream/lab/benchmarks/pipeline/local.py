"""The in-process runtime over decoding the same log; the fold with rankers compared."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np

from rankstream.lab.benchmarks.evaluation import (
    COMPARED,
    N_COMPARED,
    WITHOUT,
    compared_records,
    n_credited,
)
from rankstream.lab.benchmarks.harness import (
    Figure,
    Run,
    in_turns,
    throughput_figure,
    timed,
)
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import decode_event_record
from streams.local import LocalPipeline

Faults = list[str]


class Took(NamedTuple):
    """Seconds of a run, by the clock and of all threads on the processors."""

    wall_s: float
    cpu_s: float
    faults: Faults


def local_figure(plan: Workload, n_repeats: int) -> Figure:
    """The log is in memory for both. A first run that does not count compiles."""
    written = list(canonical_records(plan, np.random.default_rng(1)))
    records = [(partition, value) for partition, value, _ in written]
    n_events = sum(count for _, _, count in written)
    n_bytes = sum(len(value) for _, value in records) / n_events
    settings = Settings(
        kafka=KafkaSettings(partitions=plan.n_partitions, learner_partitions=1)
    )

    def rival() -> Faults:
        for _, value in records:
            decode_event_record(value)
        return []

    def ours() -> Faults:
        return _faults(_replay(settings, records), plan.n_impressions, n_events)

    _replay(settings, records[:8])
    turns = _in_turns(ours, rival, n_repeats)
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


def compared_figure(n_impressions: int, n_repeats: int) -> Figure:
    """By seconds of CPU, in process; only the settings name the experiment or not."""
    records, n_events = compared_records(n_impressions)
    n_bytes = sum(map(len, records)) / n_events

    def credited(settings: Settings, expected: int) -> Faults:
        found = n_credited(settings, records)
        if found == expected:
            return []
        return [f"compared_credited must be {expected}; got {found}"]

    ours, theirs = (
        partial(credited, COMPARED, n_impressions),
        partial(credited, WITHOUT, 0),
    )
    ours()
    runs = [
        (
            Run(n_events / mine.cpu_s, n_bytes, mine.faults),
            Run(n_events / other.cpu_s, n_bytes, other.faults),
        )
        for mine, other in _in_turns(ours, theirs, n_repeats)
    ]
    name = (
        f"{N_COMPARED} rankers compared on every list, over the same log without; CPU"
    )
    return throughput_figure(name, runs, goal=0.5, floor=0.3)


def _in_turns(
    ours: Callable[[], Faults], rival: Callable[[], Faults], n_repeats: int
) -> list[tuple[Took, Took]]:
    with _as_in_workers():
        return in_turns(lambda: _took(ours), lambda: _took(rival), n_repeats)


@contextlib.contextmanager
def _as_in_workers() -> Iterator[None]:
    """Garbage is collected as rarely as in the workers."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _took(work: Callable[[], Faults]) -> Took:
    cpu = timed(lambda: timed(work, time.perf_counter))
    return Took(cpu.result.seconds, cpu.seconds, cpu.result.result)


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
