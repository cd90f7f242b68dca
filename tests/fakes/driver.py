"""Runs a schedule on Kafka or on the fake, and writes down what is seen.

The driver knows neither: it is given clients and an operator. Where a broker would be
free to answer in two ways, it does not ask: markers are all written before the next
step, a consumer has read everything before records are deleted, and no transaction is
open on a topic that is created again.
"""

import asyncio
import time
from typing import Any, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from tests.fakes.schedules import CONSUMERS, NAMES, TOPICS, Step

GROUP = "group"
POLLS_S = 300.0
AT_MS = time.time_ns() // 1_000_000
"""Of every record; a broker would soon delete older ones."""

PATIENT_MS = 900_000
"""The longest that brokers let a transaction be open: none is to end by itself."""

SHORT_MS = 5_000
"""The same of one that is to end by itself, but not before it was written to."""

Seen = list[Any]


class Operator(Protocol):
    """What is done to a cluster, but not by a client."""

    async def recreate(self, topic: str, n_partitions: int) -> None:
        """Delete a topic, and create it again."""

    async def delete_before(self, place: TopicPartition, offset: int) -> None:
        """Delete records."""

    async def settle(self, names: set[str]) -> None:
        """Wait until markers of all transactions that end are written."""

    async def expire(self, name: str) -> None:
        """Wait until an open transaction has timed out."""


