"""A partition's outputs, position and state, on topics in memory."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from rankstream.settings import DeliverySettings, Settings
from streams.kafka.partitions.backlog import FULL_BYTES
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event, State
from streams.kafka.state.resume_position import StateRefused
from streams.source_records import SourceRecords
from streams.stage import Output
from tests.streams.kafka.memory_log import (
    FIRST,
    KIND,
    SETTINGS,
    Acknowledged,
    Fenced,
    MemoryLog,
    Topics,
    committer_on,
    numbered,
)
from tests.streams.kafka.toy import OUT, STATE, Toy

EVERY_RECORD = Settings(delivery=DeliverySettings(state_records=1))


async def opened(topics: Topics, settings: Settings = SETTINGS) -> Committer:
    """A committer that has taken the partition over."""
    committer = committer_on(MemoryLog(topics), settings)
    await committer.open(None)
    return committer


def state_of(committer: Committer) -> State:
    """What its partition is doing by now."""
    return committer.life.state


def folded(committer: Committer, *offsets: int) -> list[Acknowledged]:
    """Fold the records at some offsets; their events."""
    events = [Acknowledged() for _ in offsets]
    for offset, event in zip(offsets, events, strict=True):
        committer.fold(SourceRecords.of([numbered(offset)]), event)
    return events


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


def test_a_position_is_written_before_anything_is_read() -> None:
    """Fenced first: what a former owner writes after the state is read is lost."""

    async def body() -> None:
        topics = Topics()
        log = MemoryLog(topics)
        committer = committer_on(log)
        assert await committer.open(None) == FIRST
        assert log.calls == ["fence", "read", "write"]
        assert state_of(committer) is State.LIVE
        position = topics.position
        assert (position.offset, position.checkpoint_offset) == (FIRST - 1, FIRST - 1)
        assert (position.number, position.topic_id) == (1, "id")
        assert (position.n_partitions, position.stage_version) == (1, KIND.version)

    run(body())


def test_a_state_of_an_earlier_version_becomes_one_of_this(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the row says so; an earlier build then refuses what is written on top."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        await committer.commit(at_end_ms=0)
        later = replace(KIND, version=KIND.version + 1, since=KIND.version)
        monkeypatch.setattr("tests.streams.kafka.memory_log.KIND", later)
        committer = await opened(topics)
        folded(committer, 11)
        await committer.commit(at_end_ms=0)
        assert topics.position.offset == 11
        assert topics.position.stage_version == KIND.version + 1
        monkeypatch.undo()
        with pytest.raises(StateRefused, match="must be of version"):
            await opened(topics)

    run(body())


def test_what_a_stage_says_once_it_is_restored_is_written_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ingestion says so that a source that had ended is read again."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        await committer.commit_last()
        said = Output(OUT, 0, None, b"restored")
        monkeypatch.setattr(Toy, "outputs", lambda _: [said])
        committer = await opened(topics)
        assert topics.outputs[-1] == said
        assert topics.committed == 11
        assert committer.committed == topics.position.offset == 10

    run(body())


def test_what_a_stage_says_that_is_behind_was_said_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It folds again up to its position first."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        await committer.commit()
        n_outputs = len(topics.outputs)
        monkeypatch.setattr(Toy, "outputs", lambda _: [Output(OUT, 0, None, b"")])
        assert state_of(await opened(topics)) is State.REPLAYING
        assert len(topics.outputs) == n_outputs

    run(body())


def test_the_group_has_committed_what_the_position_covers() -> None:
    """Kafka's lag of the group is then ours, over transaction markers too."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        assert topics.committed == FIRST
        folded(committer, 10, 11)
        await committer.commit(at_end_ms=0)
        assert topics.committed == 12
        folded(committer, 12)
        await committer.commit(at_end_ms=0, reached=15)
        assert topics.committed == 15
        folded(committer, 15)
        await committer.commit_last()
        assert topics.committed == 16

    run(body())


def test_markers_alone_are_committed_once_it_is_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a group that has everything would lag by a marker for ever."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        await committer.commit(at_end_ms=0)
        assert not await committer.commit(at_end_ms=0, reached=12)
        monkeypatch.setattr("streams.kafka.partitions.committer.QUIET_S", 0.0)
        assert await committer.commit(at_end_ms=0, reached=12)
        assert topics.committed == topics.position.next_offset == 12
        assert not await committer.commit(at_end_ms=0, reached=12)
        assert await committer.commit_last()
        assert topics.committed == 12

    run(body())


