"""Records of many requests on their way to Kafka, as batches that they share.

A partition has one batch on its way. What comes meanwhile lies in the next one, so that
the producer's work and the broker's answer are shared by all who wait, and the more so
the more there are.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes], ...]


class Record(NamedTuple):
    """What a partition of a topic takes at once."""

    topic: str
    partition: int
    value: bytes
    headers: Headers = ()


class Waiting:
    """Who waits for something, and hears once: that it is so, or that time is up."""

    __slots__ = ("tell",)

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell: Callable[[], None] | None = tell

    def end(self) -> None:
        """Tell, unless that was done."""
        tell, self.tell = self.tell, None
        if tell is not None:
            tell()


class Deadlines:
    """Ends all who wait after the same time, with one timer.

    Parameters
    ----------
    within_s
        How long each may wait.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._waiting: deque[tuple[float, Waiting]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiting: Waiting, loop: asyncio.AbstractEventLoop) -> None:
        """End this one in time."""
        while self._waiting and self._waiting[0][1].tell is None:
            self._waiting.popleft()
        self._waiting.append((loop.time() + self._within_s, waiting))
        if self._timer is None:
            self._timer = loop.call_later(self._within_s, self._look, loop)

    def close(self) -> None:
        """End nobody any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now_s = loop.time()
        while self._waiting:
            due_s, waiting = self._waiting[0]
            if waiting.tell is not None and due_s > now_s:
                self._timer = loop.call_at(due_s, self._look, loop)
                return
            self._waiting.popleft()
            waiting.end()


class Delivery:
    """The records of one request, until Kafka has all, or has refused one.

    Parameters
    ----------
    n_events, n_bytes
        Of the request, and the room that it takes.
    n_records
        In which the events lie, at least one.
    on_end
        Hears of the end before those who wait for it.

    Attributes
    ----------
    error
        Why Kafka has not all of them; None where it has, or none is known.
    """

    __slots__ = ("_n_left", "_on_end", "_waiting", "error", "n_bytes", "n_events")

    def __init__(
        self,
        n_events: int,
        n_bytes: int,
        n_records: int,
        on_end: "Callable[[Delivery], None]",
    ) -> None:
        self.n_events = n_events
        self.n_bytes = n_bytes
        self.error: BaseException | None = None
        self._n_left = n_records
        self._on_end = on_end
        self._waiting: list[Waiting] = []

    @property
    def is_decided(self) -> bool:
        """Whether no record is on its way any more."""
        return not self._n_left

    @property
    def has_failed(self) -> bool:
        """Whether that is so, and Kafka has not all."""
        return not self._n_left and self.error is not None

    def add(self, waiting: Waiting) -> None:
        """Tell this one once all are decided."""
        self._waiting.append(waiting)

    def decide(self, error: BaseException | None) -> None:
        """Hear of one record that Kafka has it, or why not."""
        self.error = self.error or error
        self._n_left -= 1
        if self._n_left:
            return
        self._on_end(self)
        for waiting in self._waiting:
            waiting.end()
        self._waiting.clear()


class _Batch(NamedTuple):
    """Records of a partition, and whose each of them is."""

    builder: Any
    deliveries: list[Delivery]


Start = Callable[[Coroutine[Any, Any, None]], object]


class Deliveries:
    """What producers are given, one after another.

    Parameters
    ----------
    start
        Starts a task that lives until it ends.
    on_failure
        Hears of each batch that Kafka did not take, and whose it was, before those who
        wait do.
    """

    def __init__(
        self, start: Start, on_failure: Callable[[Any, BaseException], None]
    ) -> None:
        self._start = start
        self._on_failure = on_failure
        self._producer: Any = None
        self._is_usable = asyncio.Event()
        self._batches: dict[tuple[str, int], deque[_Batch]] = {}

    def use(self, producer: Any) -> None:
        """Give what waits and what comes to this producer."""
        self._producer = producer
        self._is_usable.set()

    def pause(self) -> None:
        """Let all that the producer has not yet wait for the next one."""
        self._is_usable.clear()

    def add(self, record: Record, delivery: Delivery) -> None:
        """Put a record into its partition's next batch; a producer must have come."""
        topic, partition, value, headers = record
        batches = self._batches.get((topic, partition))
        if batches is None:
            self._batches[topic, partition] = batches = deque()
            self._start(self._carry(topic, partition, batches))
        if not batches or not _has_taken(batches[-1].builder, value, headers):
            batches.append(_Batch(self._producer.create_batch(), []))
            _has_taken(batches[-1].builder, value, headers)
        batches[-1].deliveries.append(delivery)

    async def _carry(self, topic: str, partition: int, batches: deque[_Batch]) -> None:
        """Send one batch after another until there is none."""
        while batches:
            deliveries: list[Delivery] = []
            error: BaseException | None = None
            producer = None
            try:
                await self._is_usable.wait()
                producer = self._producer
                builder, deliveries = batches.popleft()
                builder.close()
                await (await producer.send_batch(builder, topic, partition=partition))
            except Exception as why:  # noqa: BLE001  or nobody would hear any more
                error = why
                self._on_failure(producer, why)
            except asyncio.CancelledError as why:  # the server ends
                error = why
                for _, others in batches:
                    deliveries += others
                batches.clear()
            for delivery in deliveries:
                delivery.decide(error)
        del self._batches[topic, partition]


def _has_taken(
    builder: Any, value: bytes, headers: tuple[tuple[str, bytes], ...]
) -> bool:
    """Whether there was room: an empty batch takes any record."""
    taken = builder.append(timestamp=None, key=None, value=value, headers=list(headers))
    return taken is not None
