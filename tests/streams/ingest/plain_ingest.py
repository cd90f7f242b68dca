"""Ingestion as its rules say it: one event after the other, all of it in Python."""

import hashlib
from typing import Any

import msgspec

from rankstream.settings import Settings
from rankstream.wire.bounds import carried_bytes
from rankstream.wire.events import SCHEMA, Element, Frontier, encode_record
from rankstream.wire.input_events import refusal_in
from rankstream.wire.refusal_codes import Code
from rankstream.wire.routing import partition_of_route
from rankstream.wire.topics import BATCH_BYTES, EVENTS, QUERIES, state_topic
from streams.dead_letter import Origin, dead_letter
from streams.event_time import SourceClock
from streams.ingest.elements import elements_of
from streams.ingest.exclusion import Exclusion
from streams.ingest.ingest import END_HEADER, LONGEST_STEP, STEPS
from streams.ingest.refusal import Refused
from streams.ingest.validation import Accepted, EventValidator
from streams.stage import Change, Output, SourceRecord

_encode = msgspec.msgpack.Encoder().encode


class PlainIngest:
    """One partition of `queries` or `clicks`; restores nothing."""

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        time, n_inputs = settings.time, settings.kafka.input_partitions
        self._topic, self._partition = topic, partition
        self._source = partition if topic == QUERIES else n_inputs + partition
        self._n_sources = 2 * n_inputs
        self._n_partitions = n = settings.kafka.partitions
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
        step = min(self._n_sources / STEPS, LONGEST_STEP)
        self._step_ms = time.click_window_ms * step
        self._sequences = [0] * n
        self._written: list[tuple[int, int] | None] = [None] * n
        self._batches: list[list[Element]] = [[] for _ in range(n)]
        self._sizes = [0] * n
        self._outputs: list[Output] = []
        self._counts = {"consumed": 0, "passed": 0, "dead_letter": 0}

    def fold(self, record: SourceRecord) -> None:
        """Take a record."""
        if not record.value and END_HEADER in record.headers:
            self._clock.end()
            return
        try:
            words = refusal_in(record.headers)
            if words is not None:
                raise Refused(Code.NOT_ADAPTED, words)
            carried = carried_bytes(record.key, record.headers)
            elements = elements_of(record.value or b"", carried)
        except Refused as refusal:
            self._bury(record, record.value, 0, refusal)
            return
        for index, raw in enumerate(elements):
            try:
                accepted = self._accepted(record, raw, index)
            except Refused as refusal:
                self._bury(record, raw, index, refusal)
            else:
                self._accept(accepted, record.timestamp_ms)

    def tick(self, *, at_end_ms: int) -> None:
        """Hear of the source's end."""
        self._clock.tick(at_end_ms)

    def outputs(self) -> list[Output]:
        """What was written since the last call."""
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
                    self._flush(partition)
                self._written[partition] = frontier
                self._batches[partition].append(told)
            self._flush(partition)
        outputs, self._outputs = self._outputs, []
        return outputs

    def changes(self) -> list[Change]:
        """The whole state."""
        clock = self._clock.state()
        state = [SCHEMA, clock, self._sequences, self._written, self._counts]
        if excluded := self._exclusion.state():
            state.append(excluded)
        key = state_topic(f"ingest-{self._topic}")
        return [Change(key, b"state", _encode(state))]

    def fingerprint(self) -> bytes:
        """A digest of the counts and sequence numbers."""
        counted = _encode([self._counts, self._sequences])
        return hashlib.blake2b(counted, digest_size=16).digest()

    def counters(self) -> dict[str, int]:
        """Consumed, passed on, dead letters, and the frontier."""
        return {**self._counts, "frontier_ms": self._clock.frontier()[0]}

    def _accepted(self, record: SourceRecord, raw: bytes, index: int) -> Accepted:
        if self._topic == QUERIES:
            return self._validator.query(raw, record.timestamp_ms)
        origin = Origin(self._topic, self._partition, record.offset, index)
        return self._validator.click(raw, record.timestamp_ms, origin)

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
        if not self._batches[partition]:
            return
        self._sequences[partition] += 1
        record: list[Any] = [SCHEMA, self._source, self._sequences[partition]]
        value = encode_record([*record, self._batches[partition]])
        self._outputs.append(Output(EVENTS, partition, None, value))
        self._batches[partition] = []
        self._sizes[partition] = 0

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
        letter = dead_letter(place, raw, reason, record.key, record.headers)
        self._outputs.append(letter)
        self._clock.hear(record.timestamp_ms)