def test_a_commit_acknowledges_what_it_covers_and_nothing_before() -> None:
    """An event is acknowledged when its outputs are committed, and once."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        events = folded(committer, 10, 11)
        assert [event.n_acks for event in events] == [0, 0]
        assert await committer.commit()
        assert [event.n_acks for event in events] == [1, 1]
        assert topics.passed_on == [10, 11]
        assert committer.committed == 11
        assert not await committer.commit()
        assert [event.n_acks for event in events] == [1, 1]

    run(body())


def test_a_commit_that_fails_acknowledges_nothing() -> None:
    """Nothing of it counts."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        await opened(topics)
        (event,) = folded(committer, 10)
        with pytest.raises(Fenced):
            await committer.commit()
        assert event.n_acks == 0
        assert committer.committed == FIRST - 1

    run(body())


def test_the_next_owner_replays_in_silence_up_to_the_position() -> None:
    """From the checkpoint; outputs of the replay are those that are there already."""

    async def body() -> None:
        topics = Topics()
        first = await opened(topics)
        folded(first, 10, 11, 12)
        await first.commit()

        second = committer_on(MemoryLog(topics))
        assert await second.open(None) == FIRST
        assert state_of(second) is State.REPLAYING
        events = folded(second, 10, 11)
        assert [event.n_acks for event in events] == [1, 1]
        assert not await second.commit()
        folded(second, 12)
        assert state_of(second) is State.LIVE
        assert not await second.commit()
        folded(second, 13)
        assert await second.commit()
        assert topics.passed_on == [10, 11, 12, 13]
        assert topics.position.number == 3

    run(body())


def test_a_replay_that_gives_something_else_is_refused() -> None:
    """As where records are missing that were folded before."""

    async def body() -> None:
        topics = Topics()
        first = await opened(topics)
        folded(first, 10, 11, 12)
        await first.commit()
        second = await opened(topics)
        with pytest.raises(StateRefused, match="again up to 12 must give the same"):
            folded(second, 10, 12)

    run(body())


def test_a_state_that_is_not_that_of_its_position_is_refused() -> None:
    """And its producer is closed."""

    async def body() -> None:
        topics = Topics()
        first = await opened(topics, EVERY_RECORD)
        folded(first, 10)
        await first.commit()
        del topics.items[STATE, b"key"]
        log = MemoryLog(topics)
        second = committer_on(log)
        with pytest.raises(StateRefused, match="must match its resume position"):
            await second.open(None)
        assert log.calls[-1] == "close"
        assert state_of(second) is State.CLOSED

    run(body())


def test_an_opening_that_is_cancelled_closes_its_producer() -> None:
    """A rebalance may begin while state is read back."""

    async def body() -> None:
        log = MemoryLog(Topics())
        log.may_read.clear()
        committer = committer_on(log)
        opening = asyncio.create_task(committer.open(None))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert log.calls == ["fence", "read", "close"]
        assert state_of(committer) is State.CLOSED

    run(body())


def test_reading_goes_on_behind_all_that_was_read() -> None:
    """Also where that is no record but what ends a transaction."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics, EVERY_RECORD)
        folded(committer, 10)
        await committer.commit(reached=15)
        assert await committer_on(MemoryLog(topics)).open(None) == 15
        folded(committer, 17)

    run(body())


def test_a_record_that_comes_again_is_folded_once() -> None:
    """It is acknowledged with the first, or at once where that is committed."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        (waiting,) = folded(committer, 10)
        assert waiting.n_acks == 0
        await committer.commit()
        (late,) = folded(committer, 10)
        assert (waiting.n_acks, late.n_acks) == (1, 1)
        assert topics.passed_on == [10]

    run(body())


def test_a_record_that_comes_again_during_its_commit_is_acknowledged() -> None:
    """Faust ends no rebalance before every record that it gave is acknowledged."""

    async def body() -> None:
        log = MemoryLog(Topics())
        committer = committer_on(log)
        await committer.open(None)
        log.may_write.clear()
        folded(committer, 10)
        commit = asyncio.create_task(committer.commit())
        await until(lambda: log.calls.count("write") == 2)
        (again,) = folded(committer, 10)
        log.may_write.set()
        await commit
        assert not await committer.commit()
        assert again.n_acks == 1

    run(body())


