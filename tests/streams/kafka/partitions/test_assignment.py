"""Which partitions a process has, and what becomes of a record or a commit."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from rankstream.settings import DeliverySettings, Settings
from streams.kafka.group.membership import Membership
from streams.kafka.partitions import assignment as module
from streams.kafka.partitions.assignment import Assignment
from streams.kafka.partitions.backlog import FULL_BYTES
from streams.kafka.partitions.commit_pace import GATHER_S
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import State
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.state.resume_position import StateRefused
from streams.kafka.transport import ReadProgress
from streams.source_records import SourceRecords
from streams.stage import Output
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.memory_log import (
    FIRST,
    SETTINGS,
    Acknowledged,
    Fenced,
    MemoryLog,
    Topics,
    committer_on,
    numbered,
)
from tests.streams.kafka.toy import OUT

HERE, THERE, ELSEWHERE = (
    TopicPartition("ns.toy", 0),
    TopicPartition("ns.toy", 1),
    TopicPartition("other", 0),
)
UNREAD = ReadProgress(-1, None, None)


class Ended(Exception):
    """The process is no more."""


class Bench:
    """A process with an assignment; each partition has topics of its own."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.rebalancing = False
        self._settings = settings
        self.generation, self.member_id = 0, "m"
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.may_check = asyncio.Event()
        self.may_check.set()
        self.changed: StateRefused | None = None
        self.read: dict[TopicPartition, ReadProgress] = {}
        self.topics = {HERE: Topics(), THERE: Topics()}
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.failures: list[BaseException] = []
        self.ready: list[list[str]] = []
        self.assignment = Assignment(
            self,
            settings,
            self.fail,
            self.check,
            lambda found: self.ready.append([one.name for one in found]),
        )

    def committer_of(self, place: TopicPartition) -> Committer | None:
        """One on the topics of a partition."""
        if place not in self.topics:
            return None
        self.logs[place] = MemoryLog(self.topics[place])
        self.logs[place].may_read = self.may_read
        return committer_on(self.logs[place], self._settings)

    def progress(self, place: TopicPartition) -> ReadProgress:
        """How far a partition was read."""
        return self.read.get(place, UNREAD)

    def fail(self, error: BaseException) -> NoReturn:
        """End the process."""
        self.failures.append(error)
        raise Ended

    async def written(self) -> None:
        """Nothing is written that nobody waits for."""

    async def check(self) -> None:
        """Look whether a topic has changed, once that may be looked at."""
        await self.may_check.wait()
        if self.changed is not None:
            raise self.changed

    async def open(
        self, *places: TopicPartition, committed: int | None = None
    ) -> dict[TopicPartition, int]:
        """Have partitions assigned, in the next generation."""
        self.generation += 1
        self.assignment.join(
            Membership(self.generation, self.member_id, "", frozenset(places))
        )
        return await self.assignment.open(dict.fromkeys(places, committed))

    def take(
        self, offset: int, place: TopicPartition = HERE, **how: Any
    ) -> Acknowledged:
        """Offer the record at an offset; it need not wait."""
        event = Acknowledged()
        record = numbered(offset, how.pop("n_bytes", 8))
        assert self.assignment.take(
            place, SourceRecords.of([record]), event, **({"is_current": True} | how)
        )
        return event

    def state(self, place: TopicPartition = HERE) -> State:
        """What a partition is doing."""
        return self.assignment.committers[place].life.state

    def stage(self, place: TopicPartition = HERE) -> Any:
        """The stage of a partition."""
        return self.assignment.committers[place].stage


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


def test_partitions_write_their_state_by_turns() -> None:
    """Both are due; the one in the first commit waits in the second."""

    async def body() -> None:
        delivery = DeliverySettings(state_s=3_600.0, state_records=2)
        bench = Bench(Settings(delivery=delivery))
        await bench.open(HERE, THERE)
        await bench.assignment.commit_all()
        bench.take(10)
        for offset in (10, 11, 12):
            bench.take(offset, THERE)
        bench.take(11)

        def written() -> list[bool]:
            found = (bench.topics[place].position for place in (HERE, THERE))
            return [each.checkpoint_offset == each.offset for each in found]

        await bench.assignment.commit_all()
        assert written() == [False, True]
        await bench.assignment.commit_all()
        assert written() == [True, True]

    run(body())


