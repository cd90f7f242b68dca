"""Events to the input topics: an event counts as sent when the broker has it.

Idempotent, with acks=all. What is under way is bounded here, because the client
bounds nothing. The partition of an event depends on its bytes alone, so that events
that are sent again reach the partition that may hold them already.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from producers.brokers.broker_rights import why_denied
from producers.brokers.connection import client_options
from producers.event_sink import EventTooLarge, SentRecords
from producers.readiness import Waiting
from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.wire.rights import TOPIC, WRITE, Right
from rankstream.wire.routing import partition_of_input
from rankstream.wire.topics import (
    BATCH_BYTES,
    CLICKS,
    MAX_EVENT_BYTES,
    MAX_RECORD_BYTES,
    QUERIES,
    full_name,
)

END_HEADER = ("rankstream", b"end")
"""Marks the empty record that ends a partition of the input topics."""

ROOM_BYTES = 1_024
"""What a record takes beyond key, value and headers, and never more."""

MAX_BYTES_UNDER_WAY = 32 << 20
MAX_RECORDS_UNDER_WAY = 20_000

PATIENCE_S = 5.0
"""How long to wait for the broker before saying so."""

GIVE_UP_MS = 86_400_000
"""The client keeps trying to deliver for so long."""

ANSWER_S = 30.0
"""How long the broker may take for a record that is waited for."""

Headers = tuple[tuple[str, bytes], ...]


class SendFailed(RuntimeError):
    """The cluster did not take a record, for good.

    Operator action: see the reason, then go on with `--resume`.
    """


class _Batch:
    """Events that will share a record."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.values: list[bytes] = []
        self.n_bytes = 2


class _UnderWay(NamedTuple):
    """A record that is not acknowledged yet: its events, bytes and first event."""

    kind: str
    future: Any
    n_events: int
    n_bytes: int
    first: int


