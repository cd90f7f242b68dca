"""Sends the events of a run, paced.

Where event time is not the clock's, never too far ahead of what is committed either.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer

from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, MAX_EVENT_BYTES, QUERIES, full_name
from tests.fire.events import DISORDER_MS, Event, Events
from tests.fire.live_events import LiveEvents
from tests.fire.observer import Observer

AHEAD_MS = 100_000
"""Event time that may be sent but not yet behind a committed frontier, besides the
disorder: with it, no stall of less than minutes can change a planned outcome."""

ON_ITS_WAY_MS = 150_000
"""An event may be so long between the sender and the log while a broker is away."""

END = (("rankstream", b"end"),)


class Sender:
    """A producer in a thread of its own.

    Attributes
    ----------
    n_sent
        Events that were given to the broker.
    gate
        No event beyond this number is sent, unless the events are live.

    Parameters
    ----------
    before_end
        Called before the sources are ended.
    """

    def __init__(
        self,
        events: Events,
        settings: Settings,
        observer: Observer,
        rate: float,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.n_sent = 0
        self.n_acknowledged = 0
        self.gate = 0
        self.is_done = False
        self.failure: BaseException | None = None
        self._events = events
        self._observer = observer
        self._rate = rate
        self._before_end = before_end
        self._is_live = isinstance(events, LiveEvents)
        self._is_past_the_last = False
        self._names = {
            topic: full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)
        }
        self._n_partitions = settings.kafka.input_partitions
        self._under_way: deque[tuple[Event, Any]] = deque()
        self._held: list[Event] = []
        self._stopped = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=settings.kafka.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=5,
            max_request_size=MAX_EVENT_BYTES,
            delivery_timeout_ms=3_600_000,
            reconnect_backoff_max_ms=1_000,
            allow_auto_create_topics=False,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def is_under_way(self) -> bool:
        """Whether events are still to come."""
        return not self._is_past_the_last

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._stopped.set()
        self._thread.join(10)
        if not self.is_done:
            # It would wait for a broker that is gone.
            self._producer._closed = True
        else:
            self._producer.close()

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:  # noqa: BLE001  the main thread must hear
            self.failure = error

    def _send_all(self) -> None:
        next_s = time.monotonic()
        for event in self._events:
            self._wait()
            next_s = max(next_s + 1 / self._rate, time.monotonic() - 0.5)
            self._stopped.wait(max(0.0, next_s - time.monotonic()))
            if self._stopped.is_set():
                return
            if self._is_due(event):
                self._send(event)
            else:
                self._held.append(event)
            if self.n_sent % 50 == 0:
                self._release()
                self._hear()
        self._finish()

    def _is_due(self, event: Event) -> bool:
        return event.not_before_ms <= self._observer.watermarks.of(
            event.partition_of_log
        )

    def _wait(self) -> None:
        """Wait where the gate is closed, or the pipeline is too far behind."""
        if self._is_live:
            return
        while not self._stopped.is_set():
            # Sources that have read too little speak of no time yet.
            spoken_ms = self._observer.watermarks.frontier_ms() or -1
            behind_ms = max(self._events.start_ms, spoken_ms)
            ahead_ms = self._events.now_ms - behind_ms - DISORDER_MS
            if self.n_sent < self.gate and ahead_ms < AHEAD_MS:
                return
            self._release()
            self._hear()
            time.sleep(0.05)

    def _release(self) -> None:
        held, self._held = self._held, []
        for event in held:
            if self._is_due(event):
                self._send(event)
            else:
                self._held.append(event)

    def _send(self, event: Event) -> None:
        # It waited for a pipeline that is minutes behind, and may wait for a broker
        # that is away: its outcome is not certain.
        if (
            self._is_live
            and self._events.time_ms() > event.not_after_ms - ON_ITS_WAY_MS
        ):
            return
        # Any partition will do: what belongs together meets behind ingestion.
        future = self._producer.send(
            self._names[event.topic],
            value=event.value,
            key=event.key,
            headers=list(event.headers),
            timestamp_ms=event.timestamp_ms,
            partition=self.n_sent * 7919 % self._n_partitions,
        )
        self._under_way.append((event, future))
        self.n_sent += 1

    def _hear(self) -> None:
        while self._under_way and self._under_way[0][1].is_done:
            event, future = self._under_way.popleft()
            metadata = future.get(0)
            self.n_acknowledged += 1
            if event.expect is not None:
                event.expect(metadata.partition, metadata.offset)

    def _finish(self) -> None:
        self._is_past_the_last = True
        while (self._held or self._under_way) and not self._stopped.is_set():
            self._release()
            self._hear()
            time.sleep(0.05)
        self._before_end()
        for topic in (QUERIES, CLICKS):
            for partition in range(self._n_partitions):
                self._producer.send(
                    self._names[topic],
                    value=b"",
                    headers=list(END),
                    partition=partition,
                ).get(120)
        self.is_done = not self._stopped.is_set()
