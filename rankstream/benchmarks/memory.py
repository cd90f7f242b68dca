"""What the fold keeps in memory, and that neither it nor the time for an event grows.

A log of many days, with queries that are never asked again after their day, and a
retention of one day. Memory is what the process has resident.
"""

import gc
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankstream.benchmarks.workload import (
    DISORDER_MS,
    RECORD_EVENTS,
    START_MS,
    Workload,
    canonical_elements,
)
from rankstream.settings import KafkaSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    SCHEMA,
    Frontier,
    encode_record,
)
from rankstream.wire.topics import EVENTS
from streams.fold.canonical_fold import CanonicalFold
from streams.partition_fold import partition_fold
from streams.stage import SourceRecord
from streams.warm_up import warm_up

DAY_S = 86_400
N_QUERIES = 5_000

Figure = dict[str, Any]


class Day(NamedTuple):
    """After a day: resident bytes, pairs in the tables, seconds for an event."""

    resident: int
    n_pairs: int
    event_s: float


def measure(*, quick: bool = False) -> list[Figure]:
    """All figures."""
    n_impressions, n_days = (2_000, 10) if quick else (20_000, 50)
    settings = Settings(
        kafka=KafkaSettings(partitions=1, learner_partitions=1),
        time=TimeSettings(keep_ms=DAY_S * 1_000),
    )
    warm_up(settings)
    return [*long_run(settings, n_impressions, n_days), *sizes(settings, n_impressions)]


def long_run(settings: Settings, n_impressions: int, n_days: int) -> list[Figure]:
    """Day after day; the first tenth fills what the retention keeps."""
    fold = partition_fold(0, settings)
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
        started = time.perf_counter()
        for record in records:
            fold.fold(record)
            fold.outputs()
        fold.settle()
        list(fold.changes())
        spent_s = time.perf_counter() - started
        del records
        days.append(Day(resident(), n_pairs(fold), spent_s / n_events))
    tenth = max(3, n_days // 10)
    early, late = days[tenth - 1], days[-1]
    early_s = float(np.median([day.event_s for day in days[1:tenth]]))
    late_s = float(np.median([day.event_s for day in days[1 - tenth :]]))
    return [
        {
            "name": f"resident memory after {n_days} days over that after {tenth}, "
            f"ever-new queries, kept for a day, {late.n_pairs:,} pairs",
            "value": late.resident / 2**20,
            "unit": "MiB",
            "rival": early.resident / 2**20,
            "ratio": early.resident / late.resident,
            "goal": 0.95,
            "floor": 0.8,
        },
        {
            "name": "time for an event in the last days over that in the first",
            "value": late_s * 1e6,
            "unit": "us",
            "rival": early_s * 1e6,
            "ratio": early_s / late_s,
            "goal": 0.9,
            "floor": 0.7,
        },
    ]


def sizes(settings: Settings, n_impressions: int) -> list[Figure]:
    """Growth of the resident memory, divided by what there is more of."""
    plan = Workload(10 * n_impressions, DETERMINISTIC, n_partitions=1)
    records, _ = records_of(plan, 0, 0, with_frontiers=False)
    n_records = len(records)
    n_bytes = sum(len(record.value or b"") for record in records)
    fold = partition_fold(0, settings)
    before = resident()
    for record in records:
        fold.fold(record)
    opened = (resident() - before) / plan.n_impressions
    del records
    before = resident()
    frontier = Frontier(0, 1, START_MS + DAY_S * 500, ACTIVE)
    value = encode_record([SCHEMA, 0, n_records + 1, [frontier]])
    fold.fold(SourceRecord(EVENTS, 0, 0, 0, None, value, ()))
    fold.outputs()
    fold.settle()
    list(fold.changes())
    pairs = n_pairs(fold)
    counted = (resident() - before) / pairs
    event = n_bytes / plan.n_impressions
    return [
        {
            "name": "an open impression and its clicks, over the bytes of their events",
            "value": opened,
            "unit": "bytes",
            "rival": event,
            "ratio": event / opened,
            "goal": 0.5,
            "floor": 0.25,
        },
        {
            "name": f"a pair of item and rank, cells and queries included, {pairs:,} "
            "pairs",
            "value": counted,
            "unit": "bytes",
            "rival": 250.0,
            "ratio": 250.0 / counted,
            "goal": 1.0,
            "floor": 0.5,
        },
    ]


def records_of(
    plan: Workload, day: int, sequence: int, *, with_frontiers: bool = True
) -> tuple[list[SourceRecord], int]:
    """The records of a plan, numbered on, and how many events they hold."""
    events = list(canonical_elements(plan, np.random.default_rng(day)))
    records = []
    for start in range(0, len(events), RECORD_EVENTS):
        part = events[start : start + RECORD_EVENTS]
        elements: list[Any] = [element for _, _, element in part]
        if with_frontiers:
            elements.append(Frontier(0, 1, part[-1][1] - DISORDER_MS, ACTIVE))
        sequence += 1
        value = encode_record([SCHEMA, 0, sequence, elements])
        records.append(SourceRecord(EVENTS, 0, sequence, 0, None, value, ()))
    return records, len(events)


def n_pairs(fold: CanonicalFold) -> int:
    """(cell, item, rank) in the tables."""
    return fold.counters()["statistics_pairs"]


def resident() -> int:
    """Bytes of this process in memory, after what is garbage has gone."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