def test_what_is_assigned_is_opened_and_all_else_closed() -> None:
    """Topics that are no source of ours start nowhere."""

    async def body() -> None:
        bench = Bench()
        assert await bench.open(HERE, ELSEWHERE) == {HERE: FIRST}
        assert await bench.open(THERE) == {THERE: FIRST}
        assert list(bench.assignment.committers) == [THERE]
        assert bench.logs[HERE].calls[-1] == "close"

    run(body())


def test_a_start_is_over_when_all_that_was_assigned_is_folded() -> None:
    """Not while one of them is behind its resume position; and it is said once."""

    async def body() -> None:
        before = Bench()
        await before.open(HERE)
        before.take(10)
        await before.assignment.commit_all()
        bench = Bench()
        bench.topics = before.topics
        await bench.assignment.commit_all()
        assert bench.ready == []  # nothing was assigned yet
        await bench.open(HERE, THERE)
        await bench.assignment.keep({HERE, THERE})
        await bench.assignment.commit_all()
        assert bench.state() is State.REPLAYING
        assert bench.ready == []
        bench.take(10)
        for _ in range(2):
            await bench.assignment.commit_all()
        assert bench.ready == [["toy[0]", "toy[0]"]]

    run(body())


def test_what_is_assigned_again_goes_on_from_memory() -> None:
    """Nothing is read back, and nothing folded twice."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10)
        await bench.assignment.suspend()
        before = bench.logs[HERE].member
        assert await bench.open(HERE) == {HERE: 11}
        assert bench.logs[HERE].calls.count("read") == 1
        # It writes as who it is by now, and goes on from memory once more.
        now = bench.logs[HERE].member
        assert before is not None
        assert now == bench.assignment.committers[HERE].member
        assert now == before._replace(generation=before.generation + 1)
        bench.take(11)
        await bench.assignment.commit_all()
        assert bench.topics[HERE].passed_on == [10, 11]

    run(body())


def test_what_is_not_assigned_again_is_closed() -> None:
    """Also where nothing is."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE, THERE)
        await bench.assignment.suspend()
        await bench.assignment.keep({THERE})
        assert list(bench.assignment.committers) == [THERE]
        await bench.assignment.keep(())
        assert not bench.assignment.committers

    run(body())


def test_what_is_revoked_while_it_is_opened_stays_suspended() -> None:
    """Until it is assigned again."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        await bench.open()
        bench.logs.clear()
        opening = await opening_of(bench)
        await bench.assignment.suspend()
        bench.may_read.set()
        assert await opening == {HERE: FIRST}
        assert bench.state() is State.SUSPENDED
        assert bench.take(10).n_acks == 1
        assert await bench.open(HERE) == {HERE: FIRST}
        assert bench.state() is State.LIVE

    run(body())


def test_what_is_revoked_before_its_first_position_is_written_is_closed() -> None:
    """Whoever has it next writes that."""

    async def body() -> None:
        bench = Bench()
        opening = await opening_of(bench)
        await bench.assignment.suspend()
        bench.may_read.set()
        assert await opening == {}
        assert bench.logs[HERE].calls == ["fence", "read", "close"]
        assert not bench.topics[HERE].n_writes
        assert await bench.open(HERE) == {HERE: FIRST}
        assert bench.state() is State.LIVE

    run(body())


def test_what_another_may_have_had_meanwhile_is_read_again() -> None:
    """Who missed a generation does not know who had its partitions in that."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10)
        await bench.assignment.suspend()
        first = bench.stage()
        await bench.open(HERE)
        assert bench.stage() is first
        await bench.assignment.suspend()
        other = committer_on(MemoryLog(bench.topics[HERE]))
        await other.open(None)
        other.fold(SourceRecords.of([numbered(11)]), Acknowledged())
        await other.commit_last()
        bench.generation += 1
        assert await bench.open(HERE) == {HERE: 12}
        assert bench.stage() is not first
        assert bench.logs[HERE].calls == ["fence", "read"]

    run(body())


