"""Faust's transport, with two differences: where reading starts, and what is read.

Reading starts where the checkpoints say, whatever the consumer group committed, and
sees committed records only. A third difference saves most of Faust's cost per record:
a callback that does not wait is not made a task.
"""

import inspect
import types
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, ClassVar

import aiokafka
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.services import WaitResults

from rankstream.topics import MAX_RECORD_BYTES, MIB

Opener = Callable[[Mapping[TP, int | None]], Awaitable[dict[TP, int]]]
"""Takes what the group committed for each partition, gives where to start."""


class CommittedReadsThread(driver.AIOKafkaConsumerThread):
    """The consumer's thread; reads committed records."""

    def _create_worker_consumer(
        self, transport: driver.Transport
    ) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        # Faust gives no setting for these; the consumer has not started yet.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        consumer._max_partition_fetch_bytes = MAX_RECORD_BYTES + MIB  # noqa: SLF001
        consumer._fetch_max_wait_ms = 100  # noqa: SLF001  a stage waits for the last
        return consumer


class Consumer(driver.Consumer):
    """Asks the application where each partition starts."""

    def _new_consumer_thread(self) -> CommittedReadsThread:
        return CommittedReadsThread(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Open the partitions, and go where they say."""
        committed = await super().seek_to_committed()
        opener: Opener = self.app.open_partitions  # type: ignore[attr-defined]
        known = {TP(tp.topic, tp.partition): at for tp, at in committed.items()}
        starts = await opener(known)
        if starts:
            await self._thread.seek_wait(starts)
        return starts

    async def wait_first(self, *coros: Any, timeout: Any = None) -> WaitResults:
        """As Faust's, but steps the first coroutine before it makes tasks of all."""
        first = coros[0]
        if not inspect.iscoroutine(first):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            pending = first.send(None)
        except StopIteration as done:
            for other in coros[1:]:
                if inspect.iscoroutine(other):
                    other.close()
            return WaitResults([first], [done.value], False)
        rest = _resumed(first, pending)
        return await super().wait_first(
            _as_coroutine(rest), *coros[1:], timeout=timeout
        )


async def _as_coroutine(rest: Awaitable[Any]) -> Any:
    return await rest


@types.coroutine
def _resumed(coroutine: Any, pending: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that was stepped once."""
    while True:
        try:
            sent = yield pending
        except BaseException as error:  # noqa: BLE001  whatever comes goes in
            step = coroutine.throw, error
        else:
            step = coroutine.send, sent
        try:
            pending = step[0](step[1])
        except StopIteration as done:
            return done.value


class Transport(driver.Transport):
    """Kafka as stages need it."""

    Consumer: ClassVar[Any] = Consumer
