"""Events through the pipeline on one broker, over an empty agent of stock Faust.

One run brings up its own broker and Redis, writes each log beforehand, and times the
stage that reads it by the resume positions of its commits; what the first of them
covers is start-up, and does not count. A throughput counts only if an independent
recount of the log agrees with what came out. Throughputs are medians of runs, each in a
namespace of its own; latency and restart are measured once.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from rankstream.benchmarks.pipeline_bed import Bed, running_bed, say
from rankstream.benchmarks.pipeline_ingestion import ingestion_rate
from rankstream.benchmarks.pipeline_latency import latencies_s
from rankstream.benchmarks.pipeline_local import local_rates
from rankstream.benchmarks.pipeline_logs import (
    await_quiet,
    create_topic,
    preload,
    progress_of,
    rate_of,
)
from rankstream.benchmarks.pipeline_recount import Recount
from rankstream.benchmarks.pipeline_restart import restart_s
from rankstream.benchmarks.workload import Workload, canonical_records
from rankstream.installation import path_options
from rankstream.settings import Settings
from rankstream.wire.events import DETERMINISTIC, LOGGED, PLACKETT_LUCE
from rankstream.wire.topics import EVENTS, STATISTICS, full_name, state_topic

RIVAL_BYTES = 300
N_PARTITIONS = 4
N_FEATURES = 46

RESTART_QUERIES = 5_000
"""So many queries have about 100,000 cells: each is in 20 groups."""

Figure = dict[str, Any]

Run = tuple[float, float, list[str]]
"""Events a second, bytes of an event, and what is wrong with what came out."""


class Sizes(NamedTuple):
    """How long each part is; `repeats` is how often a throughput is measured."""

    rival: int
    fold: int
    placed: int
    ingestion: int
    local: int
    paced_s: float
    restart_s: float
    repeats: int


FULL = Sizes(60_000, 400_000, 60_000, 150_000, 1_000_000, 60.0, 600.0, 3)
QUICK = Sizes(10_000, 30_000, 10_000, 20_000, 20_000, 5.0, 15.0, 1)


def measure(*, quick: bool = False) -> list[Figure]:
    """All figures; progress on standard error."""
    sizes = QUICK if quick else FULL
    with running_bed() as bed:
        say(f"broker at {bed.broker.bootstrap}, Redis at {bed.redis.url}")
        rival = stock_rate(bed, sizes)
        figures = [fold_figure(bed, sizes, LOGGED, rival)]
        figures.append(fold_figure(bed, sizes, DETERMINISTIC, rival))
        placed = fold_figure(bed, sizes, PLACKETT_LUCE, rival)
        figures.append(placed)
        figures.append(ingestion_figure(bed, sizes, rival))
        figures.append(local_figure(sizes))
        figures.append(latency_figure(bed, sizes, placed["value"] / 2))
        figures.append(restart_figure(bed, sizes, placed["value"] / 2))
    return figures


def stock_rate(bed: Bed, sizes: Sizes) -> float:
    """Records a second of the empty agent, median of the repeats."""
    bootstrap, topic = bed.broker.bootstrap, "stock"
    create_topic(bootstrap, topic, N_PARTITIONS)
    value = b"x" * RIVAL_BYTES
    preload(bootstrap, ((topic, n % N_PARTITIONS, value) for n in range(sizes.rival)))
    module = "rankstream.benchmarks.stock_agent"
    command = [sys.executable, *path_options(), "-m", module]
    command += [bootstrap, topic, str(sizes.rival)]
    rates = []
    for _ in range(sizes.repeats):
        done = subprocess.run(  # noqa: S603  our own command
            command, capture_output=True, text=True, check=True, timeout=300,
            stdin=subprocess.DEVNULL, cwd=bed.folder,
        )  # fmt: skip
        rates.append(float(done.stdout.rpartition("rate=")[2].split()[0]))
        say(f"stock agent: {rates[-1]:,.0f} records/s")
    return median(rates)


def fold_figure(bed: Bed, sizes: Sizes, policy: int, rival: float) -> Figure:
    """Canonical events through the fold role, median of the repeats."""
    is_placed = policy == PLACKETT_LUCE
    plan = Workload(
        sizes.placed if is_placed else sizes.fold,
        policy,
        n_candidates=40 if is_placed else 20,
        n_features=N_FEATURES if is_placed else 0,
        n_partitions=N_PARTITIONS,
    )
    value, n_bytes, wrong = median_rate(
        fold_rate(bed, plan) for _ in range(sizes.repeats)
    )
    kind = {LOGGED: "logged exposures", DETERMINISTIC: "deterministic"}
    placed = f"plackett-luce, 40 candidates, {N_FEATURES} features, new scores each s"
    return {
        "name": "join, statistics, interactions: "
        f"{kind.get(policy, placed)} ({n_bytes:.0f}-byte events)",
        "value": value,
        "unit": "events/s",
        "rival": rival,
        "ratio": None if wrong else value / rival,
        "goal": 1.0 if is_placed else 15.0,
        "floor": 0.3 if is_placed else 5.0,
    }


def fold_rate(bed: Bed, plan: Workload) -> Run:
    """One run of the fold role over a log of its own."""
    settings = bed.settings(N_FEATURES)
    recount = Recount()
    preload(settings.kafka.bootstrap, counted(plan, settings, recount))
    n_bytes, about = recount.bytes_per_event, f"policy {plan.policy}"
    say(f"{about}: {recount.n_events:,} events of {n_bytes:.0f} bytes written")
    with bed.worker(settings, "fold") as worker:
        topics = (state_topic("fold"),)
        await_quiet(settings, topics, N_PARTITIONS, worker.check)
    marks = progress_of(settings, state_topic("fold"), N_PARTITIONS)
    value = rate_of(marks, recount.events_up_to)
    wrong = recount.disagreements(settings)
    say(f"{about}: {value:,.0f} events/s; recount: {wrong or 'agrees'}")
    return value, n_bytes, wrong


def median_rate(runs: Iterable[Run]) -> Run:
    """The median of the rates; one run that is wrong is enough to be wrong."""
    rates, sizes, wrong = zip(*runs, strict=True)
    return median(rates), sizes[0], [fact for found in wrong for fact in found]


def counted(
    plan: Workload, settings: Settings, recount: Recount
) -> Iterator[tuple[str, int, bytes]]:
    """The records of a log, counted as they pass."""
    topic = full_name(settings.namespace, EVENTS)
    for partition, value, _ in canonical_records(plan, np.random.default_rng(1)):
        recount.take(partition, value)
        yield topic, partition, value


def ingestion_figure(bed: Bed, sizes: Sizes, rival: float) -> Figure:
    """JSON events through the ingest role, median of the repeats."""
    value, n_bytes, wrong = median_rate(
        ingestion_rate(bed, bed.settings(N_FEATURES), sizes.ingestion)
        for _ in range(sizes.repeats)
    )
    return {
        "name": f"ingestion, one JSON event a record ({n_bytes:.0f} bytes)",
        "value": value,
        "unit": "events/s",
        "rival": rival,
        "ratio": None if wrong else value / rival,
        "goal": 2.0,
        "floor": 1.0,
    }


def local_figure(sizes: Sizes) -> Figure:
    """The in-process replay over decoding the same records."""
    plan = Workload(sizes.local, DETERMINISTIC, n_partitions=N_PARTITIONS)
    ours, rivals, wrong = local_rates(plan, sizes.repeats)
    ratios = [mine / other for mine, other in zip(ours, rivals, strict=True)]
    say(f"in process: {median(ours):,.0f} events/s; recount: {wrong or 'agrees'}")
    return {
        "name": "in-process replay over decoding the same records, deterministic",
        "value": median(ours),
        "unit": "events/s",
        "rival": median(rivals),
        "ratio": None if wrong else median(ratios),
        "goal": 0.25,
        "floor": 0.1,
    }


def latency_figure(bed: Bed, sizes: Sizes, per_second: float) -> Figure:
    """From the record that closes a window to the snapshot in Redis."""
    plan = Workload(
        0, PLACKETT_LUCE, n_candidates=40, n_features=N_FEATURES,
        n_partitions=N_PARTITIONS,
    )  # fmt: skip
    settings = bed.settings(N_FEATURES)
    found = latencies_s(bed, settings, plan, per_second, sizes.paced_s)
    p50, p99 = np.percentile(found, [50, 99])
    say(f"latency: p50 {p50:.3f} s, p99 {p99:.3f} s over {len(found)} records")
    return {
        "name": "record past the window to snapshot in Redis, p99, plackett-luce at "
        f"{per_second:,.0f} events/s",
        "value": float(p99),
        "unit": "s",
        "rival": 1.0,
        "ratio": 1.0 / float(p99),
        "goal": 1.0,
        "floor": 1.0 / 3.0,
    }


def restart_figure(bed: Bed, sizes: Sizes, per_second: float) -> Figure:
    """From kill -9 of the fold role until it folds what is new, events coming in."""
    n_enough = int(per_second * (sizes.restart_s + 120.0))
    plan = Workload(
        n_enough, DETERMINISTIC, n_queries=RESTART_QUERIES, n_partitions=N_PARTITIONS
    )
    settings = bed.settings(N_FEATURES)
    seconds, n_keys, n_records, wrong = restart_s(
        bed, settings, plan, per_second, sizes.restart_s
    )
    say(f"restart: {seconds:.2f} s, {n_keys:,} keys, {n_records:,} records read back")
    return {
        "name": f"kill -9 after {sizes.restart_s:,.0f} s at {per_second:,.0f} events/s "
        f"to the first fold of the last partition; {n_keys:,} keys in {STATISTICS} and "
        f"state, {n_records / max(n_keys, 1):.1f} records read back a key",
        "value": seconds,
        "unit": "s",
        "rival": 3.0,
        "ratio": None if wrong else 3.0 / seconds,
        "goal": 1.0,
        "floor": 0.3,
    }
