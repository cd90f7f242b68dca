"""Who shares a writer waits for the others, and is not left alone with their ends."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import pytest
from aiokafka import TopicPartition

from streams.kafka.broker_away import BrokerAway
from streams.kafka.group.member_offsets import VotedOut
from streams.kafka.state import joint_log
from tests.fakes.clients import FakeClients
from tests.fakes.partition_log import Content
from tests.fakes.producer import FakeProducer
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.delivery.stage import (
    GROUP,
    N_SOURCES,
    NAMESPACE,
    OUT,
    STATE,
    transactional_id,
)
from tests.streams.kafka.state.test_joint_log import (
    TIMEOUT_MS,
    Bench,
    Process,
    run,
    source,
)

PATIENCE_S = 60


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> set[FakeProducer]:
    """Producers that were started and not stopped."""
    found: set[FakeProducer] = set()
    start, stop = FakeProducer.start, FakeProducer.stop

    async def started(self: FakeProducer) -> None:
        found.add(self)
        await start(self)

    async def stopped(self: FakeProducer) -> None:
        found.discard(self)
        await stop(self)

    monkeypatch.setattr(FakeProducer, "start", started)
    monkeypatch.setattr(FakeProducer, "stop", stopped)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Partitions whose positions were asked for, question by question."""
    found: list[list[int]] = []
    positions = FakeClients.positions

    async def noted(
        self: FakeClients,
        options: Mapping[str, Any],
        group: str,
        places: Collection[TopicPartition],
    ) -> Any:
        found.append([place.partition for place in places])
        return await positions(self, options, group, places)

    monkeypatch.setattr(FakeClients, "positions", noted)
    return found


async def taken(bench: Bench, *partitions: int) -> Process:
    """A process that has these partitions in the next generation."""
    process = bench.process()
    await process.take(bench.next_generation(p=partitions)["p"], *partitions)
    return process


def run_without_a_clock(body: Coroutine[Any, Any, None]) -> None:
    """Run a test's body where time passes only while all wait."""
    loop = VirtualLoop()
    work = loop.create_task(body)
    loop.run_ready()
    while not work.done() and loop.time() < 1_000 and loop.pass_time():
        pass
    work.result()
    loop.close()


async def never() -> bool:
    """Whether what hangs has been ended."""
    return False


def place(partition: int) -> TopicPartition:
    """A partition of the source."""
    return TopicPartition(*source(partition))


def test_who_is_of_another_generation_neither_joins_nor_holds_up() -> None:
    """What is of now is committed; what is of before is refused, and heard of."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        process.logs[1].join(bench.next_generation(p=(1,))["p"])
        async with asyncio.timeout(PATIENCE_S):
            now = asyncio.create_task(process.write(1, b"of now"))
            before = asyncio.create_task(process.write(0, b"of before"))
            await now
            with pytest.raises(VotedOut):
                await before
        assert bench.values(OUT, 0) == [b"of now"]

    run(body())


def test_an_id_that_is_taken_again_is_written_with_anew() -> None:
    """By who opens the partition again before the first attempt was given up."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        first = process.logs[0]
        await process.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        await first.close()
        await process.write(0, b"again")
        assert bench.values(OUT, 0) == [b"again"]

    run(body())


def test_an_id_that_is_taken_again_while_it_is_given_away_is_kept(
    connected: set[FakeProducer],
) -> None:
    """Who gives it waited for what was written; another one opened it meanwhile."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        first = process.logs[0]
        writing = asyncio.create_task(process.write(1, b"first"))
        while not bench.kafka.transactions.ongoing:
            await asyncio.sleep(0)
        giving = asyncio.create_task(first.close())
        await asyncio.sleep(0)
        assert not giving.done()
        process.joint._owned["rankstream-counting-source-0"] = joint_log._Owned(
            process, TIMEOUT_MS
        )
        before = set(connected)
        await asyncio.gather(writing, giving)
        assert connected == before

    run(body())


def test_what_is_written_with_an_id_that_is_taken_again_is_written() -> None:
    """Another partition's, whoever opens that of the id once more."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        member = process.logs[1]._member
        assert member is not None
        writing = asyncio.create_task(process.write(1, b"first"))
        while not bench.kafka.transactions.ongoing:
            await asyncio.sleep(0)
        await process.take(member, 0)
        await writing
        await process.write(0, b"second")
        assert bench.values(OUT, 0) == [b"first", b"second"]

    run(body())