class EventProducer:
    """Sends events; a context manager that flushes at its end.

    Parameters
    ----------
    batch
        Events of a partition that share a record; 1 is a record each.
    is_stopped
        Whether the user wants to stop: waits for a broker end then.

    Attributes
    ----------
    taken
        Events that were given to `send`, those refused included.
    acknowledged
        Events that the broker has for certain.
    refused
        Events that were too large.
    sent
        Where the records are that the broker has.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        batch: int = 1,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        if batch < 1:
            raise ValueError(f"batch must be at least 1; got {batch}")
        self.taken = 0
        self.acknowledged = 0
        self.refused = 0
        self.sent = SentRecords()
        self._waiting = Waiting()
        self._is_stopped = is_stopped
        self._settings = settings
        self._n_partitions = settings.kafka.input_partitions
        self._batch = batch
        self._names = {
            kind: full_name(settings.namespace, kind) for kind in (QUERIES, CLICKS)
        }
        self._open: dict[tuple[str, int], _Batch] = {}
        self._under_way: deque[_UnderWay] = deque()
        self._bytes_under_way = 0
        self._client = self._connected(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def send(
        self, kind: str, value: bytes, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Take an event for `queries` or `clicks`; it may be under way for a while.

        Events with a key or headers have a record of their own.

        Raises
        ------
        EventTooLarge
            The event was not sent; others may be.
        SendFailed
            An earlier record failed for good.
        """
        number = self.taken
        self.taken += 1
        added = sum(len(name) + len(content or b"") + 8 for name, content in headers)
        if len(key or b"") + len(value) + added + ROOM_BYTES > MAX_EVENT_BYTES:
            self.refused += 1
            raise EventTooLarge(
                f"an event must fit {MAX_EVENT_BYTES - ROOM_BYTES} bytes; "
                f"got {len(value)}"
            )
        partition = partition_of_input(key, value, self._n_partitions)
        if self._batch > 1 and key is None and not headers:
            self._gather(kind, partition, value, number)
        else:
            self._produce(kind, partition, value, number, key=key, headers=headers)

    def send_raw(self, kind: str, value: bytes) -> None:
        """Take bytes that may be no JSON: a record of their own, never a batch."""
        batch, self._batch = self._batch, 1
        try:
            self.send(kind, value)
        finally:
            self._batch = batch

    def settled(self) -> int:
        """How many events from the first on are acknowledged or refused, without a gap.

        To send a sequence again from there on loses nothing of it.
        """
        self._collect()
        firsts = [batch.first for batch in self._open.values()]
        firsts += [each.first for each in self._under_way]
        return min(firsts, default=self.taken)

    def unanswered(self) -> int:
        """How many events are under way: the broker may have them, or not."""
        self._collect()
        return sum(each.n_events for each in self._under_way)

    def nudge(self) -> None:
        """Send what is gathered without waiting, and take the answers that are there.

        Raises
        ------
        SendFailed
            An earlier record failed for good.
        """
        for place in list(self._open):
            self._close_batch(place)
        self._reap()

    def flush(self, timeout_s: float | None = None) -> None:
        """Send what is gathered and wait until the broker has it, or the time is up.

        Raises
        ------
        SendFailed
            A record failed for good.
        """
        for place in list(self._open):
            self._close_batch(place)
        ends_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._under_way and (left_s := ends_s - time.monotonic()) > 0:
            self._wait_for_oldest(min(left_s, PATIENCE_S))

    def end(self) -> None:
        """Say on every partition of the input topics that nothing more comes."""
        self.flush()
        for kind in (QUERIES, CLICKS):
            for partition in range(self._n_partitions):
                future = self._client.send(
                    self._names[kind],
                    value=b"",
                    headers=[END_HEADER],
                    partition=partition,
                )
                self._under_way.append(_UnderWay(kind, future, 0, 0, self.taken))
        self.flush()

    def close(self, timeout_s: float = 2.0) -> None:
        """Close the client; what is not acknowledged by then is given up."""
        _close(self._client, timeout_s)

    def _connected(self, settings: Settings) -> KafkaProducer:
        with TopicReader(
            settings, waiting=self._waiting, is_stopped=self._is_stopped
        ) as reader:
            reader.check_topics(
                {QUERIES: self._n_partitions, CLICKS: self._n_partitions}
            )
        options = client_options(settings.kafka) | {
            "enable_idempotence": True,
            "acks": "all",
            "linger_ms": 20,
            "batch_size": 128 * 1024,
            "max_request_size": MAX_EVENT_BYTES,
            "delivery_timeout_ms": GIVE_UP_MS,
            "reconnect_backoff_max_ms": 2_000,
            "allow_auto_create_topics": False,
        }
        try:
            return KafkaProducer(**options)
        except KafkaError as error:
            raise SendFailed(f"Kafka must let us write; {error}") from error

    def _gather(self, kind: str, partition: int, value: bytes, number: int) -> None:
        place = (kind, partition)
        batch = self._open.get(place)
        if batch is not None and batch.n_bytes + len(value) > BATCH_BYTES:
            self._close_batch(place)
            batch = None
        if batch is None:
            batch = self._open[place] = _Batch(number)
        batch.values.append(value)
        batch.n_bytes += len(value) + 1
        if len(batch.values) >= self._batch:
            self._close_batch(place)

    def _close_batch(self, place: tuple[str, int]) -> None:
        batch = self._open.pop(place)
        values = batch.values
        joined = values[0] if len(values) == 1 else b"[" + b",".join(values) + b"]"
        self._produce(*place, joined, batch.first, n_events=len(values))

    def _produce(  # noqa: PLR0913  a record has so many parts
        self,
        kind: str,
        partition: int,
        value: bytes,
        first: int,
        *,
        n_events: int = 1,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> None:
        self._make_room(len(value))
        try:
            future = self._client.send(
                self._names[kind],
                value=value,
                key=key,
                headers=list(headers),
                partition=partition,
            )
        except KafkaError as error:
            raise self._failure(kind, error) from error
        self._under_way.append(_UnderWay(kind, future, n_events, len(value), first))
        self._bytes_under_way += len(value)

    def _make_room(self, n_bytes: int) -> None:
        while self._under_way and (
            self._bytes_under_way + n_bytes > MAX_BYTES_UNDER_WAY
            or len(self._under_way) >= MAX_RECORDS_UNDER_WAY
        ):
            self._reap()
            if self._is_stopped():
                return
            self._wait_for_oldest()

    def _wait_for_oldest(self, patience_s: float = PATIENCE_S) -> None:
        if self._under_way and not self._under_way[0].future.is_done:
            try:
                self._under_way[0].future.get(timeout=patience_s)
            except KafkaError:
                if not self._under_way[0].future.is_done:
                    self._waiting.waits(
                        f"Kafka at {self._settings.kafka.bootstrap} to take "
                        f"{self.unanswered():,} events"
                    )
        self._reap()

    def _reap(self) -> None:
        self._collect()
        if self._under_way and self._under_way[0].future.failed():
            first = self._under_way[0]
            raise self._failure(first.kind, first.future.exception)

    def _collect(self) -> None:
        """Count what is acknowledged, up to the first record that is not."""
        under_way = self._under_way
        while under_way and under_way[0].future.succeeded():
            done = under_way.popleft()
            self._bytes_under_way -= done.n_bytes
            self.acknowledged += done.n_events
            self.sent.add(done.kind, done.future.value)
            self._waiting.over()

    def _failure(self, kind: str, error: object) -> SendFailed:
        right = Right(TOPIC, self._names[kind], WRITE)
        return SendFailed(
            f"Kafka must take every record; {error!r} after {self.acknowledged:,} "
            f"acknowledged events; at {self._settings.kafka.bootstrap}"
            f"{why_denied(error, self._settings, right)}"
        )


def send_records(
    settings: Settings, topic: str, records: Iterable[tuple[bytes, bytes | None]]
) -> None:
    """Keys and values to a topic of one partition, in order, each acknowledged.

    Without a value the key leaves a topic that is compacted.

    Raises
    ------
    SendFailed
    """
    options = client_options(settings.kafka) | {
        "enable_idempotence": True,
        "acks": "all",
        "max_request_size": MAX_RECORD_BYTES,
    }
    name = full_name(settings.namespace, topic)
    try:
        client = KafkaProducer(**options)
        try:
            for key, value in records:
                sent = client.send(name, value, key=key, partition=0)
                sent.get(timeout=ANSWER_S)
        finally:
            _close(client, 2.0)
    except KafkaError as error:
        why = why_denied(error, settings, Right(TOPIC, name, WRITE))
        raise SendFailed(
            f"Kafka must take the record at {settings.kafka.bootstrap}; {error}{why}"
        ) from error


def _close(client: KafkaProducer, timeout_s: float) -> None:
    """Close it and end its thread, though records wait for a broker that is away."""
    try:
        client.close(timeout=timeout_s)
    except KafkaTimeoutError:
        # There is no public way: the thread would look for the broker for as long as we
        # live, and the client would be closed once more at our exit.
        client._sender.force_close()  # noqa: SLF001
        client._sender.join(timeout_s)  # noqa: SLF001
        client._closed = True  # noqa: SLF001
