"""Ingestion: records of `queries` and `clicks` into the canonical log.

It knows no clock: the broker says when it appended a record. Its state is small and
written whole at every commit: how far its source is in time, and the sequence numbers
of what it wrote.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from rankstream.settings import Settings
from rankstream.wire.bounds import carried_bytes
from rankstream.wire.events import SCHEMA, Element, Frontier, encode_record
from rankstream.wire.input_events import refusal_in
from rankstream.wire.refusal_codes import Code
from rankstream.wire.routing import partition_of_route
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import (
    BATCH_BYTES,
    EVENTS,
    QUERIES,
    state_topic,
)
from streams.dead_letter import Origin, dead_letter
from streams.event_time import SourceClock
from streams.ingest.elements import elements_of
from streams.ingest.exclusion import Exclusion
from streams.ingest.refusal import Refused
from streams.ingest.validation import (
    Accepted,
    EventValidator,
)
from streams.stage import Change, Output, SourceRecord

END_HEADER = ("rankstream", b"end")
"""Marks the empty record that ends a source."""

STEPS = 2_048
"""Frontiers that all sources together write during a click window where no events go,
to each partition. So what that costs grows with partitions, not with their square."""

LONGEST_STEP = 1 / 16
"""Of a click window: so far at most is what a partition knows behind a frontier."""

Written = tuple[int, int] | None
"""A frontier as it was last written somewhere."""

_encode = msgspec.msgpack.Encoder().encode


class Ingest:
    """One partition of `queries` or `clicks`.

    Parameters
    ----------
    topic
        `queries` or `clicks`.
    partition
        Which of its partitions.
    """

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        time = settings.time
        n_inputs = settings.kafka.input_partitions
        self._topic = topic
        self._partition = partition
        self._source = partition if topic == QUERIES else n_inputs + partition
        self._n_sources = 2 * n_inputs
        self._n_partitions = settings.kafka.partitions
        self._state_topic = state_topic(f"ingest-{topic}")
        self._exclusion = Exclusion(settings.exclude)
        self._validator = EventValidator(
            max_documents=settings.limits.documents,
            ahead_ms=time.ahead_ms,
            exclusion=self._exclusion,
            segment=settings.ingestion.segment,
        )
        self._clock = SourceClock(
            disorder_ms=time.disorder_ms,
            step_ms=max(2 * time.disorder_ms, time.click_window_ms // 2),
            idle_ms=time.idle_ms,
            closing_ms=time.click_window_ms + time.disorder_ms + 1,
        )
        self._step_ms = time.click_window_ms * min(
            self._n_sources / STEPS, LONGEST_STEP
        )
        self._sequences = [0] * self._n_partitions
        self._written: list[Written] = [None] * self._n_partitions
        self._batches: list[list[Element]] = [[] for _ in range(self._n_partitions)]
        self._sizes = [0] * self._n_partitions
        self._outputs: list[Output] = []
        self._counts = {"consumed": 0, "passed": 0, "dead_letter": 0}

    def fold(self, record: SourceRecord) -> None:
        """Validate, normalise and route every event of a record."""
        if not record.value and END_HEADER in record.headers:
            self._clock.end()
            return
        words = refusal_in(record.headers)
        if words is not None:
            self._bury(record, record.value, 0, Refused(Code.NOT_ADAPTED, words))
            self._clock.hear(record.timestamp_ms)
            return
        try:
            carried = carried_bytes(record.key, record.headers)
            elements = elements_of(record.value or b"", carried)
        except Refused as refusal:
            self._bury(record, record.value, 0, refusal)
            self._clock.hear(record.timestamp_ms)
            return
        for index, raw in enumerate(elements):
            self._take(record, raw, index)

    def tick(self, *, at_end_ms: int) -> None:
        """Hear whether the source is at its end: idle ones let event time pass."""
        self._clock.tick(at_end_ms)

    def settle(self) -> None:
        """Nothing is pending here."""

    def outputs(self) -> list[Output]:
        """What was accepted, the dead letters, and the frontier where it matters.

        It goes along with events, behind them. Where none go it is written once it has
        moved by a part of the click window, or is of another state.
        """
        at_ms, state = frontier = self._clock.frontier()
        told = Frontier(self._source, self._n_sources, at_ms, state)
        for partition, written in enumerate(self._written):
            moved = frontier != written and (
                bool(self._batches[partition])
                or written is None
                or state != written[1]
                or at_ms - written[0] >= self._step_ms
            )
            if moved:
                if self._sizes[partition] > BATCH_BYTES:
                    self._flush(partition)  # one event that fills a record
                self._written[partition] = frontier
                self._batches[partition].append(told)
            self._flush(partition)
        outputs, self._outputs = self._outputs, []
        return outputs

    def changes(self) -> Iterable[Change]:
        """The whole state, as one value."""
        state = [
            SCHEMA,
            self._clock.state(),
            self._sequences,
            self._written,
            self._counts,
        ]
        if excluded := self._exclusion.state():
            # Last, and only where it is needed: earlier builds know no such part.
            state.append(excluded)
        yield Change(self._state_topic, b"state", _encode(state))

    def restore(self, items: Iterable[Change]) -> None:
        """Take back the state.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        """
        where = f"{self._state_topic}[{self._partition}], key 'state'"
        for item in items:
            if item.key == b"state" and item.value is not None:
                check_schema(item.value, SCHEMA, "the state of ingestion", where)
                state: Any = msgspec.msgpack.decode(item.value)
                _, clock, self._sequences, written, self._counts, *excluded = state
                self._exclusion.restore(excluded[0] if excluded else [])
                # Partitions that were added to the log since: nothing is in them yet.
                n_new = self._n_partitions - len(self._sequences)
                self._sequences += [0] * n_new
                self._clock.restore(clock)
                self._written = _written_in(written, len(self._sequences))

    def fingerprint(self) -> bytes:
        """A digest of the counts and sequence numbers."""
        return hashlib.blake2b(
            _encode([self._counts, self._sequences]), digest_size=16
        ).digest()

    def counters(self) -> dict[str, int]:
        """Consumed, passed on, dead letters, and the frontier."""
        return {**self._counts, "frontier_ms": self._clock.frontier()[0]}

    def _take(self, record: SourceRecord, raw: bytes, index: int) -> None:
        try:
            if self._topic == QUERIES:
                accepted = self._validator.query(raw, record.timestamp_ms)
            else:
                origin = Origin(self._topic, self._partition, record.offset, index)
                accepted = self._validator.click(raw, record.timestamp_ms, origin)
        except Refused as refusal:
            self._bury(record, raw, index, refusal)
            self._clock.hear(record.timestamp_ms)
            return
        self._accept(accepted, record.timestamp_ms)

    def _accept(self, accepted: Accepted, appended_ms: int) -> None:
        self._counts["consumed"] += 1
        self._counts["passed"] += 1
        self._clock.see(accepted.at_ms, appended_ms)
        partition = partition_of_route(accepted.route, self._n_partitions)
        if self._sizes[partition] + accepted.n_bytes > BATCH_BYTES:
            self._flush(partition)
        self._batches[partition].append(accepted.event)
        self._sizes[partition] += accepted.n_bytes

    def _flush(self, partition: int) -> None:
        if self._batches[partition]:
            self._write(partition, self._batches[partition])
            self._batches[partition] = []
            self._sizes[partition] = 0

    def _write(self, partition: int, elements: Any) -> None:
        self._sequences[partition] += 1
        value = encode_record(
            [SCHEMA, self._source, self._sequences[partition], elements]
        )
        self._outputs.append(Output(EVENTS, partition, None, value))

    def _bury(
        self, record: SourceRecord, raw: bytes | None, index: int, refusal: Refused
    ) -> None:
        self._counts["consumed"] += 1
        self._counts["dead_letter"] += 1
        place = Origin(self._topic, self._partition, record.offset, index)
        reason = {
            "stage": refusal.code.stage,
            "code": refusal.code,
            "exception.message": str(refusal),
            "timestamp": str(record.timestamp_ms),
        }
        self._outputs.append(
            dead_letter(place, raw, reason, record.key, record.headers)
        )


def _written_in(state: Any, n_partitions: int) -> list[Written]:
    """Frontiers by partition; builds of before wrote one for all of them."""
    if state and isinstance(state[0], int):
        state = [state] * n_partitions
    known = [tuple(each) if each else None for each in state or ()]
    return [*known, *[None] * (n_partitions - len(known))]
