"""What is committed while a run goes on, read as any consumer would."""

import contextlib
import threading
import time
from typing import Any

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from rankstream.settings import Settings
from rankstream.wire.events import Frontier, decode_event_record
from rankstream.wire.topics import EVENTS, INTERACTIONS, MAX_RECORD_BYTES, full_name
from streams.topology import STAGES, topics_of, written_topics
from tests.fire.in_process import Watermarks

FOLLOWED = [kind for kind in STAGES if kind.source in written_topics()]
"""Stages whose source is a log of ours."""

STATES = {kind.state_topics[0] for kind in FOLLOWED}
"""Where their resume positions lie."""


class Observer:
    """Follows the canonical log and the resume positions of stages, in a thread.

    Attributes
    ----------
    watermarks
        Of each partition of the log.
    n_events
        Committed in the log.
    positions
        Resume position by state topic and partition.
    longest_pause_s
        Longest time in which no position moved, between the first and the last.
    """

    def __init__(self, settings: Settings) -> None:
        kafka = settings.kafka
        self.watermarks = Watermarks(kafka.partitions)
        self.n_events = 0
        self.positions: dict[tuple[str, int], int] = {}
        self.longest_pause_s = 0.0
        self.failure: BaseException | None = None
        self._marked_s = 0.0
        self._last: dict[tuple[str, int], int] = {}
        self._moved_s = time.monotonic()
        self._stop = threading.Event()
        self._names = {
            full_name(settings.namespace, name): name
            for name in STATES.union(kind.source for kind in FOLLOWED)
        }
        counts = {topic.name: topic.partitions for topic in topics_of(kafka)}
        self._consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=MAX_RECORD_BYTES,
            fetch_max_wait_ms=100,
            reconnect_backoff_max_ms=1_000,
        )
        self._consumer.assign(
            [
                TopicPartition(full, p)
                for full, name in self._names.items()
                for p in range(counts[name])
            ]
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Follow no more."""
        self._stop.set()
        self._thread.join(60)
        with contextlib.suppress(KafkaError):
            self._consumer.close()

    def progress(self) -> int:
        """A number that grows while the worker folds: offsets of all its positions."""
        return sum(self.positions.values())

    @property
    def quiet_s(self) -> float:
        """Seconds since anything was committed."""
        return time.monotonic() - self._moved_s

    def is_drained(self, *, learned: bool = True) -> bool:
        """Whether every source has ended and all that it gave is folded."""
        topics = [
            (kind.source, kind.state_topics[0])
            for kind in FOLLOWED
            if learned or kind.source != INTERACTIONS
        ]
        return self.watermarks.is_ended() and all(
            self.positions.get((state, p), -1) >= offset
            for topic, state in topics
            for (name, p), offset in list(self._last.items())
            if name == topic
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                polled = self._consumer.poll(timeout_ms=100, max_records=2_000)
                for place, records in polled.items():
                    self._moved_s = time.monotonic()
                    for record in records:
                        self._take(self._names[place.topic], place.partition, record)
            except KafkaError:
                time.sleep(0.2)
            except BaseException as error:  # noqa: BLE001  the main thread must hear
                self.failure = error
                return

    def _take(self, name: str, partition: int, record: Any) -> None:
        if name in STATES:
            if record.key == b"marker" and record.value:
                _, offset, *_ = msgspec.msgpack.decode(record.value)
                self.positions[name, partition] = offset
                self._mark()
            return
        self._last[name, partition] = record.offset
        if name != EVENTS:
            return
        for element in decode_event_record(record.value).elements:
            if isinstance(element, Frontier):
                self.watermarks.take(partition, element)
            else:
                self.n_events += 1

    def _mark(self) -> None:
        now_s = time.monotonic()
        if self._marked_s:
            self.longest_pause_s = max(self.longest_pause_s, now_s - self._marked_s)
        self._marked_s = now_s
