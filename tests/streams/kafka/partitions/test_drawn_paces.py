"""When commits begin, whatever comes when: laws of a pace under drawn arrivals."""

import asyncio
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest

from streams.kafka.partitions.commit_pace import (
    GATHER_S,
    LOOK_S,
    SHORTEST_PAUSE_S,
    CommitPace,
)
from tests.fakes.virtual_loop import VirtualLoop
from tests.session.cases import n_cases

UNTIL_S = 30.0
MANY = 40
"""Arrivals that wait, from which on a look finds a commit due."""

ROUNDING_S = 1e-6


class Arrival(NamedTuple):
    """Something that was folded, and whether it is to be committed at once."""

    at_s: float
    is_due: bool


class Commit(NamedTuple):
    """A commit has what came before it began."""

    began_s: float
    ended_s: float


class Schedule:
    """Half a minute of a pace: stretches of arrivals, and of silence."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)  # noqa: S311
        self.shortest_s = rng.choice((0.1, 0.4, 1.0, 3.0))
        self.longest_s = self.shortest_s * rng.choice((1, 2, 5))
        self.commits: list[Commit] = []
        self.looks: list[tuple[float, bool]] = []
        self.arrivals = self._drawn(rng)
        self._lasts_s = self.shortest_s * rng.choice((0.0, 0.1, 0.9, 2.5))
        self._loop = VirtualLoop()
        self._n_waiting = 0
        self._pace = CommitPace(self.shortest_s, lambda: self.longest_s, self._look)

    def run(self) -> "Schedule":
        """Let it all come."""
        loop = self._loop
        for each in self.arrivals:
            loop.call_at(each.at_s, self._take, each)
        pump = loop.create_task(self._pace.run(self._commit))
        loop.run_ready()
        while loop.time() < UNTIL_S:
            assert loop.pass_time()
        pump.cancel()
        loop.run_ready()
        loop.close()
        return self

    def between(self, first: Commit, second: Commit) -> list[Arrival]:
        """What the second commit has that the first has not."""
        return [e for e in self.arrivals if first.began_s < e.at_s <= second.began_s]

    def _drawn(self, rng: Random) -> list[Arrival]:
        found, at_s = list[Arrival](), 0.0
        while at_s < UNTIL_S:
            ends_s = at_s + rng.expovariate(0.2)
            apart_s = rng.choice((0.02, 0.1, 0.7, 4.0, 1e9))
            while (at_s := at_s + rng.expovariate(1.0 / apart_s)) < ends_s:
                found.append(Arrival(at_s, rng.random() < 0.02))
            at_s = ends_s
        return found

    def _take(self, arrival: Arrival) -> None:
        self._n_waiting += 1
        self._pace.take(is_due=arrival.is_due)

    def _look(self) -> bool:
        is_due = self._n_waiting >= MANY
        self.looks.append((self._loop.time(), is_due))
        return is_due

    async def _commit(self) -> None:
        began_s, self._n_waiting = self._loop.time(), 0
        await asyncio.sleep(self._lasts_s)
        self.commits.append(Commit(began_s, self._loop.time()))


@pytest.fixture(scope="module")
def schedules() -> list[Schedule]:
    """Each of them run to its end."""
    return [Schedule(seed).run() for seed in range(n_cases(50, 2_000))]


def test_nothing_waits_for_longer_than_it_may(schedules: list[Schedule]) -> None:
    """For the longest interval and a commit; what is due waits for a commit only."""
    n_due = 0
    for each in schedules:
        for first, second in pairwise(each.commits):
            came = each.between(first, second)
            n_due += sum(arrival.is_due for arrival in came)
            for at_s, is_due in came:
                latest_s = max(first.ended_s, at_s)
                if not is_due:
                    last_s = max(first.began_s + each.longest_s, first.ended_s)
                    latest_s = max(last_s + SHORTEST_PAUSE_S, at_s + GATHER_S)
                assert second.began_s <= latest_s + ROUNDING_S
    assert n_due > len(schedules)


def test_commits_are_an_interval_apart_unless_one_is_due(
    schedules: list[Schedule],
) -> None:
    """Two of them where nothing came."""
    n_idle = 0
    for each in schedules:
        hurried_s = {at_s for at_s, is_due in each.looks if is_due}
        for first, second in pairwise(each.commits):
            came = each.between(first, second)
            is_due = second.began_s in hurried_s or any(one.is_due for one in came)
            apart_s = each.shortest_s * (1 if came else 2)
            n_idle += not came
            assert is_due or second.began_s - first.began_s >= apart_s - ROUNDING_S
    assert n_idle > len(schedules)


def test_what_looks_find_due_is_committed_at_once(schedules: list[Schedule]) -> None:
    """They are a second apart at most, whatever lies between."""
    n_due = 0
    for each in schedules:
        began = {one.began_s for one in each.commits}
        due = [at_s for at_s, is_due in each.looks if is_due]
        n_due += len(due)
        assert began.issuperset(
            at_s for at_s in due if at_s <= each.commits[-1].began_s
        )
        heard = sorted([*began, *(at_s for at_s, _ in each.looks)])
        ends = {one.began_s: one.ended_s for one in each.commits}
        for one_s, next_s in pairwise(heard):
            assert next_s - ends.get(one_s, one_s) <= LOOK_S + GATHER_S + ROUNDING_S
    assert n_due > 10
