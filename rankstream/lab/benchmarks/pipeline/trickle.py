"""What few events cost, or none: shares of a core by process, and what is written.

Events have the time at which they come. All of a side's processes count and so does
the broker; whoever sends does not, as it is the same for both sides.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaProducer

from rankstream.lab.benchmarks.harness import Figure, in_turns, paired_figure
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, say
from rankstream.lab.benchmarks.pipeline.beside_rival import (
    await_read,
    end_input,
    topics_in,
)
from rankstream.lab.benchmarks.pipeline.input_log import EVENTS_A_LIST, InputLog
from rankstream.lab.benchmarks.pipeline.input_recount import (
    InputRecount,
    Tally,
    statistics_tally,
)
from rankstream.lab.benchmarks.pipeline.logs import (
    await_end,
    delete_topics,
    new_producer,
)
from rankstream.lab.benchmarks.pipeline.processes import (
    IDLE,
    Named,
    Processes,
    of_rival,
    of_workers,
    resident_mb,
)
from rankstream.lab.benchmarks.pipeline.rival.application import (
    rival_tally,
    running_rival,
)
from rankstream.lab.benchmarks.pipeline.roles import await_ready
from rankstream.lab.benchmarks.pipeline.traffic import Traffic, Written
from rankstream.settings import Settings

LOOK_S = 0.5
PATIENCE_S = 60.0
WARM_PER_SECOND = 2_000
"""Events, while a run settles."""

NO_MODEL = 0
"""Features: statistics are all that comes of events, as of the rival's."""

TRICKLE_BOUNDS, IDLE_BOUNDS = (0.3, 0.6), (0.7, 1.2)
"""Goal and floor of the ratio."""

WIDE, WIDE_BOUNDS = 64, (30.0, 60.0)
"""Of so many partitions and more, goal and floor of ours, in percent of a core."""

QUIET_S = 5.0
"""From then until it is measured: nothing of it is left to do."""


class Pace(NamedTuple):
    """How events come, and how long that is measured.

    Parameters
    ----------
    per_second
        Events, 0 for none.
    n_partitions
        Of each topic.
    settle_s
        Before anything counts. Where events come, many do then: a virtual machine
        compiles what it runs often.
    """

    per_second: float
    n_partitions: int
    settle_s: float
    measured_s: float

    @property
    def told(self) -> str:
        """What comes, in words."""
        events = f"{self.per_second:,.0f} events/s" if self.per_second else "no events"
        return f"{events}, {self.n_partitions} partitions"


class Cost(NamedTuple):
    """What it took, what was written by topic, and what is wrong.

    Parameters
    ----------
    percent, memory_mb
        Of a core, and megabytes at its end, by process.
    """

    percent: Mapping[str, float]
    memory_mb: Mapping[str, float]
    written: Mapping[str, Written]
    faults: list[str]

    @property
    def total(self) -> float:
        """Percent of a core, of all processes."""
        return sum(self.percent.values())


class Feed(threading.Thread):
    """Sends events at a steady pace until it is told to end; then ends the input."""

    def __init__(self, settings: Settings, pace: Pace) -> None:
        super().__init__(daemon=True)
        self.recount = InputRecount(settings.time.click_window_ms)
        self.is_settled = threading.Event()
        self.is_over = threading.Event()
        self._settings = settings
        self._pace = pace

    def run(self) -> None:
        """Send."""
        if self._pace.per_second:
            asyncio.run(self._send())
        else:
            self.is_over.wait(self._pace.settle_s)
            self.is_settled.set()
            self.is_over.wait()
        end_input(self._settings)

    async def _send(self) -> None:
        producer = new_producer(self._settings.kafka.bootstrap)
        await producer.start()
        warm_s = time.time() + self._pace.settle_s
        try:
            rate = max(WARM_PER_SECOND, self._pace.per_second)
            n_sent = await self._send_log(
                producer, rate, 0, lambda: time.time() > warm_s
            )
            await self._send_log(
                producer, self._pace.per_second, n_sent, self._is_paced_to_its_end
            )
        finally:
            await producer.stop()

    def _is_paced_to_its_end(self) -> bool:
        self.is_settled.set()
        return self.is_over.is_set()

    async def _send_log(
        self,
        producer: AIOKafkaProducer,
        per_second: float,
        first: int,
        is_over: Callable[[], bool],
    ) -> int:
        """How many events were sent until it was over."""
        width, now_ms = self._settings.kafka.input_partitions, round(1e3 * time.time())
        topics, n_sent = topics_in(self._settings), 0
        for event in InputLog(width, per_second / EVENTS_A_LIST, now_ms, first):
            await asyncio.sleep(max(0.0, event.at_ms / 1e3 - time.time()))
            if is_over():
                break
            self.recount.take(event.topic, event.value)
            n_sent += 1
            await producer.send(
                topics[event.topic], event.value, partition=event.partition
            )
        return n_sent


