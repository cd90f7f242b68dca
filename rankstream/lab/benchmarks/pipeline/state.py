"""What the fold writes as state: for an event, and for a query that it knows.

Counted, not timed: a log gives the same bytes on every machine.
"""

from typing import NamedTuple

from rankstream.lab.benchmarks.folded_log import ONE_PARTITION, fold_all, folded_records
from rankstream.lab.benchmarks.harness import (
    Figure,
    cost_figure,
    in_fresh_process,
    resident,
)
from rankstream.lab.benchmarks.workload import (
    Workload,
)
from rankstream.settings import Settings, StatisticsSettings, TimeSettings
from rankstream.wire.events import DETERMINISTIC, LOGGED, PLACKETT_LUCE
from rankstream.wire.topics import STATISTICS
from streams.fold.segments import STATE_TOPIC
from streams.partition_fold import partition_fold

RECORDS_BETWEEN = 300
"""Between checkpoints: what one partition of four is given in `delivery.state_s` where
60,000 events come in a second, 250 a record."""

LOG_S = 1_000.0
"""How long a log is, in event time."""

CHECKPOINTS = 7
"""A log is a little longer than these."""

KINDS = {LOGGED: "logged exposures", DETERMINISTIC: "deterministic"}

BEFORE = {LOGGED: 112.1, DETERMINISTIC: 90.2}
"""Bytes an event on `statistics`, before statistics were kept by scope."""

BEFORE_A_QUERY = 3_212.0
"""Bytes of state, in 20 groups."""

GROUPS = (5, 10, 20)
MEMORY_BYTES = 24 * 2**30
IMPRESSIONS_A_QUERY = 100


BEFORE_REFERENCES = 1_785.5
"""Bytes an event on `fold-state` of Plackett-Luce lists, while it held open lists."""

GOAL_BYTES, FLOOR_BYTES = 200.0, 400.0


class Written(NamedTuple):
    """Bytes and records of all topics, those of one of them, and events folded."""

    all_bytes: int
    all_records: int
    own_bytes: int
    own_records: int
    n_events: int


def state_figure(policy: int, n_impressions: int) -> Figure:
    """Bytes an event that checkpoints write on `statistics`; the rest in words."""
    plan = Workload(
        n_impressions, policy, per_second=n_impressions / LOG_S, n_partitions=1
    )
    found = written_state(plan)
    own, every, own_records, all_records = (
        n / found.n_events
        for n in (
            found.own_bytes,
            found.all_bytes,
            found.own_records,
            found.all_records,
        )
    )
    name = (
        f"state written an event on {STATISTICS}, {KINDS[policy]}: "
        f"{own_records:.3f} records; all topics: {every:.1f} bytes, {all_records:.3f} "
        "records"
    )
    before = BEFORE[policy]
    figure = cost_figure(
        name, [own], "bytes", before=before, goal=before, floor=1.5 * before
    )
    return figure | {
        "all_bytes": every, "records": own_records, "all_records": all_records
    }  # fmt: skip


def placed_state_figure(n_impressions: int, n_features: int) -> Figure:
    """Bytes an event that checkpoints write on `fold-state`, of Plackett-Luce lists."""
    plan = Workload(
        n_impressions,
        PLACKETT_LUCE,
        n_candidates=40,
        n_features=n_features,
        per_second=n_impressions / LOG_S,
        n_partitions=1,
    )
    found = written_state(plan, STATE_TOPIC)
    own, every = found.own_bytes / found.n_events, found.all_bytes / found.n_events
    name = (
        f"state written an event on {STATE_TOPIC}, plackett-luce, 40 candidates, "
        f"{n_features} features: {found.own_records / found.n_events:.3f} records; "
        f"all topics: {every:.1f} bytes"
    )
    figure = cost_figure(
        name, [own], "bytes", before=BEFORE_REFERENCES, goal=GOAL_BYTES,
        floor=FLOOR_BYTES,
    )  # fmt: skip
    return figure | {"all_bytes": every}


def written_state(plan: Workload, topic: str = STATISTICS) -> Written:
    """State that checkpoints write while windows close as fast as they open.

    What is written before the first window has closed does not count, nor what is
    open at the end. `topic` is the one that is counted by itself.
    """
    settings = Settings(kafka=ONE_PARTITION)
    fold = partition_fold(0, settings)
    records = list(folded_records(plan))[:-1]
    log_ms = plan.n_impressions * 1_000 / plan.per_second
    n_first = len(records) * settings.time.click_window_ms / log_ms
    between = min(RECORDS_BETWEEN, len(records) // CHECKPOINTS)
    counted, n_events = Written(0, 0, 0, 0, 0), 0
    for number, (record, n) in enumerate(records, 1):
        fold.fold(record)
        fold.outputs()
        n_events += n
        if number % between:
            continue
        fold.settle()
        changes = [
            (change.topic, len(change.key) + len(change.value or b""))
            for change in fold.changes()
        ]
        if number - between >= n_first:
            every = [size for _, size in changes]
            own = [size for each, size in changes if each == topic]
            new = (sum(every), len(every), sum(own), len(own), n_events)
            counted = Written(*(a + b for a, b in zip(counted, new, strict=True)))
        n_events = 0
    return counted


def query_figure(n_queries: int) -> Figure:
    """State and memory of a query, by number of groups; how many queries fit."""
    found = {n: in_fresh_process(query_bytes, n, n_queries) for n in GROUPS}
    each = "; ".join(
        f"{n} groups: {state:,.0f} bytes of state, {memory:,.0f} resident, "
        f"{MEMORY_BYTES / memory:,.0f} queries in 24 GiB"
        for n, (state, memory) in found.items()
    )
    name = f"a query after {IMPRESSIONS_A_QUERY} impressions on average; {each}"
    state, _ = found[GROUPS[-1]]
    return cost_figure(name, [state], "bytes", before=BEFORE_A_QUERY) | {
        "state_bytes": {str(n): state for n, (state, _) in found.items()},
        "resident_bytes": {str(n): memory for n, (_, memory) in found.items()},
    }


def query_bytes(n_groups: int, n_queries: int) -> tuple[float, float]:
    """Bytes of `statistics` and of memory for a query; in a process of its own."""
    settings = Settings(
        kafka=ONE_PARTITION,
        # The join keeps next to nothing, so that what grows is what is counted.
        time=TimeSettings(click_window_ms=1_000, remember_ms=1_000),
        statistics=StatisticsSettings(groups=n_groups),
    )
    plan = Workload(
        n_queries * IMPRESSIONS_A_QUERY, LOGGED, n_queries=n_queries, n_partitions=1
    )
    records = [record for record, _ in folded_records(plan)]
    before = resident()
    fold, changes = fold_all(settings, records)
    state = {
        change.key: len(change.key) + len(change.value or b"")
        for change in changes
        if change.topic == STATISTICS
    }
    del changes
    memory = resident() - before
    if fold.join.n_open:
        raise ValueError(f"all must be closed; {fold.join.n_open} are open")
    return sum(state.values()) / n_queries, memory / n_queries
