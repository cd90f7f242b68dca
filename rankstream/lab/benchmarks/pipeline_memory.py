"""Memory of what is open and of what is counted, each in a process of its own.

Measured as growth of the resident memory, so that all that comes with it is in it.
"""

import numpy as np

from rankstream.lab.benchmarks.fold_log import (
    ONE_PARTITION,
    fold_all,
    folded_records,
    in_fresh_process,
    resident,
)
from rankstream.lab.benchmarks.pipeline_repeats import Figure, cost_figure
from rankstream.lab.benchmarks.workload import Workload, canonical_elements
from rankstream.settings import Settings, TimeSettings
from rankstream.wire.events import DETERMINISTIC, Impression
from streams.partition_fold import partition_fold


def open_figure(n_impressions: int, n_repeats: int) -> Figure:
    """Bytes of an open impression with its clicks."""
    found = [in_fresh_process(open_bytes, n_impressions) for _ in range(n_repeats)]
    name = f"an open impression with its clicks, {n_impressions:,} of them"
    return cost_figure(name, found, "bytes", before=469.0, goal=350.0, floor=569.0)


def list_figure(n_impressions: int, n_repeats: int) -> Figure:
    """Bytes of a list in a scope, for each pair of item and rank in a group."""
    found = [in_fresh_process(list_bytes, n_impressions) for _ in range(n_repeats)]
    n_pairs = found[0][1]
    name = (
        "a list in a scope, all included, for each pair of item and rank in a group; "
        f"{n_pairs:,} pairs"
    )
    each = [n_bytes / n for n_bytes, n in found]
    return cost_figure(name, each, "bytes", before=220.0, floor=143.0)


def open_bytes(n_impressions: int) -> float:
    """Growth for an impression while no window closes."""
    settings = Settings(kafka=ONE_PARTITION)
    # All within a window: it lasts five minutes.
    plan = _plan(n_impressions, per_second=n_impressions / 200.0)
    records = [record for record, _ in folded_records(plan)][:-1]
    fold = partition_fold(0, settings)
    before = resident()
    for record in records:
        fold.fold(record)
    return (resident() - before) / fold.join.n_open


def list_bytes(n_impressions: int) -> tuple[int, int]:
    """Growth for all lists where next to nothing is open, and how many pairs."""
    settings = Settings(
        kafka=ONE_PARTITION, time=TimeSettings(click_window_ms=1_000, remember_ms=1_000)
    )
    plan = _plan(n_impressions, per_second=400.0)
    n_pairs = pairs_of(plan, settings.statistics.groups)
    records = [record for record, _ in folded_records(plan)]
    before = resident()
    fold, changes = fold_all(settings, records)
    del changes
    grown = resident() - before
    if fold.join.n_open:
        raise ValueError(f"all must be closed; {fold.join.n_open} are open")
    return grown, n_pairs


def pairs_of(plan: Workload, n_groups: int) -> int:
    """Items at ranks that the lists of a log have, in each query and group."""
    seen = set()
    for _, _, element in canonical_elements(plan, np.random.default_rng(1)):
        if isinstance(element, Impression):
            seen.add((element.query_id, element.unit % n_groups, element.shown))
    return sum(len(shown) // 2 for _, _, shown in seen)


def _plan(n_impressions: int, *, per_second: float) -> Workload:
    return Workload(n_impressions, DETERMINISTIC, per_second=per_second, n_partitions=1)
