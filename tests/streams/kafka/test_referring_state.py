"""What a start reads back where state refers to records of its source."""

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition

from rankstream.settings import DeliverySettings, Settings, TimeSettings
from rankstream.wire.events import ACTIVE, Element, Frontier, encode_record
from rankstream.wire.topics import EVENTS
from streams.kafka.clients import Cluster
from streams.kafka.partitions.committer import Committer
from streams.kafka.referring_state import ReferringState
from streams.kafka.state.resume_position import StateRefused
from streams.source_records import SourceRecords
from streams.stage import Change, SourceRecord, offset_referred
from streams.topology import STAGES, StageKind
from tests.event_factory import START_MS, click, impression
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content
from tests.streams.kafka.memory_log import Acknowledged

SETTINGS = Settings(
    time=TimeSettings(click_window_ms=1_000, disorder_ms=100, remember_ms=500),
    delivery=DeliverySettings(state_s=3_600.0, state_records=2),
)
"""A checkpoint is due after two records, and never because of the time."""

LOG = TopicPartition(EVENTS, 0)
(FOLD,) = (kind for kind in STAGES if kind.name == "fold")


class Cell:
    """A Kafka in memory with the topics of the fold, and a log that is written to."""

    def __init__(self) -> None:
        self.kafka = FakeKafka()
        for topic in (FOLD.source, *FOLD.state_topics, *FOLD.outputs):
            self.kafka.create(topic, 1)
        topic_ids = {EVENTS: self.kafka.topics[EVENTS].topic_id}
        self.cluster = Cluster("", {}, topic_ids, FakeClients(self.kafka))
        self.n_records = 0

    def append(self, *elements: Element) -> None:
        """A record that is committed, behind the marker of one that was aborted."""
        producer = f"ingest {self.n_records}"
        writer = self.kafka.transactions.initialise(producer)
        self.n_records += 1
        value = encode_record([1, 0, self.n_records, list(elements)])
        log = self.kafka.log(LOG)
        log.append(writer, [Content(None, b"never committed", (), 0)])
        log.mark(writer, is_commit=False)
        log.append(None, [Content(None, value, (), 0)])

    async def opened(self, kind: StageKind = FOLD) -> tuple[Committer, int]:
        """Take the partition over; where reading begins."""
        state = ReferringState(kind, 0, self.cluster)
        committer = Committer(kind, 0, state, SETTINGS)
        return committer, await committer.open(None)

    async def fold(self, committer: Committer, start: int) -> None:
        """Fold the log from an offset on."""
        for stored in self.kafka.log(LOG).fetch(start, is_committed=True).records:
            content: Any = stored.content
            if content is not None:
                record = SourceRecord(EVENTS, 0, stored.offset, 0, None, content[1], ())
                committer.fold(SourceRecords.of([record]), Acknowledged())


def lists(*names: str, at_ms: int = 0) -> list[Element]:
    """Lists, each with a click."""
    shown = [impression(name, START_MS + at_ms) for name in names]
    return [*shown, *(click(name, START_MS + at_ms + 1) for name in names)]


def reached(at_ms: int) -> Frontier:
    """The only source has reached this time after the start."""
    return Frontier(0, 1, START_MS + at_ms, ACTIVE)


async def stopped(cell: Cell) -> dict[str, int]:
    """Fold the log, write a checkpoint, fold and commit one record more, and die.

    What was counted by then.
    """
    committer, start = await cell.opened()
    cell.append(*lists("a", "b"), reached(0))
    cell.append(*lists("c", at_ms=1_500), reached(1_500))
    await cell.fold(committer, start)
    assert await committer.commit()
    cell.append(*lists("d", at_ms=1_600))
    await cell.fold(committer, committer.next_offset)
    assert await committer.commit()
    assert committer.position.checkpoint_offset < committer.position.offset
    counts = committer.stage.counters()
    await committer.close()
    return counts


def test_a_start_reads_what_open_lists_refer_to_and_no_more() -> None:
    """Committed records, from the first with an open list up to the checkpoint."""

    async def story() -> None:
        cell = Cell()
        counts = await stopped(cell)
        assert counts["applied_impressions"] == 2
        state = ReferringState(FOLD, 0, cell.cluster)
        await state.fence(60_000)
        read = await state.read()
        pieces = [each for each in read.items if each[0] == EVENTS]
        found = [offset_referred(Change(*each, b"")) for each in pieces]
        assert found == [5]
        await state.close()

        committer, start = await cell.opened()
        await cell.fold(committer, start)
        assert committer.stage.counters() == counts
        cell.append(reached(10_000))
        await cell.fold(committer, committer.next_offset)
        counts = committer.stage.counters()
        assert (counts["applied_impressions"], counts["applied_clicks"]) == (4, 4)
        assert counts["pending"] == 0

    asyncio.run(story())


@pytest.mark.parametrize("first", [5, 6])
def test_a_log_that_was_cut_behind_open_lists_is_refused(first: int) -> None:
    """By its offsets; up to the first of them it may be gone."""

    async def story() -> None:
        cell = Cell()
        await stopped(cell)
        cell.kafka.delete_before(LOG, first)
        if first == 5:
            await cell.opened()
            return
        with pytest.raises(StateRefused) as refused:
            await cell.opened()
        told = "events[0] must still hold offset 5, which lists with an open window"
        assert told in str(refused.value)
        assert "it begins at 6: offsets 5-5 left it" in str(refused.value)

    asyncio.run(story())


def test_a_log_that_was_created_anew_is_refused_as_such() -> None:
    """Nothing of it is read for the state of another."""

    async def story() -> None:
        cell = Cell()
        await stopped(cell)
        cell.kafka.delete(EVENTS)
        cell.cluster = Cluster(
            "", {}, {EVENTS: cell.kafka.create(EVENTS, 1)}, FakeClients(cell.kafka)
        )
        with pytest.raises(StateRefused, match="it was created anew"):
            await cell.opened()

    asyncio.run(story())
