"""Rules of delivery under thousands of drawn schedules, without a broker."""

import asyncio
import itertools
import logging
from collections import Counter

import pytest
from aiokafka import TopicPartition

from streams.kafka.clients import Cluster
from streams.kafka.state.state_log import StateLog
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content
from tests.fakes.points import Points, begin
from tests.fakes.virtual_loop import VirtualLoop
from tests.session.cases import n_cases
from tests.streams.kafka.delivery.mutants import MUTANTS, Mutant
from tests.streams.kafka.delivery.stage import (
    N_OUTS,
    N_SOURCES,
    NAMESPACE,
    OUT,
    SOURCE,
    STATE,
    stage_kind,
    transactional_id,
)
from tests.streams.kafka.delivery.world import World

N_PARTS, N_OF_PART = n_cases(4, 24), 250
"""Schedules, in parts that may run beside each other."""

N_FOR_MUTANT = 1_000
"""Schedules for each, until one notices; some need what seldom comes together."""

TELLING = 2654, 1061, 1531, 2352, 6471, 8670, 467, 241, 234, 210, 197, 185
"""Those that noticed something before the others, tried first: they save a minute."""

MUST_HAPPEN = (
    "kill", "stop", "pause", "resume", "session ends", "rebalance", "expired", "fenced",
    "hang", "truncate", "recreate", "refused", "restored", "send openly",
    "truncate under a process", "recreate under a process", "commit of others",
    "kill within", "hang a position", "leave unanswered",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of processes say nothing of what they do."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("part", range(N_PARTS))
def test_nothing_is_lost_doubled_or_hidden(part: int) -> None:
    """Outputs, states and refusals are those of the log, whatever happened between."""
    happened: Counter[str] = Counter()
    for seed in range(part * N_OF_PART, (part + 1) * N_OF_PART):
        outcome = World(seed).run()
        assert not outcome.faults, str(outcome)
        happened += outcome.happened
    assert all(happened[each] >= 2 for each in MUST_HAPPEN), happened


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_guard_that_is_inverted_is_noticed(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is there for something that a schedule comes across."""
    mutant(monkeypatch)
    seeds = itertools.chain(TELLING, range(N_FOR_MUTANT))
    found = next(filter(None, (World(seed).run().faults for seed in seeds)), [])
    assert found
    # One that cannot be called would be noticed whatever its guard is for.
    assert not any("TypeError" in fault for fault in found)


def test_a_seed_is_one_schedule() -> None:
    """What failed once can be run again, step by step."""
    for seed in range(20):
        assert World(seed).run().trace == World(seed).run().trace


def hanging(points: Points | None) -> tuple[FakeKafka, FakeClients]:
    """A cluster on which records hang open in the state and in an output."""
    kafka = FakeKafka()
    for topic, n_partitions in ((SOURCE, N_SOURCES), (STATE, N_SOURCES), (OUT, N_OUTS)):
        kafka.create(f"{NAMESPACE}.{topic}", n_partitions)
    name = transactional_id(0)
    kafka.transactions.initialise(name)
    for topic in (STATE, OUT):
        place = TopicPartition(f"{NAMESPACE}.{topic}", 0)
        kafka.hang(place, [Content(b"sequence", b"wrong", (), 0)], name)
    clients = FakeClients(kafka) if points is None else FakeClients(kafka, points.point)
    return kafka, clients


def state_log(clients: FakeClients) -> StateLog:
    """That of partition 0."""
    kind = stage_kind(lambda *_: None, state_always=False)
    return StateLog(kind, 0, Cluster(NAMESPACE, {}, {}, clients))


async def opened(log: StateLog) -> None:
    """Fence and read, as at each start."""
    await log.fence(60_000)
    await log.read()


def test_a_start_that_is_killed_while_it_ends_what_hangs_hides_nothing() -> None:
    """At any of its awaits: the next start ends it all, before it commits anything."""
    n_let_on, is_through = 0, False
    while not is_through:
        points = Points()
        loop = VirtualLoop(points.point)
        kafka, clients = hanging(points)
        first = begin(loop, opened(state_log(clients)), "first")
        loop.run_ready()
        for _ in range(n_let_on):
            while not points.waiting and loop.pass_time():
                pass
            if points.waiting:
                points.let_on(points.waiting[0])
                loop.run_ready()
        is_through = first.done()
        points.waiting.clear()

        second = state_log(FakeClients(kafka))
        begin(loop, opened(second), "second")
        loop.run_ready()
        while loop.pass_time():
            pass
        for topic in (STATE, OUT):
            log = kafka.log(TopicPartition(f"{NAMESPACE}.{topic}", 0))
            assert log.stable == log.end, f"{topic} hangs after {n_let_on} awaits"
            assert not log.fetch(0, is_committed=True).records
        points.end()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_ready()
        loop.close()
        n_let_on += 1
    assert n_let_on > 20
