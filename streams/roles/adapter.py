"""Topics of other systems on Kafka: documents in, events of ours out.

Reads what was committed, passes documents on in the order in which Kafka took them,
and writes their events with the positions behind them in one transaction. It stores
nothing else: a worker that takes over reads on from these positions.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from rankstream.adapters.known_queries import KnownQueries
from rankstream.settings import Settings
from streams.adaptation.adapted import Adaptation, sources_of
from streams.adaptation.merge import (
    MOST_BYTES,
    MOST_DOCUMENTS,
    Document,
    Merge,
)
from streams.kafka.append_time import wall_ms
from streams.kafka.broker_away import BrokerAway
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import Waiting, client_options
from streams.kafka.group.group_positions import PositionsHang, stable_positions
from streams.kafka.reader_role import RETRY_S, either
from streams.kafka.source.positions import (
    Bounds,
    check_position,
    is_another,
    starts_of,
)
from streams.kafka.source.recent_lists import learn_lists
from streams.kafka.source.source_log import Position, SourceLog
from streams.kafka.source.source_member import SourceMember
from streams.kafka.source_watch import ClusterTopics, Describe
from streams.kafka.status.adapt_status import AdaptStatus
from streams.kafka.status.role_status import Lag
from streams.kafka.status.status_page import Status
from streams.topology import group_of

READ_MS, STAND_BY_MS = 50, 250
"""How long a read waits for documents."""

SILENT_S = 10.0
"""A partition of which nothing was heard for so long is waited for no more."""

SLICE = 100
"""Documents after which others have a turn, such as the heartbeat of the group."""

MOST_READ = 4_000

HELD_SHARE = 3
"""Of the disorder that ingestion allows, a click may wait this part for its list: what
others pass it by is disorder too."""

LOOK_S, LOOK_AGAIN_S = 2.0, 5.0
"""Between two looks for topics that are not there yet, and for changed ones."""

log = logging.getLogger("rankstream.adapter")


class SourceAdapter:
    """Adapts what it is assigned, and begins anew where Kafka fails it.

    Parameters
    ----------
    cluster
        Where to read and write.
    describe
        Asks which topics there are.
    fares
        Is told how it goes.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        describe: Describe,
        fares: AdaptStatus,
        on_ready: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._describe = describe
        self._fares = fares
        self._on_ready = on_ready
        self._group = group_of(settings.namespace, "adapt")
        self._sources = {each.topic: each for each in settings.sources.values()}
        self._queries = KnownQueries()
        self._adaptation = Adaptation(
            sources_of(settings.sources), settings.kafka.input_partitions, self._queries
        )
        self._hold_ms = settings.time.disorder_ms // HELD_SHARE
        self._merge: Merge[TopicPartition] = Merge()
        self._topic_ids: Mapping[str, str] = {}
        self._opened = -1
        self._looked_s = 0.0
        self._heard: dict[TopicPartition, tuple[Any, float]] = {}
        self._read_to: dict[TopicPartition, int] = {}

    async def session(self, stop: asyncio.Event) -> None:
        """Be a member of the group until the stop, or until Kafka fails.

        Raises
        ------
        KafkaError, BrokerAway, PositionsHang
            What was under way is not known to be written: begin a new session.
        StateRefused
            Where a source is not what it was, or lacks what comes next.
        """
        self._topic_ids = await self._found_topics(stop)
        if stop.is_set():
            return
        delivery, kafka = self._settings.delivery, self._settings.kafka
        member = SourceMember(
            client_options(kafka),
            sorted(self._sources),
            group=self._group,
            instance=f"{delivery.instance_id}-adapt" if delivery.instance_id else None,
            session_s=delivery.session_timeout_s,
        )
        own = SourceLog(self._cluster, self._group, delivery.transaction_timeout_ms)
        self._opened = -1
        self._fares.trouble = "partitions are being assigned"
        try:
            await member.start()
            while not stop.is_set():
                async with member.turn:
                    await self._turn(member, own)
                await self._look_again()
                self._fares.tell()
        finally:
            await own.close()
            await member.stop()

    async def _found_topics(self, stop: asyncio.Event) -> dict[str, str]:
        """Ids of all sources, once all are there: a reader would create them."""
        waiting = Waiting("the topics of all sources")
        while not stop.is_set():
            try:
                found = await asyncio.to_thread(self._describe, sorted(self._sources))
                missing = sorted(self._sources.keys() - found.keys())
                if not missing:
                    waiting.over()
                    return {name: seen.topic_id for name, seen in found.items()}
                away = BrokerAway(f"the cluster has no topic {', '.join(missing)}")
            except BrokerAway as error:
                away = error
            self._fares.trouble = str(away)
            waiting.say(away)
            await either(stop, timeout_s=LOOK_S)
        return {}

    async def _look_again(self) -> None:
        """End the session where a source was created anew: the next one refuses it.

        Clients do not notice, and read on in the new one.
        """
        if time.monotonic() - self._looked_s < LOOK_AGAIN_S:
            return
        self._looked_s = time.monotonic()
        try:
            found = await asyncio.to_thread(self._describe, sorted(self._sources))
        except BrokerAway:
            return
        for name, seen in found.items():
            if is_another(self._topic_ids[name], seen.topic_id):
                raise BrokerAway(f"the topic {name} was created anew")

    async def _turn(self, member: SourceMember, own: SourceLog) -> None:
        started_s = time.monotonic()
        if member.generation != self._opened:
            await self._take_over(member, own)
        if not member.assigned:
            await member.read((), STAND_BY_MS, 1)
            return
        await self._read(member)
        behind = [
            place for place in member.assigned if await self._has_more(member, place)
        ]
        self._merge.begin(behind, now_ms=wall_ms())
        positions = await self._adapted()
        if not positions:
            self._fares.lag(self._lag(member))
            return
        await own.write(self._adaptation.outputs(), positions)
        self._adaptation.written()
        self._fares.wrote(self._adaptation.counts, self._lag(member))
        self._fares.tell_refusals(self._adaptation.refusals)
        self._adaptation.refusals.clear()
        if not len(self._merge):
            # Level: what comes meanwhile shares the next transaction.
            spent_s = time.monotonic() - started_s
            await asyncio.sleep(max(0.0, self._settings.delivery.commit_s - spent_s))

    async def _adapted(self) -> dict[TopicPartition, Position]:
        """Adapt what may be passed on; says behind which documents that is."""
        positions: dict[TopicPartition, Position] = {}
        n_bytes = 0
        for number in range(MOST_DOCUMENTS):
            head = self._merge.head()
            if head is None or n_bytes >= MOST_BYTES:
                break
            place, document, was_held = head
            if was_held and not self._merge.is_read_ahead():
                # In a history what it waits for was written long ago.
                break
            at = place.topic, place.partition
            waiting = self._merge.look_ahead()
            ahead = ((behind.topic, other) for behind, other in waiting)
            if not self._adaptation.take(
                *at, document, may_wait=not was_held, ahead=ahead
            ):
                self._merge.hold(self._hold_ms)
                continue
            self._merge.pass_on()
            n_bytes += len(document.value or b"")
            topic_id = self._topic_ids[place.topic]
            positions[place] = Position(document.offset + 1, topic_id)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        return positions

    async def _take_over(self, member: SourceMember, own: SourceLog) -> None:
        """Fence whoever adapted before, and read on where it was."""
        generation, assigned = member.generation, member.assigned
        self._merge.start(())
        if not assigned:
            await own.close()
            self._fares.lag({})
            if assigned is not None:
                log.info("event=standing-by reason=another worker adapts")
                self._ready(0)
            self._opened = generation
            return
        places = sorted(assigned)
        await own.fence()
        # Only now: nobody else can move them any more.
        committed = await self._positions(own, places)
        bounds = await self._bounds(member, places)
        starts = starts_of(
            self._sources, committed, bounds, self._topic_ids, self._group
        )
        begun = {
            place: Position(start, self._topic_ids[place.topic])
            for place, start in starts.items()
            if committed.get(place) is None
        }
        if begun:
            # "latest" is where it was at the first start, not at the next one.
            await own.write([], begun)
        for place, start in starts.items():
            member.consumer.seek(place, start)
        self._adaptation.start()
        n_partitions = self._settings.kafka.input_partitions
        await learn_lists(self._cluster, n_partitions, self._queries)
        self._merge.start(places)
        now_s = time.monotonic()
        self._heard = dict.fromkeys(places, (None, now_s))
        self._opened = generation
        self._ready(len(places))

    async def _positions(
        self, own: SourceLog, places: list[TopicPartition]
    ) -> dict[TopicPartition, Position]:
        asked = self._cluster.client, self._group, places
        try:
            found = await asyncio.to_thread(stable_positions, *asked)
        except PositionsHang:
            await own.end_what_hangs(places)
            found = await asyncio.to_thread(stable_positions, *asked)
        return {place: Position(*each) for place, each in found.items()}

    def _ready(self, n_partitions: int) -> None:
        self._fares.trouble = ""
        self._on_ready(n_partitions)

    async def _read(self, member: SourceMember) -> None:
        try:
            fetched = await member.read(self._merge.wanted(), READ_MS, MOST_READ)
        except OffsetOutOfRangeError as error:
            await self._refuse_gap(member, error)
            raise
        now_ms = wall_ms()
        for place, records in fetched.items():
            documents = [
                Document(
                    record.offset,
                    # A sender's clock that is ahead would hold its partition back.
                    min(record.timestamp or 0, now_ms),
                    record.value,
                    tuple(record.headers or ()),
                )
                for record in records
            ]
            self._merge.add(place, documents)
            self._adaptation.note(place.topic, documents)

    async def _has_more(self, member: SourceMember, place: TopicPartition) -> bool:
        """Whether there is more of a partition, as far as the broker says."""
        consumer, now_s = member.consumer, time.monotonic()
        self._read_to[place] = await consumer.position(place)
        answer_ms = consumer.last_poll_timestamp(place)
        heard_ms, heard_s = self._heard.get(place, (None, now_s))
        if answer_ms != heard_ms:
            heard_s = now_s
        self._heard[place] = answer_ms, heard_s
        if now_s - heard_s > SILENT_S:
            return False
        stable = consumer.last_stable_offset(place)
        return stable is None or self._read_to[place] < stable

    def _lag(self, member: SourceMember) -> dict[TopicPartition, Lag]:
        """Offsets of each partition that were not adapted yet."""
        lags = {}
        for place in member.assigned or ():
            waiting = self._merge.next_offset(place)
            at = self._read_to[place] if waiting is None else waiting
            stable = member.consumer.last_stable_offset(place) or 0
            lags[place] = Lag(max(0, stable - at), at)
        return lags

    async def _bounds(
        self, member: SourceMember, places: list[TopicPartition]
    ) -> dict[TopicPartition, Bounds]:
        firsts = await member.consumer.beginning_offsets(places)
        ends = await member.consumer.end_offsets(places)
        return {place: Bounds(firsts[place], ends[place]) for place in places}

    async def _refuse_gap(
        self, member: SourceMember, error: OffsetOutOfRangeError
    ) -> None:
        """Refuse where the topic does not hold what is to be read next."""
        (offsets,) = error.args
        found = await self._bounds(member, sorted(offsets))
        for place, bounds in found.items():
            position = Position(offsets[place], "")
            check_position(place, position, bounds, self._topic_ids, self._group)