def test_what_is_closed_is_closed_whoever_stops_waiting_for_it() -> None:
    """Else its id would stay with a process that has the partition no more."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        log = bench.logs[HERE]
        log.may_write.clear()
        bench.take(10)
        writing = asyncio.create_task(bench.assignment.commit_all())
        await asyncio.sleep(0)
        closing = asyncio.create_task(bench.assignment.keep(()))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        log.may_write.set()
        await writing
        for _ in range(3):
            await asyncio.sleep(0)
        assert log.calls[-1] == "close"

    run(body())


def test_what_is_sought_twice_is_opened_once() -> None:
    """Faust may ask again where to start while that is being found out."""

    async def body() -> None:
        bench = Bench()
        first = await opening_of(bench)
        log = bench.logs[HERE]
        second = asyncio.create_task(bench.assignment.open({HERE: None}))
        await asyncio.sleep(0)
        bench.may_read.set()
        assert [*await asyncio.gather(first, second)] == [{HERE: FIRST}] * 2
        assert bench.logs[HERE] is log
        assert log.calls.count("fence") == 1

    run(body())


@pytest.mark.parametrize("steps", [-1, 0])
def test_who_joined_once_more_reads_again(steps: int) -> None:
    """Another of its name may have had all of it in the very same generation."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10)
        await bench.assignment.suspend()
        other = committer_on(MemoryLog(bench.topics[HERE]))
        await other.open(None)
        other.fold(SourceRecords.of([numbered(11)]), Acknowledged())
        await other.commit_last()
        bench.member_id = "m, once more"
        bench.generation += steps
        assert await bench.open(HERE) == {HERE: 12}
        bench.take(12)
        await bench.assignment.commit_all()
        assert bench.topics[HERE].passed_on == [10, 11, 12]

    run(body())


def test_who_follows_whom_is_a_matter_of_one_generation() -> None:
    """Counted up by at most 1, for one member; nobody follows nobody."""
    members = [
        Membership(generation, name, "", frozenset())
        for generation in range(1, 6)
        for name in ("m", "m, once more")
    ]
    for earlier in members:
        for later in members:
            is_next = later.generation in {earlier.generation, earlier.generation + 1}
            is_same = later.member_id == earlier.member_id
            assert later.follows(earlier) is (is_next and is_same)
        assert not earlier.follows(None)


def test_what_was_folded_is_written_as_who_was_assigned_it() -> None:
    """Another may have the partition in the generation that is heard of meanwhile."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        before = bench.logs[HERE].member
        bench.take(10)
        bench.assignment.join(Membership(2, "m", "", frozenset({THERE})))
        assert bench.logs[HERE].member == before
        await bench.assignment.suspend()
        assert bench.logs[HERE].member == before
        await bench.open(HERE)
        assert bench.logs[HERE].member == Membership(2, "m", "", frozenset({HERE}))

    run(body())


def test_nothing_is_opened_that_this_generation_did_not_assign() -> None:
    """A seek may come late: another one has the partition by then."""

    async def body() -> None:
        bench = Bench()
        bench.assignment.join(Membership(1, "m", "", frozenset({HERE})))
        assert await bench.assignment.open({HERE: None, THERE: None}) == {HERE: FIRST}
        assert THERE not in bench.logs

    run(body())


@pytest.mark.parametrize("is_joined", [False, True])
def test_what_is_revoked_while_topics_are_looked_at_is_not_opened(
    is_joined: bool,
) -> None:
    """The answer may take seconds, and the partitions be another's by then.

    Or be assigned anew: then that assignment opens them, as another generation.
    """

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        await bench.assignment.suspend()
        bench.may_check.clear()
        opening = asyncio.create_task(bench.open(HERE, THERE))
        await asyncio.sleep(0)
        await bench.assignment.suspend()
        if is_joined:
            later = Membership(bench.generation + 1, "m", "", frozenset({HERE, THERE}))
            bench.assignment.join(later)
        bench.may_check.set()
        assert await opening == {HERE: FIRST}
        assert bench.state(HERE) is State.SUSPENDED
        assert THERE not in bench.logs

    run(body())


def test_nothing_is_opened_where_a_topic_has_changed() -> None:
    """It may be why partitions were assigned anew; and why nothing is where it was."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.changed = StateRefused("another topic")
        with pytest.raises(Ended):
            await bench.open(HERE, THERE)
        assert THERE not in bench.logs
        with pytest.raises(Ended):
            await bench.assignment.read_outside(HERE, 5, 6)
        assert bench.failures == [bench.changed] * 2

    run(body())


def test_an_assignment_that_waits_is_overtaken_by_a_revocation() -> None:
    """It waited for another to be opened, which is suspended; more is not opened."""

    async def body() -> None:
        bench = Bench()
        first = await opening_of(bench)
        second = asyncio.create_task(bench.open(HERE, THERE))
        await asyncio.sleep(0)
        await bench.assignment.suspend()
        bench.may_read.set()
        assert [*await asyncio.gather(first, second)] == [{}, {}]
        assert THERE not in bench.logs

    run(body())


