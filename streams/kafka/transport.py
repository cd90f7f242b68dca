"""Faust's transport, with a few differences: where reading starts, and what is read.

Reading starts where the commits say, whatever the consumer group committed, sees
committed records only, and never jumps over what is missing. What was read and is not
folded yet is bounded in bytes. And most of Faust's cost per record is saved: records go
through it in bundles, and a callback that does not wait is not made a task. This is the
one place that knows Faust's and aiokafka's insides.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import aiokafka
from aiokafka.errors import KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from rankstream.settings import Settings
from rankstream.wire.topics import MIB
from streams.kafka.append_time import ClockDifference, wall_ms
from streams.kafka.bundles import Together, bundled
from streams.kafka.eager_service import EagerService
from streams.kafka.end_of_source import EndOfSource
from streams.kafka.flow import Flow
from streams.kafka.gathered_fetches import QUIET_MS, GatheringConsumer
from streams.kafka.group.membership import Membership
from streams.kafka.header_names import tell_all_names
from streams.kafka.whole_batches import WHOLE, each_of

Opener = Callable[[Mapping[TP, int | None]], Awaitable[dict[TP, int]]]
"""Takes what the group committed for each partition, gives where to start."""

Picker = Callable[[set[TP]], set[TP]]
"""Takes the partitions that could be fetched from, gives those that are to be."""

Positions = dict[TP, tuple[int, int | None, int | None]]
"""Position, highwater, and time of the last answer of each that has a position."""

WAITING_BYTES = 64 * MIB
"""Read and not yet folded: at most so much, and one fetch."""

FETCHED_BYTES = 8 * MIB
"""Most bytes of an answer, of which a partition has a MiB. An answer is copied several
times; beyond some 32 MiB the allocator asks the system for new pages for each copy.
"""

FULL_PAUSE_S = 0.005

LISTEN_S = 0.25
"""How long a fetch waits for records: so often is an answer without any noticed."""

APART_S = 0.1
"""A trickle is read ten times a second, not once for each of its records, and less
often where commits are further apart than they could be.
"""

tell_all_names()

REQUEST_MS = 90_000
"""Longer than a rebalance, which a request to join waits for."""


class ReadProgress(NamedTuple):
    """How far a partition was read.

    Parameters
    ----------
    last
        Offset of the last record that was handed to the stage's stream.
    position
        Offset before which every record was handed to it, in this fetch or an earlier
        one; it steps over transaction markers.
    highwater
        The broker's end of the partition, as of that fetch.
    at_end_ms
        For how long the broker has been saying that there is nothing more; 0 where it
        has more, or has not answered lately.
    """

    last: int
    position: int | None
    highwater: int | None
    at_end_ms: int = 0

    def reached(self, folded: int) -> int | None:
        """Offset behind all that was read; None where not all of it is folded.

        Parameters
        ----------
        folded
            Offset of the last record that is.
        """
        return self.position if folded >= self.last else None


class Bundle(ConsumerMessage):
    """A message to Faust that has its records with it, as the client gave them.

    Its offset is that of the last one. It has no key and no value of its own, so
    nothing of it is decoded. `n_bytes` is what they take while they wait.
    """

    __slots__ = ("n_bytes", "records")

    def __init__(self, together: Together, place: Any, generation_id: int) -> None:
        last = together.records[-1]
        super().__init__(
            place.topic,
            place.partition,
            last.offset,
            0.0,
            last.timestamp_type,
            None,
            None,
            None,
            None,
            tp=place,
            generation_id=generation_id,
        )
        self.records, self.n_bytes = together


class CommittedReadsThread(driver.AIOKafkaConsumerThread):
    """The consumer's thread; reads committed records."""

    def _create_worker_consumer(
        self, transport: driver.Transport
    ) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust makes it, and would wait for a thread whose consumer cancels its stop.
        consumer.__class__ = GatheringConsumer
        # Faust gives no setting for these; the consumer has not started yet.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        consumer._key_deserializer = WHOLE  # noqa: SLF001
        # A larger record comes all the same: a broker gives at least one batch.
        consumer._fetch_max_bytes = FETCHED_BYTES  # noqa: SLF001
        consumer._max_partition_fetch_bytes = MIB  # noqa: SLF001
        consumer._fetch_max_wait_ms = QUIET_MS  # noqa: SLF001
        app: Any = transport.app
        settings: Settings = app.stage_settings
        apart = settings.between_commits_s / settings.delivery.commit_s
        consumer.apart_s = apart * APART_S
        # Faust's own stands for how long opening partitions may take.
        consumer._client._request_timeout_ms = REQUEST_MS  # noqa: SLF001
        consumer._request_timeout_ms = REQUEST_MS  # noqa: SLF001
        return consumer

    async def on_thread_stop(self) -> None:
        """Leave the group for good, even where a crash would not have left it."""
        if self._consumer is not None:
            # A static member does not say that it leaves, and its partitions would
            # wait for the session's end.
            self._consumer._coordinator._group_instance_id = None  # noqa: SLF001
        await super().on_thread_stop()

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        """Records, and where their partitions are once these are taken.

        Both at once: when another thread asks later, the next fetch may have moved the
        position past records that were not handed over.
        """
        records = await super()._fetch_records(*args, **kwargs)
        return records, self._positions()

    def _positions(self) -> Positions:
        consumer: Any = self._consumer
        assigned = consumer and consumer._subscription.subscription  # noqa: SLF001
        assignment = assigned and assigned.assignment
        if assignment is None:
            return {}
        states = ((place, assignment.state_value(place)) for place in assignment.tps)
        return {
            TP(place.topic, place.partition): (
                state.position,
                state.highwater,
                state.timestamp,
            )
            for place, state in states
            if state is not None and state.has_valid_position
        }


