"""What the fold keeps in memory, and that neither it nor the CPU of an event grows.

A log of many days, with queries that are never asked again after their day. Sums leave
by eras of two days, each two to four days after it was counted; so what is compared are
the peaks of several days. Memory is what the process has resident.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankstream.lab.benchmarks.folded_log import ONE_PARTITION, fold_all, folded_records
from rankstream.lab.benchmarks.harness import (
    Figure,
    cost_figure,
    in_fresh_process,
    resident,
)
from rankstream.lab.benchmarks.workload import (
    DISORDER_MS,
    RECORD_EVENTS,
    Workload,
    canonical_elements,
)
from rankstream.settings import Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    SCHEMA,
    Frontier,
    Impression,
    encode_record,
)
from rankstream.wire.topics import EVENTS, STATISTICS
from streams.partition_fold import partition_fold
from streams.stage import Change, SourceRecord

DAY_S = 86_400
N_QUERIES = 5_000

ERA_DAYS = 2
PEAK_DAYS = 2 * ERA_DAYS + 1
"""Within so many days as much is kept as ever, wherever eras begin."""


class Day(NamedTuple):
    """At the end of a day.

    Resident bytes, keys of `statistics`, those that left on it, CPU seconds an event.
    """

    resident: int
    n_keys: int
    n_left: int
    event_s: float


def measure(*, quick: bool = False) -> list[Figure]:
    """All figures."""
    n_impressions, n_days = (2_000, 2 * PEAK_DAYS) if quick else (20_000, 50)
    settings = Settings(
        kafka=ONE_PARTITION, time=TimeSettings(keep_ms=ERA_DAYS * DAY_S * 1_000)
    )
    days = long_run(settings, n_impressions, n_days)
    return [
        *growth(days),
        open_figure(10 * n_impressions, 1),
        list_figure(10 * n_impressions, 1),
    ]


def long_run(settings: Settings, n_impressions: int, n_days: int) -> list[Day]:
    """Day after day, with a checkpoint at the end of each."""
    fold = partition_fold(0, settings)
    keys: set[int] = set()
    days, sequence = [], 0
    for number in range(n_days):
        plan = Workload(
            n_impressions,
            DETERMINISTIC,
            n_queries=N_QUERIES,
            per_second=n_impressions / DAY_S,
            n_partitions=1,
            first=number * n_impressions,
            first_query=number * N_QUERIES,
        )
        records, n_events = records_of(plan, number, sequence)
        sequence += len(records)
        started = time.process_time()
        for record in records:
            fold.fold(record)
            fold.outputs()
        fold.settle()
        changes = list(fold.changes())
        spent_s = time.process_time() - started
        n_left = _keep_keys(keys, changes)
        del records, changes
        days.append(Day(resident(), len(keys), n_left, spent_s / n_events))
    return days


def _keep_keys(keys: set[int], changes: Sequence[Change]) -> int:
    """Follow which keys of `statistics` there are; how many left."""
    n_left = 0
    for topic, key, value in changes:
        if topic != STATISTICS:
            continue
        if value is None:
            n_left += hash(key) in keys
            keys.discard(hash(key))
        else:
            keys.add(hash(key))
    return n_left


def growth(days: Sequence[Day]) -> list[Figure]:
    """The last days over the first: peaks of memory and keys, median seconds.

    Void where nothing left in the last days: then nothing was shown.
    """
    first, last = days[:PEAK_DAYS], days[-PEAK_DAYS:]
    n_left = sum(day.n_left for day in last)
    about = f"of {len(days)} days over the first {PEAK_DAYS}"
    early_s = float(np.median([day.event_s for day in first[1:]]))
    late_s = float(np.median([day.event_s for day in last[1:]]))
    rows = (
        (
            f"resident memory at the peak of the last {PEAK_DAYS} {about}; ever-new "
            f"queries, eras of {ERA_DAYS} days",
            max(day.resident for day in last) / 2**20,
            "MiB",
            max(day.resident for day in first) / 2**20,
            (1.05, 1.25),
        ),
        (
            f"keys of {STATISTICS} at the same peaks; {n_left:,} left in the last",
            max(day.n_keys for day in last),
            "keys",
            max(day.n_keys for day in first),
            (1.05, 1.1),
        ),
        (
            "CPU of an event in the last days over that in the first",
            late_s * 1e6,
            "us",
            early_s * 1e6,
            (1.1, 1.4),
        ),
    )
    figures = [
        cost_figure(
            name, [value], unit, before=rival, goal=goal * rival, floor=floor * rival
        )
        for name, value, unit, rival, (goal, floor) in rows
    ]
    return figures if n_left else [figure | {"ratio": None} for figure in figures]


def records_of(
    plan: Workload, day: int, sequence: int
) -> tuple[list[SourceRecord], int]:
    """The records of a plan, numbered on, and how many events they hold."""
    events = list(canonical_elements(plan, np.random.default_rng(day)))
    records = []
    for start in range(0, len(events), RECORD_EVENTS):
        part = events[start : start + RECORD_EVENTS]
        elements: list[Any] = [element for _, _, element in part]
        elements.append(Frontier(0, 1, part[-1][1] - DISORDER_MS, ACTIVE))
        sequence += 1
        value = encode_record([SCHEMA, 0, sequence, elements])
        records.append(SourceRecord(EVENTS, 0, sequence, 0, None, value, ()))
    return records, len(events)


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