def test_a_revoked_partition_writes_once_more_and_then_nothing() -> None:
    """With a checkpoint, so that the next owner replays nothing."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10, 11)
        committer.life.take(Event.REVOKED)
        assert not await committer.commit()
        assert await committer.commit_last()
        assert topics.position.checkpoint_offset == 11
        assert not await committer.commit_last()
        second = await opened(topics)
        assert state_of(second) is State.LIVE
        assert topics.passed_on == [10, 11]

    run(body())


def test_a_commit_that_waits_writes_nothing_after_a_revocation() -> None:
    """The state counts when its turn comes, not when it was asked for."""

    async def body() -> None:
        topics = Topics()
        log = MemoryLog(topics)
        committer = committer_on(log)
        await committer.open(None)
        log.may_write.clear()
        folded(committer, 10)
        first = asyncio.create_task(committer.commit())
        await until(lambda: log.calls.count("write") == 2)
        folded(committer, 11)
        second = asyncio.create_task(committer.commit())
        await asyncio.sleep(0)
        committer.life.take(Event.REVOKED)
        log.may_write.set()
        assert await first
        assert not await second
        assert topics.passed_on == [10]

    run(body())


def test_a_revoked_replay_has_nothing_to_write() -> None:
    """Its state is behind its outputs."""

    async def body() -> None:
        topics = Topics()
        first = await opened(topics)
        folded(first, 10, 11)
        await first.commit()
        second = await opened(topics)
        folded(second, 10)
        second.life.take(Event.REVOKED)
        n_writes = topics.n_writes
        assert not await second.commit_last()
        assert topics.n_writes == n_writes
        assert second.resume() == 11
        assert state_of(second) is State.REPLAYING

    run(body())


@pytest.mark.parametrize("first", [9, 10, 11, 12, 13])
def test_records_taken_together_are_as_one_by_one(first: int) -> None:
    """Those known already, those folded again and new ones, in one bundle."""

    async def body() -> None:
        topics = Topics()
        before = await opened(topics)
        folded(before, 10, 11, 12)
        await before.commit()
        committer = await opened(topics)
        folded(committer, *range(10, first))
        event = Acknowledged()
        committer.fold(
            SourceRecords.of([numbered(offset) for offset in range(10, 16)]), event
        )
        assert state_of(committer) is State.LIVE
        assert len(committer.backlog) == 1
        await committer.commit()
        assert event.n_acks == 1
        assert topics.passed_on == list(range(10, 16))
        assert committer.stage.fingerprint() == topics.position.fingerprint

    run(body())


def test_what_is_folded_again_waits_for_no_room() -> None:
    """Its outputs are written: only new records are in memory for a commit."""

    async def body() -> None:
        topics = Topics()
        before = await opened(topics)
        folded(before, 10, 11)
        await before.commit()
        committer = await opened(topics)
        again = [numbered(offset, FULL_BYTES) for offset in (10, 11)]
        committer.fold(SourceRecords.of([*again, numbered(12)]))
        assert not committer.is_busy
        committer.fold(SourceRecords.of([numbered(13, FULL_BYTES)]))
        assert committer.is_busy

    run(body())


def test_every_record_of_a_bundle_counts_for_the_state() -> None:
    """So state is written after so many records, not after so many bundles."""

    async def body() -> None:
        topics = Topics()
        delivery = DeliverySettings(state_s=3_600.0, state_records=4)
        committer = await opened(topics, Settings(delivery=delivery))
        committer.fold(SourceRecords.of([numbered(10), numbered(11)]))
        assert committer.checkpoint_due == 0.5
        committer.fold(
            SourceRecords.of([numbered(12), numbered(13)._replace(timestamp_ms=7)])
        )
        assert committer.checkpoint_due == 1.0
        assert committer.appended_ms == 7
        await committer.commit(may_checkpoint=False)
        assert topics.position.checkpoint_offset < 10
        await committer.commit(may_checkpoint=True)
        assert topics.position.checkpoint_offset == committer.folded

    run(body())


def test_records_that_a_commit_has_are_acknowledged_together() -> None:
    """At once, as none of them is new."""

    async def body() -> None:
        committer = await opened(Topics())
        folded(committer, 10, 11)
        await committer.commit()
        event = Acknowledged()
        committer.fold(SourceRecords.of([numbered(10), numbered(11)]), event)
        assert event.n_acks == 1
        assert not committer.backlog

    run(body())


def test_a_closed_partition_writes_nothing() -> None:
    """Neither what waits nor a last commit."""

    async def body() -> None:
        topics = Topics()
        committer = await opened(topics)
        folded(committer, 10)
        n_writes = topics.n_writes
        await committer.close()
        assert not await committer.commit()
        assert not await committer.commit_last()
        assert topics.n_writes == n_writes

    run(body())


def test_a_full_backlog_waits_for_a_commit() -> None:
    """Memory is bounded by what a commit covers."""

    async def body() -> None:
        committer = await opened(Topics())
        committer.fold(SourceRecords.of([numbered(10, FULL_BYTES)]), Acknowledged())
        assert committer.is_busy
        turn = asyncio.create_task(committer.turn())
        await asyncio.sleep(0)
        assert not turn.done()
        await committer.commit()
        await turn
        assert not committer.is_busy

    run(body())


async def until(is_so: Any) -> None:
    """Let others work until something is so."""
    for _ in range(10_000):
        if is_so():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")