async def adapt(
    settings: Settings, stop: asyncio.Event, status: Status | None = None
) -> None:
    """Adapt documents of all sources until the stop."""
    status = status or Status("adapt")
    fares = AdaptStatus(status.role, settings.sources)
    status.registry.register(fares)
    client = client_options(settings.kafka)

    def tell_ready(n_partitions: int) -> None:
        status.phases.ended("join")
        log.info(
            "event=ready role=%s partitions=%d %s",
            status.role, n_partitions, status.phases,
        )  # fmt: skip

    describe = ClusterTopics(client)
    cluster = Cluster(settings.namespace, client, {})
    adapter = SourceAdapter(settings, cluster, describe, fares, tell_ready)
    waiting = Waiting(f"Kafka at {settings.kafka.bootstrap}")

    def troubles() -> list[str]:
        return (
            ["it is stopping"] if stop.is_set() else list(filter(None, [fares.trouble]))
        )

    beating = asyncio.create_task(status.beat(troubles))
    try:
        while not stop.is_set():
            try:
                await adapter.session(stop)
            except (KafkaError, BrokerAway, PositionsHang) as error:
                fares.trouble = f"Kafka fails: {type(error).__name__}: {error}"
                waiting.say(error)
                # Many lose one server at once; they should not return at once.
                pause_s = RETRY_S * (1.0 + random.SystemRandom().random())
                await either(stop, timeout_s=pause_s)
            else:
                waiting.over()
    finally:
        beating.cancel()
        describe.close()