class RebalanceListener(driver.ConsumerRebalanceListener):
    """Notes as whom partitions are assigned, before anybody else can be asked."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """In the consumer's thread, while its group waits for the answer."""
        thread: Any = self._thread
        coordinator = thread._ensure_consumer()._coordinator  # noqa: SLF001
        thread.consumer.membership = Membership(
            coordinator.generation,
            coordinator.member_id,
            coordinator._group_instance_id or "",  # noqa: SLF001
            frozenset((place.topic, place.partition) for place in assigned),
        )
        await super().on_partitions_assigned(assigned)


class Consumer(EagerService, driver.Consumer):
    """Asks the application where each partition starts."""

    RebalanceListener: ClassVar[Any] = RebalanceListener

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.membership: Membership | None = None
        self.waiting_bytes = 0
        self._last: dict[TP, int] = {}
        self._positions: Positions = {}
        self._ends: dict[TP, EndOfSource] = {}
        self.clocks = ClockDifference()
        self._flow = Flow()
        self._fetcher: asyncio.Task[Any] | None = None

    def _new_consumer_thread(self) -> CommittedReadsThread:
        return CommittedReadsThread(self, loop=self.loop, beacon=self.beacon)

    def progress(self, place: TP) -> ReadProgress:
        """How far a partition was read."""
        position, highwater, _ = self._positions.get(place, (None, None, None))
        end = self._ends.get(place)
        at_end_ms = 0 if end is None else end.at_end_ms(time.monotonic())
        return ReadProgress(self._last.get(place, -1), position, highwater, at_end_ms)

    def taken(self, n_bytes: int) -> None:
        """Hear that so much of what waits is about to be folded or dropped."""
        self.waiting_bytes -= n_bytes

    def _to_message(self, tp: TP, record: Together) -> Bundle:
        """What Faust makes a message of, which here are records that go together."""
        return Bundle(record, tp, self.app.consumer_generation_id)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Hand nothing over from here on."""
        self._flow.revoke()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(
        self, assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Hand over again what is fetched once these partitions were sought."""
        self._flow.assign()
        await super().on_partitions_assigned(assigned, generation_id)

    async def perform_seek(self) -> None:
        """Seek, as partitions were assigned.

        Faust also seeks where a fetch ends while its flow is suspended, whoever has the
        partitions by then. Their next assignment seeks all the same.
        """
        if asyncio.current_task() is not self._fetcher:
            await super().perform_seek()

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Open the partitions, and seek to where each of them starts."""
        stop = self._flow.stop()
        committed = await super().seek_to_committed()
        if not self._flow.is_assigned:
            return {}
        opener: Opener = self.app.open_partitions  # type: ignore[attr-defined]
        known = {TP(tp.topic, tp.partition): at for tp, at in committed.items()}
        starts = await opener(known)
        # Faust has emptied its queues by now.
        self.waiting_bytes = 0
        self._forget_positions()
        if starts:
            async with self._flow.fetching:
                await self._thread.seek_wait(starts)
            self._forget_positions()
        self._flow.resume(stop)
        return starts

    def _forget_positions(self) -> None:
        """Positions of fetches before a seek are no longer true."""
        self._last.clear()
        self._positions.clear()
        self._ends.clear()

    def ack(self, message: Any) -> bool:
        """Take note that a message is done with, and of nothing else.

        Faust would keep the offsets of all that it cannot commit, which is everything
        behind the first transaction marker.
        """
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        return True

    async def commit(self, *_: Any, **__: Any) -> bool:
        """Commit nothing: the group's offsets are committed with what they cover."""
        return False

    async def _add_gap(self, *_: Any) -> None:
        """Remember no gaps, as nothing is committed by them."""

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:
        flow, wanted = self._flow.current, self._wanted(active_partitions)
        if not wanted:
            await asyncio.sleep(FULL_PAUSE_S)
            return {}
        self._fetcher = asyncio.current_task()
        # A cancelled fetch hands no records over, so it moves no position here.
        given: Any = await self._given(wanted, min(timeout, LISTEN_S))
        if flow != self._flow.current:
            return {}
        fetched, positions = given
        read = {place: each_of(batches) for place, batches in fetched.items()}
        bundles = {place: list(bundled(records)) for place, records in read.items()}
        for place, records in read.items():
            if records:
                where = TP(place.topic, place.partition)
                self._last[where] = records[-1].offset
                self.waiting_bytes += sum(each.n_bytes for each in bundles[place])
                self._compare_clocks(where, records[-1])
        self._positions.update(positions)
        self._hear(positions)
        return bundles

    async def _given(self, wanted: set[TP], timeout: float) -> Any:
        """Records and positions, both empty where nothing is to be had."""
        flow = self._flow.current
        try:
            async with self._flow.fetching:
                return await super()._getmany(wanted, timeout)
        except NoOffsetForPartitionError:
            # A fetch that was under way at an assignment finds where the group has
            # committed nothing; where to start is sought after it.
            if flow == self._flow.current:
                raise
        except OffsetOutOfRangeError as error:
            if flow == self._flow.current:
                await self._read_outside(error, flow)
        return {}, {}

    def _wanted(self, active_partitions: set[TP]) -> set[TP]:
        """Of these the partitions to fetch from; none where nothing may be fetched."""
        if self.waiting_bytes >= WAITING_BYTES or self._flow.current is None:
            return set()
        pick: Picker = self.app.not_held_back  # type: ignore[attr-defined]
        return pick(active_partitions)

    def _compare_clocks(self, place: TP, record: Any) -> None:
        end = self._ends.get(place)
        told_ms = None if end is None else end.told_ms
        self.clocks.see(place, record, told_ms=told_ms, now_ms=wall_ms())

    def _hear(self, positions: Positions) -> None:
        """Take what the broker has said of ends, noting when that was."""
        now_s = time.monotonic()
        for place, (position, highwater, answer_ms) in positions.items():
            end = self._ends.setdefault(place, EndOfSource())
            end.hear(answer_ms, position, highwater, now_s=now_s)

    async def _read_outside(
        self, error: OffsetOutOfRangeError, flow: int | None
    ) -> None:
        """Tell what the topic has instead of what was to be read next.

        Of a flow that is over by then nothing is told: its place was another.
        """
        (offsets,) = error.args
        for place in (TP(*each) for each in offsets):
            try:
                firsts = await self._thread.earliest_offsets(place)
                ends = await self._thread.highwaters(place)
            except KafkaError:
                return  # the next fetch finds the same
            if flow != self._flow.current:
                return
            await self.app.read_outside(  # type: ignore[attr-defined]
                place, firsts[place], ends[place]
            )


class Transport(driver.Transport):
    """Kafka as stages need it."""

    Consumer: ClassVar[Any] = Consumer
