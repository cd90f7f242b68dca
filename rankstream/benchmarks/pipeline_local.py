"""The in-process runtime over decoding the same canonical log and doing nothing."""

import gc
import time

import numpy as np

from rankstream.benchmarks.workload import Workload, canonical_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import decode_event_record
from streams.local import LocalPipeline


def local_rates(
    plan: Workload, n_repeats: int
) -> tuple[list[float], list[float], list[str]]:
    """Events a second of each run, ours and the rival's, and what is wrong.

    The log is in memory for both. A first run that does not count compiles.
    """
    written = list(canonical_records(plan, np.random.default_rng(1)))
    records = [(partition, value) for partition, value, _ in written]
    n_events = sum(count for _, _, count in written)
    settings = Settings(
        kafka=KafkaSettings(partitions=plan.n_partitions, learner_partitions=1)
    )
    ours, rivals, wrong = [], [], []
    thresholds = gc.get_threshold()
    # As in the workers.
    gc.set_threshold(100_000, 50, 1_000)
    try:
        _replay(settings, records[:8])
        for _ in range(n_repeats):
            started = time.perf_counter()
            for _, value in records:
                decode_event_record(value)
            rivals.append(n_events / (time.perf_counter() - started))
            started = time.perf_counter()
            counters = _replay(settings, records)
            ours.append(n_events / (time.perf_counter() - started))
            if counters["applied_impressions"] != plan.n_impressions:
                wrong.append(f"{counters['applied_impressions']} impressions applied")
            if counters["applied_impressions"] + counters["applied_clicks"] != n_events:
                wrong.append(f"{counters['applied_clicks']} clicks applied")
            if counters["statistics_impressions"] != plan.n_impressions:
                wrong.append("the statistics hold other impressions")
    finally:
        gc.set_threshold(*thresholds)
    return ours, rivals, wrong


def _replay(settings: Settings, records: list[tuple[int, bytes]]) -> dict[str, int]:
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for partition, value in records:
        pipeline.fold_events(partition, value)
    pipeline.flush()
    return pipeline.counters()