async def opening_of(bench: Bench) -> "asyncio.Task[dict[TopicPartition, int]]":
    """An opening that has fenced and is reading."""
    bench.may_read.clear()
    opening = asyncio.create_task(bench.open(HERE))
    while HERE not in bench.logs or "read" not in bench.logs[HERE].calls:
        await asyncio.sleep(0)
    return opening


@pytest.mark.parametrize(
    ("place", "is_current"), [(HERE, False), (THERE, True), (ELSEWHERE, True)]
)
def test_a_record_that_is_not_ours_is_dropped(
    place: TopicPartition, is_current: bool
) -> None:
    """Of another generation, of a partition that we do not have; acknowledged."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        assert bench.take(10, place, is_current=is_current).n_acks == 1
        await bench.assignment.commit_all()
        assert bench.assignment.committers[HERE].folded == FIRST - 1
        assert bench.topics[HERE].passed_on == []

    run(body())


def test_a_revoked_partition_folds_and_writes_nothing_more() -> None:
    """After the last commit, which has what was folded before."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        kept = bench.take(10)
        await bench.assignment.suspend()
        assert kept.n_acks == 1
        n_writes = bench.topics[HERE].n_writes
        assert bench.take(11).n_acks == 1
        await bench.assignment.commit_all()
        await bench.assignment.suspend()
        assert bench.topics[HERE].n_writes == n_writes
        assert bench.topics[HERE].passed_on == [10]
        assert bench.topics[HERE].position.checkpoint_offset == 10

    run(body())


def test_what_is_suspended_already_has_no_last_commit() -> None:
    """It may be another's by now, who would be found to have fenced us."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        await bench.assignment.suspend()
        await MemoryLog(bench.topics[HERE]).fence(1)
        bench.stage().outputs = lambda: [Output(OUT, 0, None, b"said by a clock")]
        await bench.assignment.suspend()
        assert not bench.failures

    run(body())


def test_a_record_that_comes_while_the_last_commit_is_written_is_dropped() -> None:
    """A revocation counts from when it is heard, not from when it is dealt with."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.logs[HERE].may_write.clear()
        bench.take(10)
        suspending = asyncio.create_task(bench.assignment.suspend())
        await asyncio.sleep(0)
        assert bench.take(11).n_acks == 1
        bench.logs[HERE].may_write.set()
        await suspending
        assert await bench.open(HERE) == {HERE: 11}

    run(body())


def test_a_record_that_waited_is_dropped_if_its_partition_is_gone() -> None:
    """What holds when it is folded counts, not what held when it came."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10, n_bytes=FULL_BYTES)
        late = Acknowledged()
        more = SourceRecords.of([numbered(11)])
        assert not bench.assignment.take(HERE, more, late, is_current=True)
        turn = asyncio.create_task(bench.assignment.turn_of(HERE))
        await asyncio.sleep(0)
        await bench.assignment.suspend()
        await turn
        assert bench.assignment.take(HERE, more, late, is_current=True)
        assert late.n_acks == 1
        assert bench.assignment.committers[HERE].folded == 10

    run(body())


def test_a_full_backlog_is_committed_at_once() -> None:
    """Not when the clock says so."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        pump = asyncio.create_task(bench.assignment.run_commits())
        await asyncio.sleep(0.01)
        bench.take(10, n_bytes=FULL_BYTES)
        async with asyncio.timeout(60.0):
            await bench.assignment.turn_of(HERE)
        bench.take(11)
        pump.cancel()
        assert bench.assignment.committers[HERE].folded == 11

    run(body())