class Driver:
    """Runs a schedule.

    Parameters
    ----------
    clients
        With `producer` and `consumer`, that take aiokafka's options.
    prefix
        Of topics, transactional ids and the group.
    """

    def __init__(self, clients: Any, operator: Operator, prefix: str) -> None:
        self._clients = clients
        self._operator = operator
        self._prefix = prefix
        self._producers: list[Any] = [None] * len(NAMES)
        self._plain: Any = None
        self._consumers: list[Any] = []
        self._auditors: list[Any] = []

    async def run(self, steps: list[Step]) -> list[Seen]:
        """What was seen at each step."""
        await self._open()
        try:
            return [await self._seen(step) for step in steps]
        finally:
            clients = self._plain, *self._producers, *self._consumers, *self._auditors
            for each in clients:
                if each is not None:
                    await each.stop()

    async def _open(self) -> None:
        self._plain = self._clients.producer(acks="all")
        await self._plain.start()
        for isolation in ("read_committed", "read_uncommitted"):
            options = {"isolation_level": isolation, "group_id": self._prefix + GROUP}
            auditor = await self._consumer(self._places(), "earliest", options)
            self._auditors.append(auditor)
        for topic, partition, isolation, reset in CONSUMERS:
            place = self._at((topic, partition))
            consumer = await self._consumer(
                [place], reset, {"isolation_level": isolation}
            )
            if reset == "none":
                consumer.seek(place, 0)
            await consumer.position(place)
            self._consumers.append(consumer)

    async def _consumer(
        self, places: list[TopicPartition], reset: str, options: dict[str, Any]
    ) -> Any:
        consumer = self._clients.consumer(
            enable_auto_commit=False, auto_offset_reset=reset, fetch_max_wait_ms=20,
            retry_backoff_ms=20, **options,
        )  # fmt: skip
        await consumer.start()
        consumer.assign(places)
        return consumer

    async def _seen(self, step: Step) -> Seen:
        kind, *arguments = step
        try:
            async with asyncio.timeout(2 * POLLS_S):
                seen = await getattr(self, f"_{kind}")(*arguments)
                await self._operator.settle(self._names())
        except Exception as error:  # noqa: BLE001  its class is what is seen
            await self._operator.settle(self._names())
            return [step, type(error).__name__]
        return [step, seen]

    # Producers.

    async def _start(self, slot: int, timeout_ms: int = PATIENT_MS) -> None:
        await self._stop(slot)
        producer = self._clients.producer(
            transactional_id=self._prefix + NAMES[slot], acks="all",
            retry_backoff_ms=20, transaction_timeout_ms=timeout_ms,
        )  # fmt: skip
        self._producers[slot] = producer
        await producer.start()

    async def _stop(self, slot: int) -> None:
        producer, self._producers[slot] = self._producers[slot], None
        if producer is not None:
            await producer.stop()

    async def _begin(self, slot: int) -> None:
        if self._producers[slot] is not None:
            await self._producers[slot].begin_transaction()

    async def _commit(self, slot: int) -> None:
        if self._producers[slot] is not None:
            await self._producers[slot].commit_transaction()

    async def _abort(self, slot: int) -> None:
        if self._producers[slot] is not None:
            await self._producers[slot].abort_transaction()

    async def _send(self, slot: int, records: list[Any]) -> list[Any]:
        producer = self._producers[slot]
        if producer is None:
            return []
        sent: list[Any] = []
        for place, *record in records:
            try:
                sent.append(await self._sent(producer, *place, *record))
            except Exception as error:  # noqa: BLE001  its class is what is seen
                return _until_fenced([*await _outcomes(sent), type(error).__name__])
        return _until_fenced(await _outcomes(sent))

    async def _write(self, place: tuple[str, int], record: Any) -> list[Any]:
        sent = await self._sent(self._plain, *place, *record)
        return await _outcomes([sent])

    async def _sent(
        self, producer: Any, topic: str, partition: int, *record: Any
    ) -> Any:
        key, value, headers = record
        return await producer.send(
            self._prefix + topic, value, key, partition, AT_MS, headers
        )

    async def _batch(
        self, slot: int, place: tuple[str, int], records: list[Any]
    ) -> list[Any]:
        producer = self._producers[slot]
        if producer is None:
            return []
        batch = producer.create_batch()
        for key, value, headers in records:
            batch.append(timestamp=AT_MS, key=key, value=value, headers=headers)
        batch.close()
        topic, partition = self._at(place)
        sent = await producer.send_batch(batch, topic, partition=partition)
        return await _outcomes([sent])

    async def _offsets(self, slot: int, place: tuple[str, int], offset: int) -> None:
        if self._producers[slot] is not None:
            await self._producers[slot].send_offsets_to_transaction(
                {self._at(place): offset}, self._prefix + GROUP
            )

    async def _expire(self, slot: int) -> Seen:
        """A transaction that times out; what its producer and others see then."""
        await self._start(slot, timeout_ms=SHORT_MS)
        await self._begin(slot)
        sent = await self._send(slot, [(("one", 0), b"k", b"v", [])])
        await self._operator.expire(self._prefix + NAMES[slot])
        again = await self._send(slot, [(("one", 0), b"k", b"w", [])])
        try:
            await self._commit(slot)
        except Exception as error:  # noqa: BLE001  its class is what is seen
            return [sent, again, type(error).__name__]
        return [sent, again, None]

    # Consumers.

    async def _read(self) -> Seen:
        """Everything, as both isolations see it."""
        return [await self._read_again(each) for each in self._auditors]

    async def _read_again(self, auditor: Any) -> Seen:
        firsts = await auditor.beginning_offsets(self._places())
        for place, first in firsts.items():
            auditor.seek(place, first)
        return [self._plainly(firsts), *await self._polled(auditor)]

    async def _ends(self, consumer: Any) -> dict[TopicPartition, int]:
        """The end of each partition, but never before its beginning."""
        places = sorted(consumer.assignment())
        ends = await consumer.end_offsets(places)
        firsts = await consumer.beginning_offsets(places)
        return {place: max(ends[place], firsts[place]) for place in places}

    async def _look(self) -> Seen:
        committed, _ = self._auditors
        found = [self._plainly(await self._ends(each)) for each in self._auditors]
        offsets = {place: await committed.committed(place) for place in self._places()}
        counts = {
            topic: sorted(committed.partitions_for_topic(self._prefix + topic) or ())
            for topic in TOPICS
        }
        return [*found, self._plainly(offsets), counts]

    async def _seek(self, number: int, offset: int) -> Seen:
        consumer = self._consumers[number]
        (place,) = consumer.assignment()
        consumer.seek(place, offset)
        return await self._polled(consumer)

    async def _poll(self, number: int, _: int) -> Seen:
        return await self._polled(self._consumers[number])

    async def _polled(self, consumer: Any) -> Seen:
        """Read on to the end: records, positions, and ends as the fetches told them."""
        places = sorted(consumer.assignment())
        errors: list[str] = []
        records: dict[TopicPartition, list[Any]] = {place: [] for place in places}
        async with asyncio.timeout(POLLS_S):
            while True:
                try:
                    fetched = await consumer.getmany(timeout_ms=20)
                except KafkaError as error:
                    errors.append(type(error).__name__)
                    firsts = await consumer.beginning_offsets(places)
                    for place, first in firsts.items():
                        consumer.seek(place, first)
                    continue
                for place, some in fetched.items():
                    records[place] += map(_told, some)
                ends = await self._ends(consumer)
                positions = {place: await consumer.position(place) for place in places}
                if positions == ends:
                    break
        return [errors, self._plainly(records), self._plainly(ends)]

    # Operators.

    async def _delete(self, place: tuple[str, int], share: float) -> Seen:
        before = await self._all_polled()
        at = self._at(place)
        firsts = await self._auditors[1].beginning_offsets([at])
        ends = await self._auditors[1].end_offsets([at])
        offset = firsts[at] + round(share * (ends[at] - firsts[at]))
        await self._operator.delete_before(at, offset)
        return [before, offset, await self._all_polled()]

    async def _recreate(self, topic: str) -> Seen:
        before = await self._all_polled()
        await self._stop(2)
        for slot in (0, 1):
            await self._start(slot)
        await self._operator.settle(self._names())
        after = await self._all_polled()
        await self._operator.recreate(self._prefix + topic, TOPICS[topic])
        return [before, after, await self._all_polled()]

    async def _all_polled(self) -> list[Seen]:
        return [await self._polled(each) for each in self._consumers]

    # Names.

    def _names(self) -> set[str]:
        return {self._prefix + name for name in NAMES}

    def _at(self, place: tuple[str, int]) -> TopicPartition:
        topic, partition = place
        return TopicPartition(self._prefix + topic, partition)

    def _places(self) -> list[TopicPartition]:
        return [
            self._at((topic, partition))
            for topic, n_partitions in TOPICS.items()
            for partition in range(n_partitions)
        ]

    def _plainly(self, by_place: dict[TopicPartition, Any]) -> dict[str, Any]:
        return {
            f"{place.topic.removeprefix(self._prefix)}[{place.partition}]": each
            for place, each in sorted(by_place.items())
        }


def _until_fenced(outcomes: list[Any]) -> list[Any]:
    """When a client hears that it is fenced decides how later records fail."""
    fenced = "ProducerFenced"
    return outcomes[: outcomes.index(fenced) + 1] if fenced in outcomes else outcomes


async def _outcomes(sent: list[Any]) -> list[Any]:
    found: list[Any] = await asyncio.gather(*sent, return_exceptions=True)
    return [
        type(each).__name__ if isinstance(each, BaseException) else each.offset
        for each in found
    ]


def _told(record: Any) -> tuple[Any, ...]:
    return (
        record.offset, record.key, record.value, tuple(record.headers),
        record.timestamp,
    )  # fmt: skip
