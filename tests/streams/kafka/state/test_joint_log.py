"""What several partitions write is one transaction, of whoever has them."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from aiokafka import TopicPartition

from streams.kafka.clients import Cluster
from streams.kafka.group.member_offsets import VotedOut
from streams.kafka.group.membership import Membership
from streams.kafka.state.joint_log import JointLog
from streams.kafka.state.resume_position import StateRefused
from streams.kafka.state.state_log import StateLog
from streams.stage import Change, Output
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content
from tests.fakes.producer import FakeProducer
from tests.streams.kafka.delivery.stage import (
    GROUP,
    N_OUTS,
    N_SOURCES,
    NAMESPACE,
    OUT,
    SOURCE,
    STATE,
    stage_kind,
    transactional_id,
)

KIND = stage_kind(lambda *_: None, state_always=False)
TIMEOUT_MS = 500


class Bench:
    """A Kafka in memory, and who is in the group."""

    def __init__(self) -> None:
        self.kafka = FakeKafka()
        for topic, n in ((SOURCE, N_SOURCES), (STATE, N_SOURCES), (OUT, N_OUTS)):
            self.kafka.create(f"{NAMESPACE}.{topic}", n)
        self.generation = 0

    def process(self) -> "Process":
        """A process that has nothing yet."""
        return Process(self.kafka)

    def next_generation(self, **members: tuple[int, ...]) -> dict[str, Membership]:
        """Who has which partitions from here on."""
        self.generation += 1
        self.kafka.transactions.members[GROUP] = self.generation, set(members)
        return {
            name: Membership(self.generation, name, "", frozenset(map(source, parts)))
            for name, parts in members.items()
        }

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        """What is committed."""
        place = TopicPartition(f"{NAMESPACE}.{topic}", partition)
        return [each.value for each in self.kafka.committed(place)]

    def end_all(self) -> None:
        """Write all markers."""
        while ending := self.kafka.transactions.ending:
            self.kafka.transactions.write_marker(ending[0])


class Process:
    """A process, with the logs of its partitions."""

    def __init__(self, kafka: FakeKafka) -> None:
        self.cluster = Cluster(NAMESPACE, {}, {}, FakeClients(kafka))
        self.joint = JointLog(self.cluster, (KIND,))
        self.logs: dict[int, StateLog] = {}

    async def take(self, member: Membership, *partitions: int) -> None:
        """Take partitions over, without reading them."""
        for partition in partitions:
            log = StateLog(KIND, partition, self.cluster, self.joint)
            log.join(member)
            await log.fence(TIMEOUT_MS)
            self.logs[partition] = log

    async def write(self, partition: int, value: bytes) -> None:
        """An output and a state of a partition."""
        await self.logs[partition].write(
            [Output(OUT, 0, None, value)], [Change(STATE, b"key", value)], 7
        )


def source(partition: int) -> tuple[str, int]:
    """A partition of the source."""
    return f"{NAMESPACE}.{SOURCE}", partition


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the transactions that were committed."""
    found: list[str] = []
    end = FakeProducer.commit_transaction

    async def noted(self: FakeProducer) -> None:
        found.append(str(self._name))
        await end(self)

    monkeypatch.setattr(FakeProducer, "commit_transaction", noted)
    return found


def test_what_is_gathered_at_once_is_one_transaction(ends: list[str]) -> None:
    """Also where one is through before another has gathered what it writes."""

    async def body() -> None:
        bench = Bench()
        process = bench.process()
        member = bench.next_generation(p=(0, 1, 2))["p"]
        await process.take(member, 0, 1, 2)
        gathered = asyncio.Event()

        async def slow(partition: int) -> None:
            with process.logs[partition].gathering():
                await gathered.wait()
            await process.write(partition, b"slow")

        works = [
            asyncio.create_task(work)
            for work in (slow(0), process.write(1, b"fast"), process.write(2, b"fast"))
        ]
        await asyncio.sleep(0.01)
        assert not ends
        gathered.set()
        await asyncio.gather(*works)
        assert len(ends) == 1
        assert bench.values(OUT, 0) == [b"fast", b"fast", b"slow"]
        assert [bench.values(STATE, each) for each in range(3)] == [
            [b"slow"], [b"fast"], [b"fast"],
        ]  # fmt: skip
        committed = bench.kafka.groups[GROUP]
        assert {place.partition for place in committed} == {0, 1, 2}

    run(body())


def test_lists_are_written_before_clicks_of_the_same_moment() -> None:
    """Whichever of the stages has gathered first; each partition keeps its order."""

    async def body() -> None:
        bench = Bench()
        bench.kafka.create(f"{NAMESPACE}.clicks", 1)
        clicks = replace(KIND, source="clicks")
        member = bench.next_generation(p=(0,))["p"]
        cluster = bench.process().cluster
        joint = JointLog(cluster, (KIND, clicks))
        logs = [StateLog(kind, 0, cluster, joint) for kind in (clicks, KIND)]
        for log in logs:
            log.join(member)
            await log.fence(TIMEOUT_MS)
        of_clicks, of_lists = (
            [Output(OUT, 0, None, b"%s %d" % (word, n)) for n in (1, 2)]
            for word in (b"click", b"list")
        )
        await asyncio.gather(
            logs[0].write(of_clicks, [], 1), logs[1].write(of_lists, [], 1)
        )
        written = bench.values(OUT, 0)
        assert written == [b"list 1", b"list 2", b"click 1", b"click 2"]

    run(body())


