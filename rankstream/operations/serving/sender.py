"""Events to Kafka: sent when all of a request's are acknowledged, or not sent at all.

What is on its way goes on when nobody waits for it any more, and takes room until Kafka
has it. So an outage fills the room and then refuses; it never fills memory.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from producers.brokers.connection import topics_command
from rankstream.operations.serving.deliveries import (
    Deadlines,
    Deliveries,
    Delivery,
    Headers,
    Record,
    Waiting,
)
from rankstream.operations.serving.http.limits import RECORD_BYTES, InFlight
from rankstream.operations.serving.problems import Problem, busy
from rankstream.settings import Settings
from rankstream.wire.topics import (
    BATCH_BYTES,
    CLICKS,
    QUERIES,
    full_name,
)
from streams.kafka.committed_reader import client_options

RETRY_S = 1.0
PROBE_EVERY_S = 5.0
PROBE_S = 3.0
STOP_S = 3.0
RETIRED_S = 120.0
"""How long what was given to a producer that failed may still arrive."""

SAY_EVERY_S = 60.0

RECORDS_AT_ONCE = 64
"""Put into batches before others are looked at."""

NOT_USABLE = "it cannot be used; the log of the server says why"
SILENT = "it does not answer"
REFUSES = "it refused a record"
"""What anybody may hear of trouble: no address, no name of a topic, no command."""

log = logging.getLogger("rankstream.serve")


class Outgoing(NamedTuple):
    """An event on its way: `queries` or `clicks`, its JSON, and headers."""

    kind: str
    value: bytes
    headers: Headers = ()


class Sender:
    """One idempotent producer, replaced when it fails.

    Parameters
    ----------
    room
        Where records take room until Kafka has them.
    make
        Makes a producer; aiokafka's unless a test has another.

    Attributes
    ----------
    sent
        Events that Kafka has for certain.
    failed
        Events of which Kafka said, or did not say in time, that it has them.
    trouble
        Why nothing can be sent, for anybody to hear; empty where it can.
    """

    def __init__(
        self,
        settings: Settings,
        room: InFlight,
        make: Callable[..., Any] = AIOKafkaProducer,
    ) -> None:
        self.sent = 0
        self.failed = 0
        self.trouble = NOT_USABLE
        self._settings = settings
        self._room = room
        self._make = make
        self._answer_s = settings.serve.answer_s
        self._deadlines = Deadlines(settings.serve.answer_s)
        self._n_partitions = settings.kafka.input_partitions
        self._names = {
            kind: full_name(settings.namespace, kind) for kind in (QUERIES, CLICKS)
        }
        self._producer: Any = None
        self._deliveries = Deliveries(self._started, self._lose)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._is_lost = asyncio.Event()
        self._said, self._said_s = "", float("-inf")

    async def start(self) -> None:
        """Connect, now or as soon as Kafka is there."""
        self._loop = asyncio.get_running_loop()
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Let what is under way arrive for a moment, then disconnect."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        producer, self._producer = self._producer, None
        if producer is not None:
            await _stopped(producer, STOP_S)
        self._deadlines.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def send(self, events: list[Outgoing]) -> None:
        """Return once Kafka has all of them.

        Raises
        ------
        Problem
            Where it does not: some of them may still arrive, so ask again with the same
            ids.
        """
        await self.wait(self.begin(events))

    def begin(self, events: list[Outgoing]) -> Delivery:
        """Send without waiting.

        Raises
        ------
        Problem
            Where there is no room, or no Kafka: nothing was sent then.
        """
        records = [
            self._record(kind, value, headers)
            for kind, value, headers in events
            if headers
        ]
        for kind in (QUERIES, CLICKS):
            values = [e.value for e in events if e.kind == kind and not e.headers]
            records += self._together(kind, values)
        return self._begin(records, len(events))

    def begin_records(self, kind: str, values: list[bytes], n_events: int) -> Delivery:
        """The same of events of one kind that lie in records already.

        Each record goes where its bytes say. Which partition an event lies in does not
        matter: its identity is looked for in the canonical log, by its list.

        Raises
        ------
        Problem
        """
        return self._begin([self._record(kind, value) for value in values], n_events)

    def _begin(self, records: list[Record], n_events: int) -> Delivery:
        deliveries = self._deliveries
        if self._producer is None:
            raise busy(f"Kafka must take events; {self.trouble}: ask again later")
        size = sum(len(record.value) + RECORD_BYTES for record in records)
        self._room.take(size)
        delivery = Delivery(n_events, size, len(records), self._end)
        if len(records) > RECORDS_AT_ONCE:
            self._started(_given(deliveries, records, delivery))
        else:
            for record in records:
                deliveries.add(record, delivery)
        return delivery

    async def wait(self, delivery: Delivery) -> None:
        """Wait for what was begun, for `serve.answer_s`.

        Raises
        ------
        Problem
        """
        if not delivery.is_decided:
            waiter = self._loop.create_future()
            self.tell(delivery, partial(_wake, waiter))
            await waiter
        if problem := self.problem_of(delivery):
            raise problem

    def tell(self, delivery: Delivery, hear: Callable[[], None]) -> None:
        """The same without a task: call this once, when the wait is over."""
        waiting = Waiting(hear)
        delivery.add(waiting)
        self._deadlines.add(waiting, self._loop)

    def problem_of(self, delivery: Delivery) -> Problem | None:
        """What to answer who has waited; None where Kafka has all events."""
        if not delivery.is_decided:
            return busy(
                f"Kafka must have the events within {self._answer_s:g} s; it may or "
                "may not: send them again with the same ids",
                code="unanswered",
            )
        if delivery.error is not None:
            return busy(
                "Kafka must take every event; it did not: send them again with the "
                "same ids",
                code="unanswered",
            )
        return None

    def _end(self, delivery: Delivery) -> None:
        self._room.give(delivery.n_bytes)
        if delivery.error is None:
            self.sent += delivery.n_events
        else:
            self.failed += delivery.n_events

    def _started(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more

    def _partition_of(self, value: bytes) -> int:
        """As `producers.event_producer` has it: by the event's bytes alone."""
        return zlib.crc32(value) % self._n_partitions

    def _record(self, kind: str, value: bytes, headers: Headers = ()) -> Record:
        return Record(self._names[kind], self._partition_of(value), value, headers)

    def _together(self, kind: str, values: list[bytes]) -> Iterator[Record]:
        """Events of a partition share a record, as those of `feed --batch` do."""
        if len(values) == 1:
            yield self._record(kind, values[0])
            return
        places: list[list[bytes]] = [[] for _ in range(self._n_partitions)]
        crc32, n_partitions = zlib.crc32, self._n_partitions
        for value in values:
            places[crc32(value) % n_partitions].append(value)
        for partition, of_place in enumerate(places):
            for record in joined(of_place):
                yield Record(self._names[kind], partition, record)

    def _lose(self, producer: Any, error: BaseException) -> None:
        """Use it no more: what failed leaves a gap in its numbers."""
        self._say(f"event=not-taken for=kafka reason={error!r}{_granting(error)}")
        if producer is self._producer:
            self._producer, self.trouble = None, REFUSES
            self._deliveries.pause()
            self._is_lost.set()

    async def _keep(self) -> None:
        """Have a producer that works, as far as Kafka is there."""
        while True:
            producer = await self._connected()
            self._is_lost.clear()
            self._producer, self.trouble = producer, ""
            self._deliveries.use(producer)
            self._say("event=kafka-reached")
            await self._probe(producer)
            self._started(_stopped(producer, RETIRED_S))

    async def _connected(self) -> Any:
        while True:
            producer = self._make(
                **client_options(self._settings.kafka),
                acks="all",
                enable_idempotence=True,
                max_batch_size=BATCH_BYTES,
            )
            try:
                await producer.start()
                await self._check_topics(producer)
            except (KafkaError, OSError, ValueError) as error:
                self.trouble = NOT_USABLE
                why = f"{type(error).__name__}: {error}{_granting(error)}"
                self._say(f"event=waiting for=kafka reason={why}")
                await _stopped(producer, STOP_S)
            except BaseException:  # the wait was cancelled
                await _stopped(producer, STOP_S)
                raise
            else:
                return producer
            await asyncio.sleep(RETRY_S)

    async def _check_topics(self, producer: Any) -> None:
        for name in self._names.values():
            found = len(await producer.partitions_for(name))
            if found != self._n_partitions:
                command = topics_command(self._settings, "check")
                raise ValueError(
                    f"{name} must have the {self._n_partitions} partitions of the "
                    f"settings; got {found}: run `{command}`"
                )

    async def _probe(self, producer: Any) -> None:
        """Ask Kafka now and then whether it is there, until the producer is lost."""
        while not self._is_lost.is_set():
            try:
                await asyncio.wait_for(self._is_lost.wait(), PROBE_EVERY_S)
            except TimeoutError:
                asked = producer.client.force_metadata_update()
                done, _ = await asyncio.wait((asked,), timeout=PROBE_S)
                is_there = bool(done) and not asked.exception() and asked.result()
                if not self._is_lost.is_set():
                    self.trouble = "" if is_there else SILENT

    def _say(self, line: str) -> None:
        now_s = time.monotonic()
        if line != self._said or now_s - self._said_s > SAY_EVERY_S:
            self._said, self._said_s = line, now_s
            log.info(line)


