"""How far apart commits are, and what is heard of sources in between."""

from functools import partial
from itertools import pairwise

import pytest

from rankstream.settings import DeliverySettings, ModelSettings, Settings
from streams.event_time import OUTAGE_MS
from streams.kafka.partitions.backlog import FULL_BYTES, SOON_BYTES
from streams.kafka.partitions.commit_pace import GATHER_S, LOOK_S
from streams.kafka.transport import ReadProgress
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.memory_log import FIRST
from tests.streams.kafka.partitions.test_assignment import HERE, THERE, Bench, Ended

UNWATCHED = Settings()
WATCHED = Settings(models={"model": ModelSettings(features=1)})
UNTIL_S = 18.0


class Pace:
    """An assignment that is ready, and a record each half second, in virtual time."""

    def __init__(self, settings: Settings, *, is_ready: bool = True) -> None:
        self.loop, self.bench = VirtualLoop(), Bench(settings)
        self.began_s: list[float] = []
        self.heard: list[tuple[float, int]] = []
        assignment = self.bench.assignment
        self.loop.finish(self.bench.open(HERE, THERE))
        if is_ready:
            self.loop.finish(assignment.keep((HERE, THERE)))
            self.loop.finish(assignment.commit_all())
        commit_all = assignment.commit_all

        async def noted() -> None:
            self.began_s.append(self.loop.time())
            await commit_all()

        def tick(*, at_end_ms: int) -> None:
            self.heard.append((self.loop.time(), at_end_ms))

        assignment.commit_all = noted  # type: ignore[method-assign]
        self.bench.stage().tick = tick

    def run(self, silence: range = range(0), n_bytes: int = 8) -> None:
        """Commit for a while.

        Parameters
        ----------
        silence
            Seconds in which nothing comes.
        """
        for n in range(int(2 * UNTIL_S)):
            if n // 2 not in silence:
                take = partial(self.bench.take, FIRST + n, n_bytes=n_bytes)
                self.loop.call_at(0.25 + n / 2, take)
        pump = self.loop.create_task(self.bench.assignment.run_commits())
        self.loop.run_ready()
        while self.loop.time() < UNTIL_S:
            assert self.loop.pass_time()
        pump.cancel()
        self.loop.run_ready()
        self.loop.close()


@pytest.mark.parametrize(
    ("settings", "is_ready", "apart_s"),
    [
        (UNWATCHED, True, [1, 2, 4, 5, 5]),
        (WATCHED, True, [1, 1, 1, 1, 1]),
        (UNWATCHED, False, [1, 1, 1, 1, 1]),
    ],
)
def test_commits_are_seldom_where_only_windows_wait(
    settings: Settings, is_ready: bool, apart_s: list[int]
) -> None:
    """Once a worker is ready; where a model learns they are as often as ever."""
    pace = Pace(settings, is_ready=is_ready)
    pace.run()
    found = [b - a for a, b in pairwise(pace.began_s)]
    assert found[: len(apart_s)] == pytest.approx(apart_s, abs=GATHER_S)


def test_a_silence_ends_an_interval_and_the_next_ones_are_short() -> None:
    """Whoever tries something out, or sends a file and its end, waits a second more."""
    pace = Pace(UNWATCHED)
    pace.run(silence=range(9, 13))
    # The last one before it came at 8.75, and the first one behind it at 13.25.
    *_, ended_s = (at_s for at_s in pace.began_s if at_s < 11.0)
    assert pace.began_s[:4] == pytest.approx([0.0, 1.0, 3.0, 7.0], abs=GATHER_S)
    assert ended_s == pytest.approx(10.0, abs=GATHER_S)
    first_s, second_s, *_ = (at_s for at_s in pace.began_s if at_s > 13.25)
    assert first_s <= 14.25 + GATHER_S
    assert second_s - first_s == pytest.approx(1.0, abs=GATHER_S)


@pytest.mark.parametrize("commit_s", [0.5, 2.0, 3.0])
def test_a_silence_ends_an_interval_however_short_they_may_be(commit_s: float) -> None:
    """At once where it has lasted the shortest, and then."""
    pace = Pace(Settings(delivery=DeliverySettings(commit_s=commit_s)))
    pace.run(silence=range(9, int(UNTIL_S)))
    ended_s = next(at_s for at_s in pace.began_s if at_s > 8.75)
    assert ended_s <= 8.75 + max(commit_s, 2.0 * LOOK_S)


