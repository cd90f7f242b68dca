"""What each role costs: JSON events through all of them, learning alone, several folds.

CPU seconds are those of the role's process: they hold on a machine of any number of
cores, where a rate is what the machine had left.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rankstream.installation import path_options
from rankstream.lab.benchmarks.input_events import input_events
from rankstream.lab.benchmarks.pipeline_bed import Bed, BenchmarkFailed, Worker, say
from rankstream.lab.benchmarks.pipeline_cpu import Meter, cpu_s
from rankstream.lab.benchmarks.pipeline_end import await_end
from rankstream.lab.benchmarks.pipeline_logs import (
    Part,
    Progress,
    delete_topics,
    part_of,
    preload,
    progress_of,
    read_all,
)
from rankstream.lab.benchmarks.pipeline_repeats import Figure, Run, told_of
from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import (
    CLICKS,
    INTERACTIONS,
    QUERIES,
    full_name,
    state_topic,
)
from streams.topology import n_partitions_of
from streams.worker_roles import kinds_of

READY_S = 300.0
"""So long processes may take to be ready: the first one to learn compiles."""

_READY = re.compile(r"event=ready role=(\S+)")


class Cost(NamedTuple):
    """CPU seconds of a process, and of how many events it took."""

    cpu_s: float
    n_events: int

    @property
    def us_each(self) -> float:
        """Microseconds of an event; as many seconds for a million of them."""
        return 1e6 * self.cpu_s / max(1, self.n_events)


def send(settings: Settings, n_impressions: int, n_features: int) -> int:
    """Write the input topics beforehand; says how many events they have."""
    width, n_events = settings.kafka.input_partitions, 0

    def records() -> Iterator[tuple[str, int, bytes]]:
        nonlocal n_events
        for topic, value in input_events(n_impressions, n_features):
            yield full_name(settings.namespace, topic), n_events % width, value
            n_events += 1

    names = [full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)]
    ended = [(name, partition) for name in names for partition in range(width)]
    preload(settings.kafka.bootstrap, records(), ended=ended)
    return n_events


def end_to_end_run(bed: Bed, n_impressions: int, n_features: int) -> Run:
    """JSON events from the input topics to statistics and snapshots, all roles on.

    CPU is that of each role; what binds is said of ingestion, which takes most of it.
    """
    settings = bed.settings(n_features)
    roles = ("ingest", "fold", "learn", "publish")
    with bed.worker(settings, *roles) as worker:
        _await_ready([worker], roles[:3])
        meter = Meter(bed.broker_pid, lambda: worker.child("ingest"))
        meter.sample()
        before = {role: cpu_s(worker.child(role)) for role in roles}
        started_ms = round(1_000 * time.time())
        n_events = send(settings, n_impressions, n_features)
        for role in roles[:3]:
            await_end(settings, role, meter.sampling(worker.check))
        meter.sample()
        costs = {
            role: Cost(cpu_s(worker.child(role)) - before[role], n_events).us_each
            for role in roles
        }
    part = Part(n_events, started_ms, _last_commit_ms(settings, roles[:3]))
    run = meter.measured(part, 0.0, _faults(bed, settings))
    run = run._replace(
        cpu_us=costs | {"broker": run.cpu_us["broker"]}, binds=f"ingest: {run.binds}"
    )
    say(f"end to end: {run.rate:,.0f} events/s; {run.told}")
    delete_topics(settings)
    return run


def learning_run(bed: Bed, n_impressions: int, n_features: int) -> Run:
    """Interactions that wait, through the learn role alone."""
    settings = bed.settings(n_features)
    send(settings, n_impressions, n_features)
    for role in ("ingest", "fold"):
        with bed.worker(settings, role) as worker:
            await_end(settings, role, worker.check)
    with bed.worker(settings, "learn") as worker:
        meter = Meter(bed.broker_pid, lambda: worker.child("learn"))
        await_end(settings, "learn", meter.sampling(worker.check))
        meter.sample()
    width = settings.kafka.learner_partitions
    ends: dict[tuple[int, int], int] = {}
    totals = [0] * width
    for entry in read_all(settings, INTERACTIONS, width):
        batch = decode_interaction_record(entry.value or b"")
        totals[entry.partition] += len(batch.interactions)
        ends[entry.partition, entry.offset] = totals[entry.partition]
    part = part_of(_marks(settings, "learn"), _up_to(ends))
    run = meter.measured(part, 0.0, _faults(bed, settings))
    say(f"learning: {run.rate:,.0f} interactions/s; {run.told}")
    delete_topics(settings)
    return run


def scaling_figure(bed: Bed, n_impressions: int, n_features: int) -> Figure:
    """CPU of the fold by event, in one, two and four processes."""
    found: dict[int, Cost] = {}
    faults: list[str] = []
    for n_processes in (1, 2, 4):
        settings = bed.settings(n_features)
        n_events = send(settings, n_impressions, n_features)
        found[n_processes] = Cost(_folded_s(bed, settings, n_processes), n_events)
        faults += _faults(bed, settings)
    told = ", ".join(f"{n}: {cost.us_each:.1f}" for n, cost in found.items())
    say(f"scaling: us of CPU an event by processes of the fold: {told}")
    name = f"fold, us of CPU an event by number of processes: {told}"
    return _figure(name, "us", found[4].us_each, faults) | {"less_is_better": True}


def _folded_s(bed: Bed, settings: Settings, n_processes: int) -> float:
    """CPU seconds of so many processes that fold a log to its end together."""
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(bed.worker(settings, "fold", instance=f"fold{n}"))
            for n in range(n_processes)
        ]
        _await_ready(workers, ["fold"] * n_processes)
        before_s = sum(cpu_s(each.child("fold")) for each in workers)
        with bed.worker(settings, "ingest") as worker:
            await_end(settings, "ingest", worker.check)

        def check() -> None:
            for each in workers:
                each.check()

        await_end(settings, "fold", check)
        return sum(cpu_s(each.child("fold")) for each in workers) - before_s


def _await_ready(workers: Sequence[Worker], roles: Sequence[str]) -> None:
    """Wait until as many processes of each role have said that they are ready."""
    wanted = Counter(roles)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        for worker in workers:
            worker.check()
        found = Counter(_READY.findall("\n".join(workers[0].lines())))
        if found >= wanted:
            return
        time.sleep(0.2)
    raise BenchmarkFailed(f"processes must be ready, {wanted}; got {found}")


def _marks(settings: Settings, role: str) -> list[Progress]:
    (kind,) = kinds_of(role)
    return progress_of(
        settings, state_topic(kind.name), settings.kafka.learner_partitions
    )


def _up_to(ends: dict[tuple[int, int], int]) -> Callable[[int, int], int]:
    return lambda partition, offset: ends.get((partition, offset), 0)


def _last_commit_ms(settings: Settings, roles: Sequence[str]) -> int:
    """When the last position of all stages of these roles moved."""
    kafka, last_ms = settings.kafka, 0
    for kind in (kind for role in roles for kind in kinds_of(role)):
        at: dict[int, int] = {}
        width = n_partitions_of(kind, kafka)
        for mark in progress_of(settings, kind.state_topics[0], width):
            # A checkpoint of an idle partition is a commit that goes nowhere.
            if mark.offset > at.get(mark.partition, -1):
                at[mark.partition] = mark.offset
                last_ms = max(last_ms, mark.timestamp_ms)
    return last_ms


def _faults(bed: Bed, settings: Settings) -> list[str]:
    """What the recount says of the log, as users ask for it."""
    command = [
        sys.executable,
        *path_options(),
        "-m",
        "rankstream",
        "recount",
    ]
    command += ["--config", str(bed.configuration(settings)), "--json"]
    done = subprocess.run(  # noqa: S603  our own command
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode not in (0, 1):
        raise BenchmarkFailed(f"a recount must end; it said {done.stderr}")
    found: list[str] = json.loads(done.stdout)["differences"]
    return found


def roles_figure(name: str, unit: str, run: Run) -> Figure:
    """A figure that nothing stands beside."""
    return _figure(name, unit, run.rate, run.faults) | told_of([run])


def _figure(name: str, unit: str, value: float, faults: list[str]) -> Figure:
    """A figure that nothing stands beside."""
    return {
        "name": name,
        "unit": unit,
        "value": value,
        "rival": None,
        "ratio": None if faults else 1.0,
        "goal": None,
        "floor": None,
        "repeats": 1,
        "spread": {"value": [value, value]},
        "faults": faults,
    }