def _granting(error: BaseException) -> str:
    """What grants what a broker denied; the client's error names the topic."""
    is_denied = "AuthorizationFailedError" in f"{error!r}"
    return ": run `rankstream topics acls --role serve`" if is_denied else ""


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _given(
    deliveries: Deliveries, records: list[Record], delivery: Delivery
) -> None:
    for number, record in enumerate(records, 1):
        if number % RECORDS_AT_ONCE == 0:
            await asyncio.sleep(0)
        deliveries.add(record, delivery)


async def _stopped(producer: Any, within_s: float) -> None:
    stopping = asyncio.ensure_future(producer.stop())
    done, _ = await asyncio.wait((stopping,), timeout=within_s)
    if not done:
        stopping.cancel()
        await asyncio.wait((stopping,))
        await producer.client.close()


def joined(values: list[bytes]) -> Iterator[bytes]:
    """Records of one event, or of an array of them up to the size of a batch."""
    if values and sum(map(len, values)) + len(values) < BATCH_BYTES:
        yield _record_of(values)
        return
    together: list[bytes] = []
    size = 2
    for value in values:
        if together and size + len(value) > BATCH_BYTES:
            yield _record_of(together)
            together, size = [], 2
        together.append(value)
        size += len(value) + 1
    if together:
        yield _record_of(together)


def _record_of(values: list[bytes]) -> bytes:
    return values[0] if len(values) == 1 else b"[" + b",".join(values) + b"]"
