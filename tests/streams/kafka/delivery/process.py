"""One process of a stage: what is Faust's and the transport's part, around the rules.

It hears what its group says, opens and suspends partitions, fetches committed records
and offers them. All of that belongs to its owner, and ends for ever where that is
killed.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

from aiokafka import TopicPartition as ClientPartition
from aiokafka.errors import OffsetOutOfRangeError

from rankstream.settings import Settings
from rankstream.wire.topics import full_name
from streams.kafka.clients import Cluster
from streams.kafka.flow import Flow
from streams.kafka.partitions.assignment import Assignment
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.source_watch import Seen, SourceWatch
from streams.kafka.state.joint_log import JointLog
from streams.kafka.state.state_log import StateLog
from streams.kafka.transport import ReadProgress
from streams.source_records import SourceRecords
from streams.stage import SourceRecord
from streams.topology import StageKind
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Fetched, PartitionLog, Stored
from tests.fakes.points import Points, begin
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.delivery.conditions import Conditions
from tests.streams.kafka.delivery.group import Assigned, Group, Lost, News
from tests.streams.kafka.delivery.stage import GROUP, NAMESPACE

FETCHED = 3
"""Records in one fetch, at most."""


class SourcePlace(TopicPartition):
    """A partition whose place in a set is the same in every run."""

    def __hash__(self) -> int:
        return self.partition


class Ended(BaseException):
    """The process is at its end; nothing of it goes on."""


class Surroundings(Protocol):
    """What a process runs in."""

    points: Points
    conditions: Conditions
    loop: VirtualLoop
    kafka: FakeKafka
    group: Group
    settings: Settings
    kinds: tuple[StageKind, ...]

    def log_of(self, place: TopicPartition) -> PartitionLog:
        """The log of a partition of the source."""

    def ended(self, process: "Process", error: BaseException) -> None:
        """Hear that a process has ended itself."""


class _Message(NamedTuple):
    place: TopicPartition
    stored: Stored
    generation: int


class _Event:
    """What is acknowledged; nobody counts on it."""

    def ack(self) -> None:
        """Hear that the record needs no reading any more."""


class _Topics:
    """What the cluster says of topics."""

    def __init__(self, kafka: FakeKafka) -> None:
        self._kafka = kafka

    def __call__(self, names: Collection[str]) -> Mapping[str, Seen]:
        """What is known of topics."""
        topics = self._kafka.topics
        return {
            name: Seen(topics[name].topic_id, len(topics[name].partitions))
            for name in names
        }

    def close(self) -> None:
        """Let go of nothing."""


class Process:
    """A process, from its start to its end or its death."""

    def __init__(self, name: str, around: Surroundings, instance: str = "") -> None:
        self.name = name
        self.instance = instance
        self.is_alive = True
        self.rebalancing = True
        self.is_revoked = False
        self._around = around
        self._point = around.points.point
        self._kinds = {full_name(NAMESPACE, each.source): each for each in around.kinds}
        topics = _Topics(around.kafka)
        known = topics(self._kinds)
        ids = {kind.source: known[name].topic_id for name, kind in self._kinds.items()}
        clients = FakeClients(around.kafka, self._point)
        self._cluster = Cluster(NAMESPACE, {}, ids, clients)
        self._joint = JointLog(self._cluster, around.kinds)
        self._watch = SourceWatch(known, topics)
        self._generation = -1
        self._news: asyncio.Queue[News] = asyncio.Queue()
        self._messages: asyncio.Queue[_Message] = asyncio.Queue()
        self._positions: dict[TopicPartition, int] = {}
        self._progress: dict[TopicPartition, ReadProgress] = {}
        self._flow = Flow()
        self._is_flowing = False
        self._wake = asyncio.Event()
        self._seeking: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._timed: list[asyncio.Task[None]] = []
        self.assignment = Assignment(
            self, around.settings, self._fail, self._watch.check
        )

    # What others do to it.

    def start(self) -> None:
        """Begin all of its tasks."""
        loop, guarded = self._around.loop, self.assignment.guarded
        for work in (self.assignment.run_commits(), guarded(self._watch.run())):
            self._timed.append(begin(loop, work, self.name))
        for work in (self._live(), self._fetch(), self._fold()):
            self._tasks.append(begin(loop, work, self.name))

    def stop(self) -> None:
        """Ask it to stop."""
        self._tasks.append(begin(self._around.loop, self._stop(), self.name))

    def die(self) -> None:
        """Go no further: what waits is never let on, and no timer wakes it."""
        self.is_alive = False
        self._cancel_timed()

    def hear(self, news: News) -> None:
        """Be told by the group."""
        self._news.put_nowait(news)

    def wake(self) -> None:
        """Look for records again."""
        self._wake.set()

    def _cancel_timed(self) -> None:
        for task in self._timed:
            task.cancel()

    # What it is asked.

    def progress(self, place: TopicPartition) -> ReadProgress:
        """How far a partition was read."""
        if not self.is_alive:  # whoever asks waits for nothing any more
            return ReadProgress(-1, None, None)
        return self._progress.get(place, ReadProgress(-1, None, None))

    async def written(self) -> None:
        """Wait until nothing is being written."""
        await self._joint.written()

    # What it does.

    def committer_of(self, place: TopicPartition) -> Committer:
        """What commits a partition."""
        kind, settings = self._kinds[place.topic], self._around.settings
        state = StateLog(kind, place.partition, self._cluster, self._joint)
        return Committer(kind, place.partition, state, settings)

    def _fail(self, error: BaseException) -> NoReturn:
        if self.is_alive and not isinstance(error, Ended):
            self.die()
            self._around.ended(self, error)
        raise Ended

    async def _live(self) -> None:
        await self._point("join")
        self._around.group.join(self)
        while True:
            news = await self._news.get()
            await self._point(f"hear {type(news).__name__.lower()}")
            if isinstance(news, Assigned):
                await self._assigned(news)
                continue
            self.rebalancing = True
            self._flow.revoke()
            self._is_flowing = False
            self._empty_queues()
            await self.assignment.suspend()
            self.is_revoked = True
            if isinstance(news, Lost):
                self._around.group.join(self)
            else:
                self._around.group.ready(self, news.rebalance)

    async def _assigned(self, news: Assigned) -> None:
        group = self._around.group
        is_over = news.rebalance != group.n_rebalances or self not in group.members
        if is_over and not self._around.conditions.hears_late:
            return  # another rebalance has begun: the member joins that
        self._generation = news.rebalance
        self.is_revoked = False
        self._flow.assign()
        # A client begins where the group has committed, until it is told to seek.
        self._positions = {
            place: committed or self._around.log_of(place).first
            for place, committed in self._committed(news.places).items()
        }
        if self._around.conditions.hears_late:
            await self._point("hear as whom")
        if self._seeking is not None:
            self._seeking.cancel()
        self.assignment.join(news.member)
        await self.assignment.keep(news.places)
        self._seeking = asyncio.ensure_future(self._recover(news.places))

    async def _recover(self, places: list[TopicPartition]) -> None:
        """Seek, as partitions were assigned; Faust does not ask if they still are."""
        await self._seek(places)
        self._is_flowing = True
        self.rebalancing = False
        self.wake()

    async def _seek(self, places: list[TopicPartition]) -> None:
        stop = self._flow.stop()
        await self._point("ask the group")
        if not self._flow.is_assigned:
            return
        starts = await self.assignment.open(self._committed(places))
        self._empty_queues()
        async with self._flow.fetching:
            await self._point("seek")
            self._positions.update(
                {place: at for place, at in starts.items() if place in self._positions}
            )
        self._progress.clear()
        self._flow.resume(stop)
        self.wake()

    def _committed(
        self, places: list[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        committed: dict[Any, int] = self._around.kafka.groups.get(GROUP, {})
        # Places here have a hash of their own.
        return {place: committed.get(ClientPartition(*place)) for place in places}

    def _empty_queues(self) -> None:
        while not self._messages.empty():
            self._messages.get_nowait()

    async def _fetch(self) -> None:
        while True:
            flow = self._flow.current
            is_flowing = self._is_flowing and flow is not None
            places = [each for each in self._positions if self._has_more(each)]
            if not is_flowing or not places:
                self._wake.clear()
                await self._wake.wait()
                continue
            outside: list[TopicPartition] = []
            async with self._flow.fetching:
                await self._point("fetch source")
                found = {}
                for place in places:
                    try:
                        if place in self._positions:
                            found[place] = self._fetched(place)
                    except OffsetOutOfRangeError:
                        outside.append(place)
                await self._point("fetch source, answered")
            if flow != self._flow.current:
                continue
            if outside:  # and nothing else is heard of that fetch
                await self._read_outside(outside, flow)
                continue
            for place, fetched in found.items():
                self._hand_over(place, fetched, self._generation)

    def _hand_over(
        self, place: TopicPartition, fetched: Fetched, generation: int
    ) -> None:
        last = self.progress(place).last
        for stored in fetched.records:
            self._messages.put_nowait(_Message(place, stored, generation))
            last = stored.offset
        self._progress[place] = ReadProgress(last, fetched.position, fetched.highwater)

    def _has_more(self, place: TopicPartition) -> bool:
        log = self._around.log_of(place)
        return not log.stable <= self._positions[place] <= log.end

    def _fetched(self, place: TopicPartition) -> Fetched:
        """Records from where the client is by now; it moves on, whoever takes them."""
        at = self._positions[place]
        fetched = self._around.log_of(place).fetch(at, is_committed=True, limit=FETCHED)
        self._positions[place] = fetched.position
        return fetched

    async def _read_outside(
        self, places: list[TopicPartition], flow: int | None
    ) -> None:
        """Tell what the topic has instead of what was to be read next."""
        for place in places:
            await self._point("ask what there is")
            if flow != self._flow.current:
                return
            log = self._around.log_of(place)
            await self.assignment.read_outside(place, log.first, log.end)

    async def _fold(self) -> None:
        take = self.assignment.take
        while True:
            place, stored, generation = await self._messages.get()
            await self._point("next record")
            source = self._kinds[place.topic].source
            records = SourceRecords.of([_record_of(source, place, stored)])
            while not take(
                place, records, _Event(), is_current=generation == self._generation
            ):
                await self.assignment.turn_of(place)

    async def _stop(self) -> None:
        self.assignment.open_no_more()
        for task in (*self._tasks[:3], self._seeking):
            if task is not None:
                task.cancel()
        await self._point("stop")
        await self.assignment.suspend()
        self._cancel_timed()
        await self.assignment.keep(())
        self._around.group.leave(self)
        self.is_alive = False


def _record_of(source: str, place: TopicPartition, stored: Stored) -> SourceRecord:
    assert stored.content is not None
    key, value, headers, at_ms = stored.content
    return SourceRecord(
        source, place.partition, stored.offset, at_ms, key, value, headers
    )