def test_an_id_with_which_something_is_ended_is_taken_behind_that() -> None:
    """A start that was cancelled may have left it under way."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        member = process.logs[1]._member
        assert member is not None
        ending = asyncio.create_task(
            process.joint.end_what_hangs(never, TIMEOUT_MS, of_all=False)
        )
        while bench.kafka.transactions.ongoing != [transactional_id(1)]:
            await asyncio.sleep(0)
        await process.take(member, 1)
        await ending
        await process.logs[0].close()
        await process.write(1, b"goes on")
        assert bench.values(OUT, 0) == [b"goes on"]

    run(body())


def test_the_next_id_is_cleaned_before_anything_is_committed_with_it() -> None:
    """What hangs of it would be committed as well, here in another's partition."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        await process.write(0, b"by the first")
        wrong = [Content(b"key", b"wrong", (), 0)]
        for topic, partition in ((OUT, 0), (STATE, 2)):
            at = TopicPartition(f"{NAMESPACE}.{topic}", partition)
            bench.kafka.hang(at, wrong, transactional_id(1))
        await process.logs[0].close()
        await process.write(1, b"by the next")
        assert bench.values(OUT, 0) == [b"by the first", b"by the next"]

    run_without_a_clock(body())


def test_who_has_no_id_left_spoils_nothing_for_who_comes_next() -> None:
    """What a start that was given up left under way finds nothing to write with."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0)
        await process.logs[0].close()
        with pytest.raises(ValueError, match="an id must be taken"):
            await process.joint.end_what_hangs(never, TIMEOUT_MS, of_all=True)
        await process.take(bench.next_generation(p=(0,))["p"], 0)
        await process.write(0, b"goes on")
        assert bench.values(OUT, 0) == [b"goes on"]

    run(body())


def test_a_process_has_one_producer(connected: set[FakeProducer]) -> None:
    """However many ids it has, and none once it has none."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1, 2)
        assert len(connected) == 1
        await process.take(bench.next_generation(p=(0, 1, 2))["p"], 0, 1, 2)
        assert len(connected) == 1
        await process.logs[0].close()
        await process.write(1, b"by another id")
        assert len(connected) == 1
        for each in process.logs.values():
            await each.close()
        assert not connected

    run(body())