def test_what_waits_meanwhile_is_the_next_transaction(ends: list[str]) -> None:
    """However many ask while one is being written."""

    async def body() -> None:
        bench = Bench()
        process = bench.process()
        await process.take(bench.next_generation(p=(0, 1, 2))["p"], 0, 1, 2)
        first = asyncio.create_task(process.write(0, b"0"))
        while not ends:
            await asyncio.sleep(0)
        await asyncio.gather(first, process.write(1, b"1"), process.write(2, b"2"))
        assert len(ends) == 2

    run(body())


@pytest.mark.parametrize("is_asked", [True, False])
def test_who_was_voted_out_writes_nothing(
    is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id belongs to one who is slow, and its other partition is read already.

    If the broker did not ask for the generation, that would be written twice.
    """
    if not is_asked:
        send = FakeProducer.send_offsets_to_transaction

        async def for_anybody(self: Any, offsets: Any, group: str, _: Any) -> None:
            await send(self, offsets, group)

        monkeypatch.setattr(FakeProducer, "send_offsets_to_transaction", for_anybody)

    async def body() -> None:
        bench = Bench()
        before, other = bench.process(), bench.process()
        await before.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        members = bench.next_generation(slow=(0,), quick=(1,))
        await other.take(members["quick"], 1)
        await other.logs[1].read()
        if not is_asked:
            await before.write(1, b"late")
        else:
            with pytest.raises(VotedOut):
                await before.write(1, b"late")
            with pytest.raises(VotedOut):  # and nothing more, of no partition
                await before.write(0, b"late")
        await other.write(1, b"of now")
        for name in bench.kafka.transactions.ongoing:
            bench.kafka.transactions.expire(name)
        is_double = bench.values(STATE, 1) == [b"late", b"of now"]
        assert is_double is not is_asked

    run(body())


def test_nobody_commits_for_who_was_in_another_generation(ends: list[str]) -> None:
    """What was gathered before an assignment is not written with what comes after."""

    async def body() -> None:
        bench = Bench()
        process = bench.process()
        await process.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        late = asyncio.create_task(process.write(0, b"of before"))
        process.logs[1].join(bench.next_generation(p=(1,))["p"])
        with pytest.raises(VotedOut):
            await asyncio.gather(late, process.write(1, b"of now"))
        assert not ends

    run(body())


def test_reading_waits_for_what_may_still_be_committed() -> None:
    """Its offsets were taken before it was voted out."""

    async def body() -> None:
        bench = Bench()
        bench.kafka.transactions.is_eager = False
        before, after = bench.process(), bench.process()
        await before.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        first = asyncio.create_task(before.write(1, b"begun"))
        transactions = bench.kafka.transactions
        while not transactions.may_move(GROUP, TopicPartition(*source(1))):
            await asyncio.sleep(0)
        await after.take(bench.next_generation(n=(1,))["n"], 1)
        reading = asyncio.create_task(after.logs[1].read())
        await first
        assert not reading.done()
        bench.end_all()
        assert (await reading).items == {(STATE, b"key"): b"begun"}

    run(body())


def test_an_id_that_is_given_away_is_replaced_by_another(ends: list[str]) -> None:
    """Whoever has its partition by then ends what is written with it."""

    async def body() -> None:
        bench = Bench()
        process = bench.process()
        await process.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        await process.write(1, b"first")
        await process.logs[0].close()
        await process.write(1, b"second")
        assert ends == [transactional_id(0), transactional_id(1)]
        with pytest.raises(StateRefused, match="was given away"):
            await process.write(0, b"third")

    run(body())


@pytest.mark.parametrize("hung", [0, 2])
def test_what_hangs_is_ended_whichever_id_it_is_of(hung: int) -> None:
    """Of ids of this process at once; of another's once the broker has not ended it."""

    async def body() -> None:
        bench = Bench()
        process = bench.process()
        for each in range(N_SOURCES):
            bench.kafka.transactions.initialise(transactional_id(each))
        await process.take(bench.next_generation(p=(0, 1))["p"], 0, 1)
        state = TopicPartition(f"{NAMESPACE}.{STATE}", 1)
        wrong = [Content(b"key", b"wrong", (), 0)]
        bench.kafka.hang(state, wrong, transactional_id(hung))
        assert not (await process.logs[1].read()).items
        assert bench.kafka.log(state).stable == bench.kafka.log(state).end
        await process.write(1, b"right")
        assert bench.values(STATE, 1) == [b"right"]

    run(body())
