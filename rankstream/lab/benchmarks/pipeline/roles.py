"""What each role costs: ingestion and learning alone, all together, several folds.

CPU seconds are those of the role's process: they hold on a machine of any number of
cores, where a rate is what the machine had left.
"""

import contextlib
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from producers.topic_reader import read_records
from rankstream.lab.benchmarks.harness import (
    Figure,
    Run,
    new_figure,
    own_python,
    told_of,
)
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, Worker, say
from rankstream.lab.benchmarks.pipeline.logs import (
    Part,
    await_end,
    delete_topics,
    last_moved,
    part_of,
    preload,
    progress_of,
)
from rankstream.lab.benchmarks.pipeline.meter import Meter, cpu_s, metered
from rankstream.lab.benchmarks.workload import input_events
from rankstream.settings import Settings
from rankstream.wire.events import (
    Click,
    Impression,
    decode_event_record,
    decode_interaction_record,
)
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    QUERIES,
    full_name,
)
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


class Sent(NamedTuple):
    """Events that were written to the input topics, and their bytes."""

    n_events: int
    n_bytes: int


def send(settings: Settings, n_impressions: int, n_features: int = 0) -> Sent:
    """Write the input topics beforehand."""
    width, sizes = settings.kafka.input_partitions, list[int]()

    def records() -> Iterator[tuple[str, int, bytes]]:
        for n, (topic, value) in enumerate(input_events(n_impressions, n_features)):
            sizes.append(len(value))
            yield full_name(settings.namespace, topic), n % width, value

    # An end, else the sources fall idle while others are still read, and tell the time
    # for minutes.
    names = [full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)]
    ended = [(name, partition) for name in names for partition in range(width)]
    preload(settings.kafka.bootstrap, records(), ended=ended)
    return Sent(len(sizes), sum(sizes))


def ingestion_run(bed: Bed, n_impressions: int, n_features: int) -> Run:
    """JSON events through ingestion, one a record."""
    settings = bed.settings(n_features)
    sent = send(settings, n_impressions)
    say(f"ingestion: {sent.n_events:,} events written")
    meter, commits = metered(bed, settings, "ingest")
    width = settings.kafka.input_partitions
    marks = [
        mark._replace(partition=mark.partition + width * nth)
        for nth, kind in enumerate(kinds_of("ingest"))
        for mark in commits[kind.state_topics[0]]
    ]
    # The end records among them are eight of many thousand.
    part = part_of(sorted(marks), lambda _, offset: offset + 1)
    wrong = _disagreements(settings, n_impressions, sent.n_events)
    run = meter.measured(part, sent.n_bytes / sent.n_events, wrong)
    say(f"ingestion: {run.rate:,.0f} events/s; {run.told}")
    say(f"ingestion: recount: {wrong or 'agrees'}")
    delete_topics(settings)
    return run


def _disagreements(settings: Settings, n_impressions: int, n_events: int) -> list[str]:
    kinds = {Impression: 0, Click: 0}
    sequences: dict[tuple[int, int], int] = {}
    found: list[str] = []
    for entry in read_records(settings, EVENTS):
        batch = decode_event_record(entry.value or b"")
        place = (batch.source, entry.partition)
        if batch.sequence != sequences.get(place, 0) + 1:
            found.append(f"events {place} jump to {batch.sequence}")
        sequences[place] = batch.sequence
        for element in batch.elements:
            if type(element) in kinds:
                kinds[type(element)] += 1
    got = (kinds[Impression], kinds[Click])
    if got != (n_impressions, n_events - n_impressions):
        found.append(f"{got} came out; sent {n_events}, {n_impressions} of them lists")
    return found


def end_to_end_run(bed: Bed, n_impressions: int, n_features: int) -> Run:
    """JSON events from the input topics to statistics and snapshots, all roles on.

    CPU is that of each role; what binds is said of ingestion, which takes most of it.
    """
    settings = bed.settings(n_features)
    roles = ("ingest", "fold", "learn", "publish")
    with bed.worker(settings, *roles) as worker:
        await_ready([worker], roles[:3])
        meter = Meter(bed.broker_pid, lambda: worker.child("ingest"))
        meter.sample()
        before = {role: cpu_s(worker.child(role)) for role in roles}
        started_ms = round(1_000 * time.time())
        n_events, _ = send(settings, n_impressions, n_features)
        for role in roles[:3]:
            await_end(settings, role, meter.sampling(worker.check))
        meter.sample()
        costs = {
            role: Cost(cpu_s(worker.child(role)) - before[role], n_events).us_each
            for role in roles
        }
    marks = {
        kind.name: progress_of(settings, kind.state_topics[0])
        for role in roles[:3]
        for kind in kinds_of(role)
    }
    ended_ms = max(last_moved(each)[1] for each in marks.values())
    part = Part(n_events, started_ms, ended_ms)
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
    for role in ("ingest", "fold", "learn"):
        meter, commits = metered(bed, settings, role)
    ends: dict[tuple[int, int], int] = {}
    totals: Counter[int] = Counter()
    for entry in read_records(settings, INTERACTIONS):
        batch = decode_interaction_record(entry.value or b"")
        totals[entry.partition] += len(batch.interactions)
        ends[entry.partition, entry.offset] = totals[entry.partition]
    (kind,) = kinds_of("learn")
    marks = commits[kind.state_topics[0]]
    part = part_of(marks, lambda partition, offset: ends.get((partition, offset), 0))
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
        n_events, _ = send(settings, n_impressions, n_features)
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
        await_ready(workers, ["fold"] * n_processes)
        before_s = sum(cpu_s(each.child("fold")) for each in workers)
        with bed.worker(settings, "ingest") as worker:
            await_end(settings, "ingest", worker.check)

        def check() -> None:
            for each in workers:
                each.check()

        await_end(settings, "fold", check)
        return sum(cpu_s(each.child("fold")) for each in workers) - before_s


def await_ready(workers: Sequence[Worker], roles: Sequence[str]) -> None:
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


def _faults(bed: Bed, settings: Settings) -> list[str]:
    """What the recount says of the log, as users ask for it."""
    command = own_python(
        "rankstream", "recount", "--config", bed.configuration(settings), "--json"
    )
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
    return new_figure(
        name,
        value,
        unit,
        None,
        None if faults else 1.0,
        repeats=1,
        spread={"value": [value, value]},
        faults=faults,
    )
