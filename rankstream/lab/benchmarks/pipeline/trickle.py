"""What few events cost, or none: shares of a core by process, and what is written.

Events have the time at which they come. All of a side's processes count and so does
the broker; whoever sends does not, as it is the same for both sides.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rankstream.lab.benchmarks.harness import Bounds, Figure, in_turns, paired_figure
from rankstream.lab.benchmarks.pipeline.bed import Bed, say
from rankstream.lab.benchmarks.pipeline.beside_rival import (
    N_FEATURES,
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
    of_worker,
)
from rankstream.lab.benchmarks.pipeline.rival.application import (
    rival_tally,
    running_rival,
)
from rankstream.lab.benchmarks.pipeline.roles import await_ready
from rankstream.lab.benchmarks.pipeline.traffic import Traffic, Written
from rankstream.settings import Settings

LOOK_S = 0.5


class Pace(NamedTuple):
    """How events come, and how long that is measured.

    Parameters
    ----------
    per_second
        Events, 0 for none.
    n_partitions
        Of each topic.
    settle_s
        Before anything counts: a virtual machine compiles what it runs often.
    """

    per_second: float
    n_partitions: int
    settle_s: float
    measured_s: float


class Cost(NamedTuple):
    """Percent of a core by process, what was written by topic, and what is wrong."""

    percent: Mapping[str, float]
    written: Mapping[str, Written]
    faults: list[str]

    @property
    def total(self) -> float:
        """Percent of a core, of all processes."""
        return sum(self.percent.values())


class Feed(threading.Thread):
    """Sends events at a steady pace until it is told to end; then ends the input."""

    def __init__(self, settings: Settings, per_second: float) -> None:
        super().__init__(daemon=True)
        self.recount = InputRecount(settings.time.click_window_ms)
        self.is_over = threading.Event()
        self._settings = settings
        self._per_second = per_second

    def run(self) -> None:
        """Send."""
        if self._per_second:
            asyncio.run(self._send())
        self.is_over.wait()
        end_input(self._settings)

    async def _send(self) -> None:
        kafka = self._settings.kafka
        per_second, now_ms = self._per_second / EVENTS_A_LIST, round(1e3 * time.time())
        topics = topics_in(self._settings)
        producer = new_producer(kafka.bootstrap)
        await producer.start()
        try:
            for event in InputLog(kafka.input_partitions, per_second, now_ms):
                await asyncio.sleep(max(0.0, event.at_ms / 1e3 - time.time()))
                if self.is_over.is_set():
                    break
                self.recount.take(event.topic, event.value)
                await producer.send(
                    topics[event.topic], event.value, partition=event.partition
                )
        finally:
            await producer.stop()


def trickle_figure(
    bed: Bed, pace: Pace, n_threads: int, n_repeats: int, bounds: Bounds
) -> Figure:
    """Ours beside the rival, in turns; the less the better."""
    pairs = in_turns(
        lambda: _ours(bed, pace), lambda: _rival(bed, pace, n_threads), n_repeats
    )
    name = f"{pace.per_second:,.0f} events/s on {pace.n_partitions} partitions"
    ours, theirs = pairs[-1]
    return paired_figure(
        f"{name}: CPU of all processes",
        "% of a core",
        [(mine.total, other.total) for mine, other in pairs],
        bounds,
        faults=[fault for pair in pairs for cost in pair for fault in cost.faults],
        less_is_better=True,
        bounds_are_ratios=True,
        percent=ours.percent,
        rival_percent=theirs.percent,
        topics={name: each._asdict() for name, each in ours.written.items()},
        rival_topics={name: each._asdict() for name, each in theirs.written.items()},
    )


def _ours(bed: Bed, pace: Pace) -> Cost:
    """The roles `ingest` and `fold` of one worker."""
    roles = ("ingest", "fold")
    settings = bed.settings(N_FEATURES, pace.n_partitions)

    def finish() -> Tally:
        for role in roles:
            await_end(settings, role, worker.check)
        return statistics_tally(settings)

    with bed.worker(settings, *roles) as worker:
        await_ready([worker], roles)
        running = of_worker(bed, worker, *roles)
        found = _cost(bed, settings, pace, running, finish, "ours")
    delete_topics(settings)
    return found


def _rival(bed: Bed, pace: Pace, n_threads: int) -> Cost:
    """The application of Kafka Streams."""
    settings = bed.settings(N_FEATURES, pace.n_partitions)

    def finish() -> Tally:
        await_read(settings, rival, rival.check)
        return rival_tally(settings)

    with running_rival(settings, bed.folder, n_threads) as rival:
        running = of_rival(bed, rival.pid)
        found = _cost(bed, settings, pace, running, finish, "the rival")
    delete_topics(settings)
    return found


def _cost(
    bed: Bed,
    settings: Settings,
    pace: Pace,
    running: Callable[[], Named],
    finish: Callable[[], Tally],
    whose: str,
) -> Cost:
    """Feed what runs, look at it meanwhile, and count when all has come."""
    feed = Feed(settings, pace.per_second)
    feed.start()
    try:
        time.sleep(pace.settle_s)
        processes, traffic = Processes(running), Traffic(bed.broker.folder / "data")
        processes.sample()
        started_s = time.time()
        written: dict[str, Written] = {}
        while time.time() < started_s + pace.measured_s:
            time.sleep(LOOK_S)
            written = traffic.sample()
        ended_s = time.time()
        processes.sample()
    finally:
        feed.is_over.set()
        feed.join()
    used = processes.between(started_s, ended_s)
    del used[IDLE]
    percent = {name: 100.0 * s / (ended_s - started_s) for name, s in used.items()}
    faults = finish().differences(feed.recount.tally(), whose)
    own = f"{settings.namespace}."
    cost = Cost(
        percent,
        {
            topic.removeprefix(own): each
            for topic, each in sorted(written.items())
            # Topics of Kafka's own too, but not of runs before.
            if topic.startswith((own, "__"))
        },
        faults,
    )
    told = ", ".join(f"{name} {share:.1f}" for name, share in percent.items())
    say(
        f"{whose}, {pace.per_second:,.0f} events/s, {pace.n_partitions} partitions: "
        f"{cost.total:.1f} % of a core: {told}; {faults or 'recount agrees'}"
    )
    return cost