def trickle_figure(bed: Bed, pace: Pace, n_threads: int, n_repeats: int) -> Figure:
    """Ours beside the rival, in turns; the less the better."""
    pairs = in_turns(
        lambda: _ours(bed, pace), lambda: _rival(bed, pace, n_threads), n_repeats
    )
    ours, theirs = pairs[-1]
    bounds, are_ratios = TRICKLE_BOUNDS, True
    if not pace.per_second:
        bounds = IDLE_BOUNDS
    elif pace.n_partitions >= WIDE:
        bounds, are_ratios = WIDE_BOUNDS, False
    return paired_figure(
        f"CPU of all processes, {pace.told}",
        "% of a core",
        [(mine.total, other.total) for mine, other in pairs],
        bounds,
        faults=[fault for pair in pairs for cost in pair for fault in cost.faults],
        less_is_better=True,
        bounds_are_ratios=are_ratios,
        percent=ours.percent,
        rival_percent=theirs.percent,
        memory_mb=ours.memory_mb,
        rival_memory_mb=theirs.memory_mb,
        topics={name: each._asdict() for name, each in ours.written.items()},
        rival_topics={name: each._asdict() for name, each in theirs.written.items()},
    )


def _ours(bed: Bed, pace: Pace) -> Cost:
    """The roles `ingest` and `fold` of one worker."""
    roles = ("ingest", "fold")
    settings = bed.settings(NO_MODEL, pace.n_partitions)

    def catch_up() -> Tally:
        for role in roles:
            await_end(settings, role, worker.check)
        return statistics_tally(settings)

    with bed.worker(settings, *roles) as worker:
        await_ready([worker], roles)
        running = of_workers(bed, [worker], *roles)
        found = _cost(bed, settings, pace, running, catch_up, "ours")
    delete_topics(settings)
    return found


def _rival(bed: Bed, pace: Pace, n_threads: int) -> Cost:
    """The application of Kafka Streams."""
    settings = bed.settings(NO_MODEL, pace.n_partitions)

    def catch_up() -> Tally:
        await_read(settings, rival, rival.check)
        return rival_tally(settings)

    with running_rival(settings, bed.folder, n_threads) as rival:
        running = of_rival(bed, rival.pid)
        found = _cost(bed, settings, pace, running, catch_up, "the rival")
    delete_topics(settings)
    return found


def _cost(
    bed: Bed,
    settings: Settings,
    pace: Pace,
    running: Callable[[], Named],
    catch_up: Callable[[], Tally],
    whose: str,
) -> Cost:
    """Feed what runs, look at it meanwhile, and count when all has come.

    Parameters
    ----------
    catch_up
        Waits until all that is there was taken; what was counted by then.
    """
    feed = Feed(settings, pace)
    feed.start()
    try:
        if not feed.is_settled.wait(pace.settle_s + PATIENCE_S):
            raise BenchmarkFailed(f"events must be sent within {PATIENCE_S:g} s")
        # Whoever is slower has more of it left.
        catch_up()
        time.sleep(QUIET_S)
        processes, traffic = Processes(running), Traffic(bed.broker.folder / "data")
        processes.sample()
        started_s = time.time()
        written: dict[str, Written] = {}
        while time.time() < started_s + pace.measured_s:
            time.sleep(LOOK_S)
            written = traffic.sample()
        ended_s = time.time()
        processes.sample()
        memory_mb = resident_mb(running())
    finally:
        feed.is_over.set()
        feed.join()
    used = processes.between(started_s, ended_s)
    del used[IDLE]
    percent = {name: 100.0 * s / (ended_s - started_s) for name, s in used.items()}
    faults = catch_up().differences(feed.recount.tally(), whose)
    own = f"{settings.namespace}."
    cost = Cost(
        percent,
        memory_mb,
        {
            topic.removeprefix(own): each
            for topic, each in sorted(written.items())
            # Topics of Kafka's own too, but not of runs before.
            if topic.startswith((own, "__"))
        },
        faults,
    )
    told = ", ".join(
        f"{name} {share:.1f} ({memory_mb[name]:.0f} MB)"
        for name, share in percent.items()
    )
    say(
        f"{whose}, {pace.told}: "
        f"{cost.total:.1f} % of a core: {told}; {faults or 'recount agrees'}"
    )
    return cost
