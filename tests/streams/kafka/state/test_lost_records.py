"""Records that left their topic before they were folded."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from rankstream.settings import DeliverySettings, Settings
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event
from streams.kafka.state.lost_records import AcceptedLoss, LossRule, loss_of
from streams.kafka.state.resume_position import (
    SCHEMA,
    Loss,
    ResumePosition,
    SourcePartition,
    StateRefused,
)
from streams.source_records import SourceRecords
from streams.topology import STAGES
from tests.streams.kafka.memory_log import (
    KIND,
    SETTINGS,
    Acknowledged,
    MemoryLog,
    Topics,
    numbered,
)

EVERY_RECORD = Settings(
    namespace="shop",
    file="shop.toml",
    delivery=DeliverySettings(state_records=1, state_s=3_600.0),
)
GONE = Loss(12, 20)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


def committer_on(
    topics: Topics, accepted: Loss | None = None, settings: Settings = EVERY_RECORD
) -> Committer:
    """A committer whose operator accepts a loss."""
    return Committer(KIND, 0, MemoryLog(topics), settings, accepted)


async def opened(committer: Committer) -> int:
    """Take the partition over; says where it starts."""
    return await committer.open(None)


async def committed(committer: Committer) -> bool:
    """Write what is new."""
    return await committer.commit(at_end_ms=0)


async def overtaken(settings: Settings = EVERY_RECORD) -> Topics:
    """Topics of which 10 and 11 are folded, and all below 21 is deleted."""
    topics = Topics()
    committer = committer_on(topics, settings=settings)
    await opened(committer)
    for offset in (10, 11):
        committer.fold(SourceRecords.of([numbered(offset)]), Acknowledged())
        await committed(committer)
    topics.source = topics.source._replace(first=21)
    return topics


def test_a_start_behind_a_gap_is_refused_with_what_accepts_it() -> None:
    """Nothing is written, and the command has the settings of this worker."""

    async def body() -> None:
        topics = await overtaken()
        n_writes = topics.n_writes
        with pytest.raises(StateRefused) as refusal:
            await opened(committer_on(topics))
        told = str(refusal.value)
        assert "toy[0] must still hold offset 12; it begins at 21" in told
        assert "offsets 12-20 (9)" in told
        assert told.endswith(
            "run `rankstream worker --config shop.toml --namespace shop "
            "--accept-loss toy:0:12-20`"
        )
        assert topics.n_writes == n_writes

    run(body())


@pytest.mark.parametrize("first", [0, 10])
def test_a_first_start_behind_the_beginning_says_so(
    first: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention may be faster than whoever starts the first worker; not at the next."""
    caplog.set_level(logging.WARNING)

    async def body() -> None:
        topics = Topics()
        topics.source = topics.source._replace(first=first)
        await opened(committer_on(topics))
        await opened(committer_on(topics))

    run(body())
    told = [each for each in caplog.messages if "event=begins-late" in each]
    assert len(told) == (first > 0)
    assert all("partition=toy[0] first=10 " in each for each in told)


@pytest.mark.parametrize("accepted", [Loss(12, 19), Loss(11, 20), Loss(12, 21)])
def test_another_loss_than_what_is_missing_is_refused(accepted: Loss) -> None:
    """Retention goes on meanwhile: nobody agreed to lose the rest."""

    async def body() -> None:
        topics = await overtaken()
        with pytest.raises(StateRefused, match=f"12-20`; got {accepted}"):
            await opened(committer_on(topics, accepted))

    run(body())


