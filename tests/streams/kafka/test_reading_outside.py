"""What is to be read next is not in its topic, while a process runs."""

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn

import pytest

from rankstream.settings import DeliverySettings, Settings
from streams.kafka.group.membership import Membership
from streams.kafka.partitions.assignment import Assignment
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.state.resume_position import Loss, StateRefused
from streams.kafka.transport import ReadProgress
from streams.source_records import SourceRecords
from tests.streams.kafka.memory_log import (
    KIND,
    SETTINGS,
    Acknowledged,
    Fenced,
    MemoryLog,
    Topics,
    committer_on,
    numbered,
)

HERE, THERE = TopicPartition("ns.toy", 0), TopicPartition("ns.toy", 1)
UNREAD = ReadProgress(-1, None, None)


class Ended(Exception):
    """The process is no more."""


class Bench:
    """A process with two partitions of which each has topics of its own."""

    def __init__(self) -> None:
        self.rebalancing = False
        self.read: dict[TopicPartition, ReadProgress] = {}
        self.topics = {HERE: Topics(), THERE: Topics()}
        self.failures: list[BaseException] = []
        self.assignment = Assignment(self, SETTINGS, self.fail, self.check)

    def committer_of(self, place: TopicPartition) -> Committer:
        """One on the topics of a partition."""
        return committer_on(MemoryLog(self.topics[place]))

    def progress(self, place: TopicPartition) -> ReadProgress:
        """How far a partition was read."""
        return self.read.get(place, UNREAD)

    async def written(self) -> None:
        """Nothing is written that nobody waits for."""

    async def check(self) -> None:
        """Find all topics as they were."""

    def fail(self, error: BaseException) -> NoReturn:
        """End the process."""
        self.failures.append(error)
        raise Ended

    def take(self, offset: int, place: TopicPartition = HERE) -> None:
        """Offer the record at an offset."""
        assert self.assignment.take(
            place,
            SourceRecords.of([numbered(offset)]),
            Acknowledged(),
            is_current=True,
        )


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


async def opened() -> Bench:
    """A process that has folded 10 and has read 10 to 12."""
    bench = Bench()
    places = HERE, THERE
    bench.assignment.join(Membership(1, "m", "", frozenset(places)))
    await bench.assignment.open(dict.fromkeys(places))
    bench.take(10)
    bench.read[HERE] = ReadProgress(12, 13, 40)
    return bench


def test_what_was_read_is_folded_and_kept_before_the_end() -> None:
    """With a checkpoint of every partition: behind that, the loss can be accepted."""

    async def body() -> None:
        bench = await opened()
        bench.take(10, THERE)
        ending = asyncio.create_task(bench.assignment.read_outside(HERE, 21, 40))
        for offset in (11, 12):
            await asyncio.sleep(0.02)
            assert not bench.failures
            bench.take(offset)
        with pytest.raises(Ended):
            await ending
        (refusal,) = bench.failures
        assert isinstance(refusal, StateRefused)
        assert "offsets 13-20 (8)" in str(refusal)
        assert "--accept-loss toy:0:13-20" in str(refusal)
        assert bench.topics[HERE].passed_on == [10, 11, 12]
        assert bench.topics[HERE].position.checkpoint_offset == 12
        assert bench.topics[THERE].position.checkpoint_offset == 10

        topics = bench.topics[HERE]
        topics.source = topics.source._replace(first=21)
        settings = Settings(delivery=DeliverySettings(state_records=1))
        again = Committer(KIND, 0, MemoryLog(topics), settings, Loss(13, 20))
        assert await again.open(None) == 21

    run(body())


def test_a_topic_that_ends_before_what_was_read_is_refused() -> None:
    """No loss of that kind can be accepted: its offsets come again."""

    async def body() -> None:
        bench = await opened()
        bench.take(11)
        bench.take(12)
        with pytest.raises(Ended):
            await bench.assignment.read_outside(HERE, 0, 5)
        (refusal,) = bench.failures
        assert isinstance(refusal, StateRefused)
        assert "what comes after offset 12; it holds 0 to 4" in str(refusal)

    run(body())


@pytest.mark.parametrize(
    ("place", "first", "end"),
    [(HERE, 13, 40), (HERE, 3, 13), (TopicPartition("ns.toy", 7), 21, 40)],
)
def test_what_is_there_after_all_ends_nothing(
    place: TopicPartition, first: int, end: int
) -> None:
    """The answer may be of a place from before a seek, or of a partition given away."""

    async def body() -> None:
        bench = await opened()
        bench.take(11)
        bench.take(12)
        await bench.assignment.read_outside(place, first, end)
        bench.take(13)
        await bench.assignment.commit_all()
        assert bench.topics[HERE].passed_on == [10, 11, 12, 13]
        assert not bench.failures

    run(body())


def test_a_partition_that_is_revoked_meanwhile_is_not_waited_for() -> None:
    """What waits will be dropped; whoever has it by then finds the same."""

    async def body() -> None:
        bench = await opened()
        ending = asyncio.create_task(bench.assignment.read_outside(HERE, 21, 40))
        await asyncio.sleep(0.02)
        await bench.assignment.suspend()
        await ending
        assert not bench.failures
        await bench.assignment.open(dict.fromkeys((HERE, THERE)))
        bench.read[HERE] = UNREAD
        with pytest.raises(Ended):
            await bench.assignment.read_outside(HERE, 21, 40)
        (refusal,) = bench.failures
        assert "offsets 11-20 (10)" in str(refusal)

    run(body())


def test_who_has_the_partition_no_more_says_nothing_of_it() -> None:
    """It was paused, and another has folded what left the topic since."""

    async def body() -> None:
        bench = await opened()
        bench.take(11)
        bench.take(12)
        await bench.assignment.suspend()
        other = committer_on(MemoryLog(bench.topics[HERE]))
        await other.open(None)
        with pytest.raises(Ended):
            await bench.assignment.read_outside(HERE, 21, 40)
        (error,) = bench.failures
        assert isinstance(error, Fenced)

    run(body())


def test_an_answer_from_before_it_was_opened_again_says_nothing_of_it() -> None:
    """Another may have folded what has come since, and lies behind the end of then."""

    async def body() -> None:
        bench = await opened()
        member = Membership(3, "m", "", frozenset((HERE, THERE)))

        async def meanwhile() -> None:
            bench.assignment._check = bench.check
            await bench.assignment.suspend()
            bench.assignment.join(member)
            await bench.assignment.keep((HERE, THERE))
            await bench.assignment.open(dict.fromkeys((HERE, THERE)))
            bench.take(11)
            bench.take(12)

        bench.assignment._check = meanwhile
        await bench.assignment.read_outside(HERE, 0, 5)
        await bench.assignment.commit_all()
        assert bench.topics[HERE].passed_on == [10, 11, 12]
        assert not bench.failures

    run(body())
