"""Events to Kafka: sent when all of a request's are acknowledged, or not sent at all.

What is on its way goes on when nobody waits for it any more, and takes room until Kafka
has it. So an outage fills the room and then refuses; it never fills memory.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

from producers.connection import topics_command
from rankstream.operations.serving.limits import RECORD_BYTES, Room
from rankstream.operations.serving.problems import busy
from rankstream.settings import Settings
from rankstream.wire.topics import (
    BATCH_BYTES,
    CLICKS,
    MAX_EVENT_BYTES,
    QUERIES,
    full_name,
)
from streams.kafka.committed_reader import client_options

Headers = tuple[tuple[str, bytes], ...]

RETRY_S = 1.0
PROBE_EVERY_S = 5.0
PROBE_S = 3.0
STOP_S = 3.0
RETIRED_S = 120.0
"""How long what was given to a producer that failed may still arrive."""

SAY_EVERY_S = 60.0

RECORDS_AT_ONCE = 64
"""Given to the producer before others are looked at."""

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


class _Record(NamedTuple):
    """What a partition takes at once."""

    kind: str
    partition: int
    value: bytes
    headers: Headers


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
        room: Room,
        make: Callable[..., Any] = AIOKafkaProducer,
    ) -> None:
        self.sent = 0
        self.failed = 0
        self.trouble = NOT_USABLE
        self._settings = settings
        self._room = room
        self._make = make
        self._answer_s = settings.serve.answer_s
        self._n_partitions = settings.kafka.input_partitions
        self._names = {
            kind: full_name(settings.namespace, kind) for kind in (QUERIES, CLICKS)
        }
        self._producer: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._is_lost = asyncio.Event()
        self._said, self._said_s = "", float("-inf")

    async def start(self) -> None:
        """Connect, now or as soon as Kafka is there."""
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

    def begin(self, events: list[Outgoing]) -> asyncio.Task[None]:
        """Send without waiting.

        Raises
        ------
        Problem
            Where there is no room, or no Kafka: nothing was sent then.
        """
        records = [
            _Record(kind, self._partition_of(value), value, headers)
            for kind, value, headers in events
            if headers
        ]
        for kind in (QUERIES, CLICKS):
            values = [e.value for e in events if e.kind == kind and not e.headers]
            records += self._together(kind, values)
        return self._begin(records, len(events))

    def begin_values(self, kind: str, values: list[bytes]) -> asyncio.Task[None]:
        """The same of one kind of events, without headers.

        Raises
        ------
        Problem
        """
        return self._begin(list(self._together(kind, values)), len(values))

    def _begin(self, records: list[_Record], n_events: int) -> asyncio.Task[None]:
        producer = self._producer
        if producer is None:
            raise busy(f"Kafka must take events; {self.trouble}: ask again later")
        size = sum(len(record.value) + RECORD_BYTES for record in records)
        self._room.take(size)
        return self._started(self._deliver(producer, records, n_events, size))

    async def wait(self, task: asyncio.Task[None]) -> None:
        """Wait for what was begun, for `serve.answer_s`.

        Raises
        ------
        Problem
        """
        await _until_done(task, self._answer_s)
        if not task.done():
            raise busy(
                f"Kafka must have the events within {self._answer_s:g} s; it may or "
                "may not: send them again with the same ids",
                code="unanswered",
            )
        task.result()

    async def _deliver(
        self, producer: Any, records: list[_Record], n_events: int, size: int
    ) -> None:
        futures: list[asyncio.Future[Any]] = []
        try:
            for number, (kind, partition, value, headers) in enumerate(records, 1):
                if number % RECORDS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # to send waits only where a batch is full
                futures.append(
                    await producer.send(
                        self._names[kind],
                        value=value,
                        partition=partition,
                        headers=list(headers),
                    )
                )
            for future in futures:
                await future
        except (KafkaError, AssertionError) as error:
            self.failed += n_events
            self._say(f"event=not-taken for=kafka reason={error!r}")
            if not isinstance(error, KafkaTimeoutError | MessageSizeTooLargeError):
                # What failed leaves a gap in the producer's numbers: it sends no more.
                self._lose(producer)
            raise busy(
                "Kafka must take every event; it did not: send them again with the "
                "same ids",
                code="unanswered",
            ) from error
        finally:
            # Those behind a failure take room until they are decided too.
            if undecided := [each for each in futures if not each.done()]:
                await asyncio.wait(undecided)
            for future in futures:
                future.exception()
            self._room.give(size)
        self.sent += n_events

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

    def _together(self, kind: str, values: list[bytes]) -> Iterator[_Record]:
        """Events of a partition share a record, as those of `feed --batch` do."""
        if len(values) == 1:
            yield _Record(kind, self._partition_of(values[0]), values[0], ())
            return
        places: list[list[bytes]] = [[] for _ in range(self._n_partitions)]
        crc32, n_partitions = zlib.crc32, self._n_partitions
        for value in values:
            places[crc32(value) % n_partitions].append(value)
        for partition, of_place in enumerate(places):
            for record in joined(of_place):
                yield _Record(kind, partition, record, ())

    def _lose(self, producer: Any) -> None:
        if producer is self._producer:
            self._producer, self.trouble = None, REFUSES
            self._is_lost.set()

    async def _keep(self) -> None:
        """Have a producer that works, as far as Kafka is there."""
        while True:
            producer = await self._connected()
            self._is_lost.clear()
            self._producer, self.trouble = producer, ""
            self._say("event=kafka-reached")
            await self._probe(producer)
            self._started(_stopped(producer, RETIRED_S))

    async def _connected(self) -> Any:
        while True:
            producer = self._make(
                **client_options(self._settings.kafka),
                acks="all",
                enable_idempotence=True,
                max_batch_size=128 * 1024,
                max_request_size=MAX_EVENT_BYTES,
            )
            try:
                await producer.start()
                await self._check_topics(producer)
            except (KafkaError, OSError, ValueError) as error:
                self.trouble = NOT_USABLE
                self._say(f"event=waiting for=kafka reason={error}")
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


async def _until_done(task: asyncio.Task[None], within_s: float) -> None:
    """Wait for a task without cancelling it; as `asyncio.wait`, for less."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    timer = loop.call_later(within_s, wake)
    try:
        await waiter
    finally:
        timer.cancel()
        task.remove_done_callback(wake)


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