def test_an_id_that_is_not_taken_to_its_end_leaves_no_producer(
    connected: set[FakeProducer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebalance cancels who opens a partition."""
    begun = asyncio.Event()
    start = FakeProducer.start

    async def slow(self: FakeProducer) -> None:
        await start(self)
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(FakeProducer, "start", slow)

    async def body() -> None:
        bench = Bench()
        opening = asyncio.create_task(taken(bench, 0))
        await begun.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not connected

    run(body())


def test_an_id_that_is_given_away_while_it_is_taken_for_writing_is_not_kept(
    connected: set[FakeProducer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has its partition next would be shut out by what is written with it."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1, 2)
        await process.logs[0].close()
        begun, may_go_on = asyncio.Event(), asyncio.Event()
        start = FakeProducer.start

        async def slow(self: FakeProducer) -> None:
            begun.set()
            await may_go_on.wait()
            await start(self)

        monkeypatch.setattr(FakeProducer, "start", slow)
        writing = asyncio.create_task(process.write(2, b"by a third"))
        await begun.wait()
        await process.logs[1].close()
        may_go_on.set()
        await writing
        assert {each._name for each in connected} == {transactional_id(2)}
        assert not process.joint.owns("rankstream-counting-source-1", process.logs[1])

    run(body())


def test_of_two_ids_that_are_taken_at_once_one_is_written_with(
    connected: set[FakeProducer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's producer is closed, whichever is through first."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        await process.logs[0].close()
        begun, may_go_on = asyncio.Event(), asyncio.Event()
        start = FakeProducer.start

        async def slow(self: FakeProducer) -> None:
            monkeypatch.setattr(FakeProducer, "start", start)
            begun.set()
            await may_go_on.wait()
            await start(self)

        monkeypatch.setattr(FakeProducer, "start", slow)
        writing = asyncio.create_task(process.write(1, b"by one"))
        await begun.wait()
        member = process.logs[1]._member
        assert member is not None
        await process.take(member, 2)
        may_go_on.set()
        await writing
        assert {each._name for each in connected} == {transactional_id(2)}

    run(body())


def test_gathering_that_fails_holds_nobody_up() -> None:
    """Of a partition whose stage cannot settle; the process may end, but says why."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        gathering = process.logs[0].gathering()
        with pytest.raises(ValueError, match="cannot settle"), gathering:
            raise ValueError("cannot settle")
        async with asyncio.timeout(PATIENCE_S):
            await process.write(1, b"goes on")

    run(body())


def test_who_comes_while_positions_are_asked_for_is_asked_for(
    asked: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together with who comes at the same time, by one question of their own else."""
    may_answer = asyncio.Event()
    positions = FakeClients.positions

    async def slow(self: FakeClients, *of: Any) -> Any:
        found = await positions(self, *of)
        await may_answer.wait()
        return found

    monkeypatch.setattr(FakeClients, "positions", slow)

    async def body() -> None:
        process = await taken(Bench(), 0, 1, 2)
        first = asyncio.create_task(process.joint.decided(place(0)))
        await asyncio.sleep(joint_log.TOGETHER_S / 4)
        second = asyncio.create_task(process.joint.decided(place(1)))
        await asyncio.sleep(joint_log.TOGETHER_S)
        third = asyncio.create_task(process.joint.decided(place(2)))
        await asyncio.sleep(2 * joint_log.TOGETHER_S)
        may_answer.set()
        await asyncio.gather(first, second, third)
        assert asked == [[0, 1], [2]]

    run_without_a_clock(body())


def test_who_stops_waiting_for_positions_leaves_the_others_waiting() -> None:
    """They are asked for together, and one of them may be cancelled."""

    async def body() -> None:
        process = await taken(Bench(), 0, 1)
        works = [
            asyncio.create_task(process.joint.decided(place(each))) for each in (0, 1)
        ]
        await asyncio.sleep(0)
        works[0].cancel()
        await works[1]
        assert works[0].cancelled()

    run(body())


def test_positions_are_asked_for_until_a_broker_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be away for minutes."""
    monkeypatch.setattr(joint_log, "AWAY_S", 0)
    positions, n_away = FakeClients.positions, 3

    async def away(self: FakeClients, *of: Any) -> Any:
        nonlocal n_away
        n_away -= 1
        if n_away >= 0:
            raise BrokerAway("nobody is there")
        return await positions(self, *of)

    monkeypatch.setattr(FakeClients, "positions", away)

    async def body() -> None:
        process = await taken(Bench(), 0)
        await process.joint.decided(place(0))
        assert n_away == -1

    run(body())


@pytest.mark.parametrize("hung", range(N_SOURCES))
def test_a_position_that_hangs_is_ended_whichever_id_it_is_of(hung: int) -> None:
    """Of another process's only after the broker would have ended what is open."""

    async def body() -> None:
        bench = Bench()
        for each in range(N_SOURCES):
            bench.kafka.transactions.initialise(transactional_id(each))
        process = await taken(bench, 0, 1)
        transactions = bench.kafka.transactions
        other = transactions.writer_of(transactional_id(2))
        transactions.hang_position(transactional_id(hung), GROUP, place(1))
        await process.joint.decided(place(1))
        assert not transactions.may_move(GROUP, place(1))
        is_shut_out = transactions.writer_of(transactional_id(2)) != other
        assert is_shut_out is (hung == 2)
        await process.write(1, b"goes on")
        assert bench.values(OUT, 0) == [b"goes on"]

    run_without_a_clock(body())


def test_what_hangs_is_ended_and_nothing_else(connected: set[FakeProducer]) -> None:
    """Once it is ended, no other id is taken from whoever has it."""

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        transactions = bench.kafka.transactions
        others = transactions.writer_of(transactional_id(1))
        state = TopicPartition(f"{NAMESPACE}.{STATE}", 0)
        wrong = [Content(b"key", b"wrong", (), 0)]
        bench.kafka.hang(state, wrong, transactional_id(0))
        await process.logs[0].read()
        assert transactions.writer_of(transactional_id(1)) == others
        bench.kafka.hang(state, wrong, transactional_id(1))
        await process.logs[0].read()
        assert transactions.writer_of(transactional_id(1)) != others
        assert len(connected) == 1

    run(body())


@pytest.mark.parametrize("partition", [0, 1])
def test_an_end_that_nobody_waits_for_is_made_all_the_same(
    connected: set[FakeProducer], partition: int
) -> None:
    """A rebalance cancels who reads; what is left open would hold readers up.

    Others write with the same id, or nobody would for long.
    """
    name = transactional_id(partition)

    async def body() -> None:
        bench = Bench()
        process = await taken(bench, 0, 1)
        transactions = bench.kafka.transactions
        aborting = asyncio.create_task(
            process.joint.end_what_hangs(never, TIMEOUT_MS, of_all=False)
        )
        while transactions.ongoing != [name]:
            await asyncio.sleep(0)
        aborting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await aborting
        async with asyncio.timeout(PATIENCE_S):
            while transactions.ongoing or len(connected) > 1:
                await asyncio.sleep(0)
            await process.write(1, b"goes on")
        assert bench.values(OUT, 0) == [b"goes on"]

    run(body())