def test_what_waits_takes_no_more_memory_than_if_commits_were_often() -> None:
    """Of all partitions together; one alone is committed at once."""
    pace = Pace(UNWATCHED)
    pace.run(n_bytes=SOON_BYTES // 3)
    # Two come a second, so that three are there behind the second one.
    apart_s = [b - a for a, b in pairwise(pace.began_s)]
    assert max(apart_s) <= 2.0 + GATHER_S


def test_a_rebalance_changes_no_pace() -> None:
    """What is due is committed at once then, too, and the rest in its time."""
    pace = Pace(UNWATCHED)
    assignment = pace.bench.assignment

    async def rebalance() -> None:
        await assignment.suspend()
        await pace.bench.open(HERE, THERE)
        await assignment.keep((HERE, THERE))

    pace.loop.call_at(3.9, lambda: pace.loop.create_task(rebalance()))
    # The record that comes at 4.25, early and large; it is dropped when it comes again.
    full = partial(pace.bench.take, FIRST + 8, n_bytes=FULL_BYTES)
    pace.loop.call_at(4.1, full)
    pace.run()
    expected = [0.0, 1.0, 3.0, 4.1, 8.1]
    assert pace.began_s[: len(expected)] == pytest.approx(expected, abs=GATHER_S)


def test_sources_that_wait_for_each_other_are_committed_often() -> None:
    """One that is ahead goes on when a commit has told how far the others are."""
    pace = Pace(UNWATCHED)
    assignment = pace.bench.assignment
    lead_ms = UNWATCHED.time.lead_ms
    pace.bench.read[THERE] = ReadProgress(FIRST, FIRST, FIRST + 5)
    assignment.committers[HERE].counts = {"frontier_ms": lead_ms + 2}
    assignment.committers[THERE].counts = {"frontier_ms": 1}
    assert assignment.not_held_back({HERE, THERE}) == {THERE}
    pace.run()
    assert pace.began_s[:4] == pytest.approx([0.0, 1.0, 2.0, 3.0], abs=GATHER_S)


@pytest.mark.parametrize("silence", [range(0), range(1, 18)])
@pytest.mark.parametrize("commit_s", [1.0, 4.0])
def test_ends_of_sources_are_heard_between_commits(
    commit_s: float, silence: range
) -> None:
    """Else what lies between two commits would be taken for an outage."""
    pace = Pace(Settings(delivery=DeliverySettings(commit_s=commit_s)))
    pace.bench.read[HERE] = ReadProgress(FIRST, FIRST + 1, FIRST + 1, 700)
    pace.run(silence)
    heard_s = [at_s for at_s, _ in pace.heard]
    apart_s = [b - a for a, b in pairwise(heard_s)]
    assert max(apart_s) <= LOOK_S + GATHER_S < OUTAGE_MS / 1_000
    # What was read is folded by then.
    assert {at_end_ms for at_s, at_end_ms in pace.heard if at_s >= LOOK_S} == {700}


def test_what_fails_between_commits_ends_the_process() -> None:
    """Else it would fold on, and commit nothing any more."""
    pace, error = Pace(UNWATCHED), MemoryError()
    committer = pace.bench.assignment.committers[HERE]

    def tick(**_: int) -> None:
        if not committer._gathering.locked():
            raise error

    pace.bench.stage().tick = tick
    pump = pace.loop.create_task(pace.bench.assignment.run_commits())
    pace.loop.run_ready()
    while not pump.done():
        assert pace.loop.pass_time()
        assert pace.loop.time() < UNTIL_S
    assert isinstance(pump.exception(), Ended)
    assert pace.bench.failures == [error]
    pace.loop.close()


def test_nothing_is_heard_of_what_is_being_gathered_or_was_revoked() -> None:
    """A stage is settled in a thread, and hears nothing meanwhile."""
    pace = Pace(UNWATCHED)
    committer = pace.bench.assignment.committers[HERE]
    pace.loop.finish(committer._gathering.acquire())
    committer.look(700)
    assert pace.heard == []
    committer._gathering.release()
    committer.look(700)
    assert len(pace.heard) == 1
    pace.loop.finish(pace.bench.assignment.suspend())
    committer.look(700)
    assert len(pace.heard) == 1
    pace.loop.close()
