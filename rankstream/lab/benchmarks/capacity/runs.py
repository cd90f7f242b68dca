"""One load on a broker: CPU and memory by process, and bytes by topic."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from rankstream.lab.benchmarks.capacity.events import events_of
from rankstream.lab.benchmarks.harness import peak_mib
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, say
from rankstream.lab.benchmarks.pipeline.beside_rival import end_input, topics_in
from rankstream.lab.benchmarks.pipeline.input_log import InputRecord
from rankstream.lab.benchmarks.pipeline.logs import (
    await_end,
    delete_topics,
    new_producer,
)
from rankstream.lab.benchmarks.pipeline.processes import IDLE, Processes, of_workers
from rankstream.lab.benchmarks.pipeline.roles import await_ready
from rankstream.lab.benchmarks.pipeline.traffic import Traffic
from rankstream.lab.benchmarks.workload import START_MS
from rankstream.operations.answers.capacity.load import Load
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, LATE, QUERIES, dead_letters

TIMES = (
    "[time]\ndisorder_ms = 5000\nclick_window_ms = 10000\nremember_ms = 10000\n"
    "idle_ms = 20000\n"
)
"""So short that lists are opened, closed and forgotten within a run."""

LOOK_S = 1.0
WATCHING = "watching"


class Case(NamedTuple):
    """A load, and how it comes.

    Parameters
    ----------
    load
        Its rate is that of event time where `is_flood`.
    n_events
        So many come, 0 for none.
    seconds
        So long is waited where none come.
    """

    name: str
    load: Load
    n_events: int
    is_flood: bool = False
    seconds: float = 0.0


class Measured(NamedTuple):
    """What a run took, a second.

    Parameters
    ----------
    load
        Under the run's settings, at the rate that all of it took from the first event
        to the last commit.
    cpu
        Cores by process.
    peak_mib
        Most resident memory by process.
    n_bytes
        Bytes by topic, as the broker stores them.
    kept
        The load at the rate of event time: so much is open and remembered at once.
    """

    name: str
    load: Load
    kept: Load
    lasted_s: float
    cpu: Mapping[str, float]
    peak_mib: Mapping[str, float]
    n_bytes: Mapping[str, float]


def measured_run(bed: Bed, case: Case) -> Measured:
    """Run it in a namespace of its own, which goes with all its topics.

    Raises
    ------
    BenchmarkFailed
        Where an event was refused or late: then less was measured than was sent.
    """
    n_features = max(1, case.load.features)
    width = case.load.settings.kafka.partitions
    settings = bed.settings(n_features, width, more=TIMES)
    load = case.load.under(settings)
    roles = ("ingest", "fold", *(("learn", "publish") if load.features else ()))
    start_ms = START_MS if case.is_flood else round(1e3 * time.time())
    events = list(itertools.islice(events_of(load, start_ms), case.n_events))
    with bed.worker(settings, *roles) as worker:
        await_ready([worker], [role for role in roles if role != "publish"])
        running = of_workers(bed, [worker], *roles)
        processes, traffic = Processes(running), Traffic(bed.broker.folder / "data")
        processes.sample()
        started_s = time.time()
        if events:
            shift_ms = 0 if case.is_flood else round(1e3 * started_s) - start_ms
            asyncio.run(_send(settings, events, shift_ms, traffic, case.is_flood))
            end_input(settings)
            for role in roles[:3]:
                await_end(settings, role, _both(worker.check, traffic.sample))
        else:
            time.sleep(case.seconds)
        ended_s = time.time()
        processes.sample()
        written = traffic.sample()
        peaks: dict[str, float] = {}
        for pid, name in running():
            with contextlib.suppress(OSError, ValueError):
                peaks[name] = peaks.get(name, 0.0) + peak_mib(pid)
    delete_topics(settings)
    lasted_s = ended_s - started_s
    used = processes.between(started_s, ended_s)
    own = f"{settings.namespace}."
    ours = {n.removeprefix(own): x for n, x in written.items() if n.startswith(own)}
    for topic in (dead_letters(QUERIES), dead_letters(CLICKS), LATE):
        if topic in ours and ours[topic].records:
            raise BenchmarkFailed(
                f"all events must be counted; {ours[topic].records} are in {topic}"
            )
    found = Measured(
        case.name,
        replace(
            load,
            per_second=case.n_events / lasted_s,
            counted_s=lasted_s / 2.0,
            is_waiting=case.is_flood,
        ),
        replace(
            load if events else load.at(0.0),
            counted_s=case.n_events / load.per_second,
            is_waiting=case.is_flood,
        ),
        lasted_s,
        {n: s / lasted_s for n, s in used.items() if n not in (IDLE, WATCHING)},
        peaks,
        {topic: each.n_bytes / lasted_s for topic, each in ours.items()},
    )
    say(
        f"{case.name}: {found.load.per_second:,.0f} events/s for {lasted_s:.0f} s; "
        + ", ".join(f"{name} {100 * share:.1f} %" for name, share in found.cpu.items())
    )
    return found


def _both(
    check: Callable[[], object], look: Callable[[], object]
) -> Callable[[], None]:
    def both() -> None:
        check()
        look()

    return both


async def _send(
    settings: Settings,
    events: list[InputRecord],
    shift_ms: int,
    traffic: Traffic,
    is_flood: bool,
) -> None:
    """Send all, each at its time unless it is a flood."""
    topics = topics_in(settings)
    producer = new_producer(settings.kafka.bootstrap)
    await producer.start()
    looked_s = time.time()
    try:
        for event in events:
            if not is_flood:
                late_s = time.time() - (event.at_ms + shift_ms) / 1e3
                if late_s < 0.0:
                    await asyncio.sleep(-late_s)
            await producer.send(
                topics[event.topic], event.value, partition=event.partition
            )
            if time.time() > looked_s + LOOK_S:
                traffic.sample()
                looked_s = time.time()
        await producer.flush()
    finally:
        await producer.stop()
