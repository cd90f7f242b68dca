"""JSON events to counted statistics: the roles ingest and fold, and the rival.

Both read the same log on the same broker, which waits for them. A run is measured from
when a third of it was read until all is counted.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator

from rankstream.lab.benchmarks.harness import (
    Figure,
    Run,
    paired_figure,
    throughput_figure,
)
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, Worker, say
from rankstream.lab.benchmarks.pipeline.input_log import InputLog, InputRecord
from rankstream.lab.benchmarks.pipeline.input_recount import (
    InputRecount,
    statistics_tally,
)
from rankstream.lab.benchmarks.pipeline.logs import (
    Offsets,
    Part,
    Progress,
    await_end,
    await_positions,
    delete_topics,
    last_moved,
    part_of,
    preload,
)
from rankstream.lab.benchmarks.pipeline.processes import (
    IDLE,
    Processes,
    of_rival,
    of_workers,
    shares_line,
)
from rankstream.lab.benchmarks.pipeline.rival.application import (
    Rival,
    rival_tally,
    running_rival,
)
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES, full_name
from streams.worker_roles import kinds_of

N_FEATURES = 1
"""Of the model, which nobody asks."""

WARM_PARTS = 3
"""One of so many parts of a log is read before anything counts."""


class InputRuns:
    """Runs of ours and of the rival; those of one length have the same log.

    Parameters
    ----------
    n_partitions
        Of each input topic.
    n_threads
        Of the rival; ours has as many processes of ingestion.
    """

    def __init__(self, bed: Bed, n_partitions: int = 4, n_threads: int = 2) -> None:
        self._bed = bed
        self._n_partitions = n_partitions
        self._n_threads = n_threads

    def ours(self, n_events: int) -> Run:
        """The roles `ingest` and `fold` of one worker, and `ingest` of others."""
        with self._written(n_events) as (settings, recount):
            with self._workers(settings) as workers:
                running = of_workers(self._bed, workers, "ingest", "fold")
                processes = Processes(running)
                check = processes.sampling(lambda: _check_all(workers))
                read = await_end(settings, "ingest", check)
                (counted,) = await_end(settings, "fold", check).values()
                processes.sample()
            width = settings.kafka.input_partitions
            marks = [
                mark._replace(partition=_numbered(kind.source, mark.partition, width))
                for kind in kinds_of("ingest")
                for mark in read[kind.state_topics[0]]
            ]
            part = warm_part(sorted(marks), last_moved(counted)[1], n_events)
            faults = statistics_tally(settings).differences(recount.tally(), "ours")
            return _measured("ours", recount, part, processes, faults)

    def rival(self, n_events: int) -> Run:
        """The application of Kafka Streams."""
        with self._written(n_events) as (settings, recount):
            with running_rival(settings, self._bed.folder, self._n_threads) as rival:
                processes = Processes(of_rival(self._bed, rival.pid))
                check = processes.sampling(rival.check)
                marks = await_read(settings, rival, check)
                processes.sample()
            part = warm_part(marks, last_moved(marks)[1], n_events)
            faults = rival_tally(settings).differences(recount.tally(), "the rival")
            return _measured("rival", recount, part, processes, faults)

    @contextlib.contextmanager
    def _workers(self, settings: Settings) -> Iterator[list[Worker]]:
        """The one that folds, and those that ingest beside it."""
        start = self._bed.worker
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(start(settings, "ingest", "fold"))]
            for n in range(1, self._n_threads):
                beside = start(settings, "ingest", instance=f"bench-{n}")
                workers.append(stack.enter_context(beside))
            yield workers

    @contextlib.contextmanager
    def _written(self, n_events: int) -> Iterator[tuple[Settings, InputRecount]]:
        """The log in a namespace of its own, which goes with all its topics."""
        settings = self._bed.settings(N_FEATURES, self._n_partitions)
        recount = InputRecount(settings.time.click_window_ms)
        send_all(settings, itertools.islice(counted_log(settings, recount), n_events))
        say(f"{n_events:,} events of {recount.event_bytes:.0f} bytes written")
        yield settings, recount
        delete_topics(settings)


def _check_all(workers: list[Worker]) -> None:
    for worker in workers:
        worker.check()


def end_to_end_figures(pairs: list[tuple[Run, Run]], n_threads: int) -> list[Figure]:
    """Events a second of both, and the CPU of an event in all of their processes.

    Parameters
    ----------
    pairs : [n_repeats]
        A run of ours, and one of the rival beside it.
    """
    n_bytes = pairs[0][0].event_bytes
    name = (
        f"JSON events, one a record ({n_bytes:.0f} bytes), to counted statistics, "
        f"fold and {n_threads} processes of ingestion, over Kafka Streams with "
        f"{n_threads} threads"
    )
    us = [(sum(our.cpu_us.values()), sum(its.cpu_us.values())) for our, its in pairs]
    rates = throughput_figure(name, pairs, goal=3.0, floor=1.8)
    return [
        rates,
        paired_figure(
            "the same: CPU an event, all processes and the broker",
            "us",
            us,
            (0.33, 0.55),
            faults=rates["faults"],
            less_is_better=True,
            bounds_are_ratios=True,
        ),
    ]


def counted_log(settings: Settings, recount: InputRecount) -> Iterator[InputRecord]:
    """The log for the input topics of a namespace, counted as it passes."""
    for record in InputLog(settings.kafka.input_partitions):
        recount.take(record.topic, record.value)
        yield record


def topics_in(settings: Settings) -> dict[str, str]:
    """Full names of the input topics by their own."""
    return {name: full_name(settings.namespace, name) for name in (QUERIES, CLICKS)}


def send_all(settings: Settings, records: Iterable[InputRecord]) -> None:
    """Write a log to the input topics, and end them."""
    topics = topics_in(settings)
    preload(
        settings.kafka.bootstrap,
        ((topics[each.topic], each.partition, each.value) for each in records),
    )
    end_input(settings)


def end_input(settings: Settings) -> None:
    """Say that no more comes, which is only believed after minutes else."""
    width = settings.kafka.input_partitions
    ended = [(name, n) for name in topics_in(settings).values() for n in range(width)]
    preload(settings.kafka.bootstrap, (), ended=ended)


def await_read(
    settings: Settings, rival: Rival, check: Callable[[], object]
) -> list[Progress]:
    """Wait until the rival has committed all that is there; what it committed when."""
    marks: list[Progress] = []
    width = settings.kafka.input_partitions
    with rival.positions() as positions:

        def noted() -> Offsets:
            found, now_ms = positions(), round(1e3 * time.time())
            for (topic, partition), offset in found.items():
                number = _numbered(topic, partition, width)
                marks.append(Progress(now_ms, number, offset - 1))
            return found

        await_positions(positions.ends(), noted, check)
    return marks


def _numbered(topic: str, partition: int, n_partitions: int) -> int:
    """One number for each partition of both input topics."""
    return partition + n_partitions * (QUERIES, CLICKS).index(topic)


def warm_part(marks: list[Progress], ended_ms: int, n_events: int) -> Part:
    """The part of a run after a first third, in which a virtual machine compiles.

    Parameters
    ----------
    marks
        Commits of the input by time.
    ended_ms
        When all of it was counted.
    n_events
        Of the log; ends of the input may count as events.
    """
    done: dict[int, int] = {}
    for nth, mark in enumerate(marks):
        done[mark.partition] = mark.offset + 1
        if sum(done.values()) * WARM_PARTS >= n_events:
            rest = part_of(marks[nth:], lambda _, offset: offset + 1)
            return rest._replace(end_ms=ended_ms)
    raise BenchmarkFailed(f"{n_events:,} events must be read; got {done}")


def _measured(
    whose: str,
    recount: InputRecount,
    part: Part,
    processes: Processes,
    faults: list[str],
) -> Run:
    used = processes.between(part.start_ms / 1e3, part.end_ms / 1e3)
    run = Run(
        part.rate,
        recount.event_bytes,
        faults,
        part.lasted_s,
        {name: 1e6 * s / part.n_events for name, s in used.items() if name != IDLE},
        shares_line(used, part.lasted_s),
    )
    say(f"{whose}: {run.rate:,.0f} events/s; {run.told}; {faults or 'recount agrees'}")
    return run