def test_an_accepted_loss_is_recorded_before_anything_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And told in the log."""
    caplog.set_level(logging.WARNING)

    async def body() -> None:
        topics = await overtaken()
        committer = committer_on(topics, GONE)
        assert await opened(committer) == 21
        position = topics.position
        assert position.losses == (GONE,)
        assert (position.offset, position.next_offset) == (11, 21)
        committer.fold(SourceRecords.of([numbered(21)]), Acknowledged())
        await committed(committer)
        assert topics.passed_on == [10, 11, 21]

    run(body())
    assert (
        "event=loss-accepted partition=toy[0] offsets=12-20 count=9" in caplog.messages
    )


@pytest.mark.parametrize("accepted", [None, GONE])
def test_the_next_start_needs_no_word_about_it(accepted: Loss | None) -> None:
    """Nor does one with the same option, as of a parent that starts it again."""

    async def body() -> None:
        topics = await overtaken()
        await opened(committer_on(topics, GONE))
        n_writes = topics.n_writes
        again = committer_on(topics, accepted)
        assert await opened(again) == 21
        assert topics.n_writes == n_writes
        assert topics.position.losses == (GONE,)

    run(body())


def test_what_is_written_before_the_first_record_keeps_the_place() -> None:
    """A stage may have outputs of its own; and it may be revoked and come back."""

    async def body() -> None:
        topics = await overtaken()
        committer = committer_on(topics, GONE)
        await opened(committer)
        committer.stage._passed.append(7)  # type: ignore[attr-defined]
        assert await committed(committer)
        assert topics.position.next_offset == 21
        committer.life.take(Event.REVOKED)
        await committer.commit_last()
        assert committer.resume() == 21
        assert await opened(committer_on(topics)) == 21

    run(body())


def test_a_second_loss_is_one_more() -> None:
    """The first stays on record."""

    async def body() -> None:
        topics = await overtaken()
        await opened(committer_on(topics, GONE))
        topics.source = topics.source._replace(first=31)
        with pytest.raises(StateRefused, match=r"accept-loss toy:0:21-30"):
            await opened(committer_on(topics, GONE))
        await opened(committer_on(topics, Loss(21, 30)))
        assert topics.position.losses == (GONE, Loss(21, 30))

    run(body())


def test_a_loss_before_the_position_cannot_be_accepted() -> None:
    """Records between checkpoint and position would be folded again."""

    async def body() -> None:
        topics = await overtaken(SETTINGS)  # no checkpoint after the first
        assert topics.position.checkpoint_offset == 9
        for accepted in (None, Loss(10, 20), GONE):
            with pytest.raises(StateRefused) as refusal:
                await opened(committer_on(topics, accepted))
            told = str(refusal.value)
            assert "that of offset 9, and all up to 11 must be folded again" in told
            assert "--accept-loss" not in told

    run(body())


def test_a_gap_that_lies_before_what_is_needed_is_none() -> None:
    """Retention of what was folded is what it is for."""

    async def body() -> None:
        topics = await overtaken()
        topics.source = topics.source._replace(first=12)
        assert await opened(committer_on(topics)) == 12

    run(body())


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.name)
def test_only_inputs_may_have_gaps(kind: Any) -> None:
    """What a stage writes is numbered, and its readers refuse what is not whole."""
    position = ResumePosition(SCHEMA, 11, 11, b"f", b"f", "id", 7, 12, 4, 1)
    source = SourcePartition(kind.source, "id", 4, 21, 40)
    rule = LossRule(kind, 0, Settings(), GONE)
    if kind.name.startswith("ingest"):
        assert rule.behind(position, source).losses == (GONE,)
        words = f"{kind.source}:0:{GONE}"
        assert AcceptedLoss.parsed(words) == (kind.source, 0, GONE)
        return
    with pytest.raises(StateRefused, match=f"{kind.name} folds no log with a gap"):
        rule.behind(position, source)
    with pytest.raises(ValueError, match="must be clicks or queries"):
        AcceptedLoss.parsed(f"{kind.source}:0:{GONE}")


@pytest.mark.parametrize(
    "words",
    ["", "queries", "queries:0", "queries:0:5", "queries:a:5-6", "queries:0:5-6-7"],
)
def test_an_option_of_another_form_is_refused(words: str) -> None:
    """With the form that it must have."""
    with pytest.raises(ValueError, match="must be TOPIC:PARTITION:FROM-TO"):
        AcceptedLoss.parsed(words)


def test_an_option_says_which_partition_it_means() -> None:
    """A loss of another one is none."""
    accepted = [
        AcceptedLoss.parsed("queries:1:5-6"),
        AcceptedLoss.parsed("clicks:0:0-0"),
    ]
    assert loss_of(accepted, "queries", 1) == Loss(5, 6)
    assert loss_of(accepted, "clicks", 0) == Loss(0, 0)
    assert loss_of(accepted, "queries", 0) is None
    assert [str(each) for each in accepted] == ["queries:1:5-6", "clicks:0:0-0"]
    with pytest.raises(ValueError, match="FROM of --accept-loss must be TO at most"):
        AcceptedLoss.parsed("queries:1:6-5")