def test_what_comes_after_an_interval_is_committed_as_it_comes() -> None:
    """And what comes within one at its end: nobody waits for two."""
    loop, bench = VirtualLoop(), Bench()
    loop.finish(bench.open(HERE))
    pump = loop.create_task(bench.assignment.run_commits())
    loop.run_ready()
    committed: list[float] = []
    interval_s = SETTINGS.delivery.commit_s
    late_s = 2.5 * interval_s
    for offset, start_s in ((10, 1.0), (11, late_s), (12, late_s + 1.0)):
        loop.call_at(start_s, bench.take, offset)
    while len(committed) < 3:
        assert loop.pass_time()
        assert loop.time() < 9.0 * interval_s
        reached = bench.assignment.committers[HERE].committed
        if reached == 10 + len(committed):
            committed.append(loop.time())
    pump.cancel()
    loop.run_ready()
    loop.close()
    soon_s = late_s + GATHER_S
    assert committed == pytest.approx([interval_s, soon_s, soon_s + interval_s], abs=1)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_commits_begin_an_interval_apart_however_long_they_take(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes late is gathered, but for a full backlog; then all is as before."""
    loop, bench = VirtualLoop(), Bench()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=loop.time))
    commit_all, began = bench.assignment.commit_all, list[float]()
    every_s = SETTINGS.delivery.commit_s

    async def slowly() -> None:
        began.append(loop.time())
        assert len(began) < 9
        await asyncio.sleep(share * every_s)
        await commit_all()

    monkeypatch.setattr(bench.assignment, "commit_all", slowly)
    loop.finish(bench.open(HERE))
    pump = loop.create_task(bench.assignment.run_commits())
    loop.run_ready()
    late_s = 2.5 * every_s
    full_s = late_s + 1.5 * every_s + GATHER_S / 2
    for offset, at_s, n_bytes in (
        (10, 0.1 * every_s, 8),
        (11, late_s, 8),
        (12, full_s - GATHER_S / 4, 8),
        (13, full_s, FULL_BYTES),
    ):
        loop.call_at(at_s, partial(bench.take, offset, n_bytes=n_bytes))
    while loop.time() < full_s + 2.1 * every_s:
        assert loop.pass_time()
    pump.cancel()
    loop.run_ready()
    loop.close()
    expected = [0.0, every_s, late_s + GATHER_S, full_s, full_s + 2.0 * every_s]
    assert began == pytest.approx(expected, abs=GATHER_S / 100)


@pytest.mark.parametrize("is_last", [False, True])
def test_a_commit_is_written_whole_whoever_stops_waiting_for_it(is_last: bool) -> None:
    """Else its outputs are gone, and the next commit finds a transaction open."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        event = bench.take(10)
        log = bench.logs[HERE]
        log.may_write.clear()
        assignment = bench.assignment
        work = assignment.suspend() if is_last else assignment.commit_all()
        waiting = asyncio.create_task(work)
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert event.n_acks == 0
        stopping = asyncio.create_task(assignment.suspend())
        await asyncio.sleep(0.01)
        assert log.calls.count("write") == 2
        log.may_write.set()
        await stopping
        await assignment.keep(())
        assert event.n_acks == 1
        assert bench.topics[HERE].passed_on == [10]
        assert bench.failures == []

    run(body())


def test_a_commit_that_fails_ends_the_process() -> None:
    """With the error, and nothing of it is acknowledged."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        event = bench.take(10)
        await MemoryLog(bench.topics[HERE]).fence(1)
        with pytest.raises(Ended):
            await bench.assignment.commit_all()
        (failure,) = bench.failures
        assert isinstance(failure, Fenced)
        assert event.n_acks == 0

    run(body())


def test_a_last_commit_that_fails_ends_the_process() -> None:
    """As where another owner has written meanwhile."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10)
        await MemoryLog(bench.topics[HERE]).fence(1)
        with pytest.raises(Ended):
            await bench.assignment.suspend()
        assert [type(one) for one in bench.failures] == [Fenced]

    run(body())


def test_a_partition_that_is_refused_ends_the_process() -> None:
    """With what was found."""

    async def body() -> None:
        bench = Bench()
        with pytest.raises(Ended):
            await bench.open(HERE, committed=30)
        (failure,) = bench.failures
        assert isinstance(failure, StateRefused)
        assert "has committed offset 30" in str(failure)

    run(body())


def test_a_fold_that_raises_ends_the_process() -> None:
    """An error in an agent would be dropped with its event."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)

        def broken(_: Any) -> NoReturn:
            raise ZeroDivisionError

        bench.stage().fold = broken
        with pytest.raises(Ended):
            bench.take(10)
        assert [type(one) for one in bench.failures] == [ZeroDivisionError]

    run(body())


def test_a_process_that_ends_opens_nothing() -> None:
    """What Faust still seeks starts nowhere."""

    async def body() -> None:
        bench = Bench()
        bench.assignment.open_no_more()
        assert await bench.open(HERE) == {}
        assert not bench.logs

    run(body())


@pytest.mark.parametrize(
    ("progress", "rebalancing", "lag", "at_end_ms", "next_offset"),
    [
        (ReadProgress(10, 14, 14, 700), False, 0, 700, 14),
        (ReadProgress(10, 14, 14, 700), True, 0, 0, 14),
        (ReadProgress(10, 14, 20), False, 6, 0, 14),
        (ReadProgress(12, 14, 14, 700), False, 3, 0, 11),
        (ReadProgress(10, None, None), False, 0, 0, 11),
        (ReadProgress(10, None, 14), False, 0, 0, 11),
        (ReadProgress(10, 14, None), False, 0, 0, 14),
    ],
)
def test_what_was_read_and_is_folded_is_where_reading_goes_on(
    progress: ReadProgress,
    rebalancing: bool,
    lag: int,
    at_end_ms: int,
    next_offset: int,
) -> None:
    """The end of the source is what the stage has folded, never what was fetched."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        bench.take(10)
        bench.read[HERE], bench.rebalancing = progress, rebalancing
        heard: list[int] = []
        bench.stage().tick = lambda *, at_end_ms: heard.append(at_end_ms)
        assert bench.assignment.lag_of(HERE) == lag
        await bench.assignment.commit_all()
        assert heard == [at_end_ms]
        assert bench.topics[HERE].position.next_offset == next_offset

    run(body())


def test_a_source_far_ahead_of_another_is_not_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As long as the other is behind; that is said once."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE, THERE)
        lead_ms = SETTINGS.time.lead_ms
        bench.assignment.committers[HERE].counts = {"frontier_ms": lead_ms + 2}
        bench.assignment.committers[THERE].counts = {"frontier_ms": 1}
        bench.read[THERE] = ReadProgress(FIRST, FIRST + 1, 100)
        for _ in range(2):
            assert bench.assignment.not_held_back({HERE, THERE}) == {THERE}
        bench.read[THERE] = ReadProgress(-1, 100, 100)
        assert bench.assignment.not_held_back({HERE, THERE}) == {HERE, THERE}

    with caplog.at_level(logging.INFO, "rankstream.worker"):
        run(body())
    said = [record.getMessage() for record in caplog.records]
    said = [line for line in said if not line.startswith("event=begins-late")]
    assert said == [
        "event=held-back partitions=ns.toy[0]",
        "event=held-back partitions=none",
    ]


def test_a_partition_that_is_closed_in_a_round_of_commits_is_passed_over() -> None:
    """It was there when the round began."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE, THERE)
        round_ = asyncio.create_task(bench.assignment.commit_all())
        await asyncio.sleep(0)
        await bench.assignment.close({THERE})
        await round_
        assert not bench.failures
        assert bench.assignment.lag_of(THERE) == 0

    run(body())


def test_a_process_says_what_keeps_it_from_its_work() -> None:
    """From before its first partition to its stop; a spare worker is ready."""

    async def body() -> None:
        bench = Bench()
        said = bench.assignment.troubles
        assert said() == ["partitions are being assigned"]
        await bench.assignment.keep(())
        assert said() == []
        await bench.assignment.suspend()
        await bench.assignment.keep((HERE,))
        assert said() == ["ns.toy[0] is being restored"]
        await bench.open(HERE)
        assert said() == []
        await bench.assignment.suspend()
        assert said() == ["partitions are being assigned"]
        await bench.assignment.keep((HERE,))
        assert said() == ["ns.toy[0] is suspended"]
        await bench.open(HERE)
        assert said() == []
        bench.assignment.open_no_more()
        assert said() == ["it is stopping"]

    run(body())


def test_work_without_a_commit_is_a_trouble_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Idle partitions commit nothing, and that is right."""

    async def body() -> None:
        bench = Bench()
        await bench.open(HERE)
        await bench.assignment.keep((HERE,))
        monkeypatch.setattr("streams.kafka.partitions.assignment.STALE_S", -1.0)
        assert bench.assignment.troubles() == []
        bench.read[HERE] = ReadProgress(FIRST, FIRST, FIRST + 5)
        (said,) = bench.assignment.troubles()
        assert said.startswith("ns.toy[0] has work, and committed nothing for")
        bench.read[HERE] = ReadProgress(FIRST, FIRST + 1, FIRST + 1)
        bench.take(FIRST)
        assert len(bench.assignment.troubles()) == 1
        await bench.assignment.commit_all()
        assert bench.assignment.troubles() == []

        monkeypatch.setattr("streams.kafka.partitions.assignment.STALE_S", 60.0)
        bench.take(FIRST + 1)
        assert bench.assignment.troubles() == []

    run(body())
