"""Ingestion: records of `queries` and `clicks` into the canonical log.

It knows no clock: the broker says when it appended a record. Its state is small and
written whole at every commit: how far its source is in time, and the sequence numbers
of what it wrote.
"""

import hashlib
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from rankstream.settings import Settings
from rankstream.wire.events import SCHEMA, Frontier, encode_record
from rankstream.wire.routing import partition_of_route
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import QUERIES, state_topic
from streams.dead_letter import Origin, dead_letter
from streams.event_time import SourceClock
from streams.ingest.batches import EventBatches
from streams.ingest.elements import Unpacked, unpacked
from streams.ingest.exclusion import Exclusion
from streams.ingest.plain_events import PlainEvents
from streams.ingest.refusal import Refused
from streams.ingest.validation import Accepted, EventValidator
from streams.native.input_events import AT_MS, PARTITION, SIZE, Rules
from streams.source_records import SourceRecords
from streams.stage import Change, Output, SourceRecord

END_HEADER = ("rankstream", b"end")
"""Marks the empty record that ends a source."""

STEPS = 2_048
"""Frontiers that all sources together write during a click window where no events go,
to each partition. So what that costs grows with partitions, not with their square."""

LONGEST_STEP = 1 / 16
"""Of a click window: so far at most is what a partition knows behind a frontier."""

WAITING_RECORDS = 2_048
"""So many records wait at most before they are taken, and what came last."""

WAITING_BYTES = 1 << 20
"""So many bytes of them, and what came last."""

FEW = 8
"""So few events are taken one after the other: a call for them costs more."""

Written = tuple[int, int] | None
"""A frontier as it was last written somewhere."""

_encode = msgspec.msgpack.Encoder().encode
_number, _output = itemgetter(0), itemgetter(1)


class Ingest:
    """One partition of `queries` or `clicks`.

    Records wait until enough of them do, or somebody asks for what came of them.

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
        self._batches = EventBatches(self._source, self._n_partitions)
        self._written: list[Written] = [None] * self._n_partitions
        self._outputs: list[Output] = []
        self._counts = {"consumed": 0, "passed": 0, "dead_letter": 0}
        self._waiting: list[SourceRecords] = []
        self._alone: list[SourceRecord] = []
        self._n_waiting = self._n_waiting_bytes = 0
        self._ticks: list[tuple[int, int]] = []
        rules = Rules(self._n_partitions, time.ahead_ms, settings.limits.documents)
        self._plain = PlainEvents(topic, partition, rules, settings.ingestion.segment)
        # Whoever is excluded is known by what came before.
        exclude = settings.exclude
        self._is_of_python = topic == QUERIES and bool(
            exclude.users or exclude.lists_per_minute
        )

    def fold(self, record: SourceRecord) -> None:
        """Take a record: validate, normalise and route every event of it."""
        value = record.value
        if not value and END_HEADER in record.headers:
            self._take_waiting()
            self._clock.end()
            return
        self._alone.append(record)
        self._wait(1, len(value or b""))

    def fold_together(self, records: SourceRecords) -> None:
        """Take records as `fold` takes one after the other."""
        if any(END_HEADER in each for each in filter(None, records.headers)):
            for record in records:
                self.fold(record)
            return
        self._gather()
        self._waiting.append(records)
        self._wait(len(records), records.n_bytes)

    def tick(self, *, at_end_ms: int) -> None:
        """Hear whether the source is at its end: idle ones let event time pass."""
        if self._n_waiting:
            self._ticks.append((self._n_waiting, at_end_ms))
        else:
            self._clock.tick(at_end_ms)

    def settle(self) -> None:
        """Take all records that wait."""
        self._take_waiting()

    def outputs(self) -> list[Output]:
        """What was accepted, the dead letters, and the frontier where it matters.

        It goes along with events, behind them. Where none go it is written once it has
        moved by a part of the click window, or is of another state.
        """
        self._take_waiting()
        at_ms, state = frontier = self._clock.frontier()
        told = encode_record(Frontier(self._source, self._n_sources, at_ms, state))
        batches = self._batches
        for partition, written in enumerate(self._written):
            moved = frontier != written and (
                batches.holds(partition)
                or written is None
                or state != written[1]
                or at_ms - written[0] >= self._step_ms
            )
            if moved:
                if batches.is_beyond(partition):
                    self._write(batches.flushed(partition))
                self._written[partition] = frontier
                batches.put(partition, told)
            self._write(batches.flushed(partition))
        outputs, self._outputs = self._outputs, []
        return outputs

    def changes(self) -> Iterable[Change]:
        """The whole state, as one value."""
        self._take_waiting()
        state = [
            SCHEMA,
            self._clock.state(),
            self._batches.sequences,
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
                _, clock, sequences, written, self._counts, *excluded = state
                self._exclusion.restore(excluded[0] if excluded else [])
                # Partitions that were added to the log since: nothing is in them yet.
                n_new = self._n_partitions - len(sequences)
                self._batches.sequences = sequences + [0] * n_new
                self._clock.restore(clock)
                self._written = _written_in(written, self._n_partitions)

    def go_on_behind(self, n_records: list[int]) -> None:
        """Number records behind those of a log that was copied, by partition."""
        self._batches.sequences = list(n_records)

    def fingerprint(self) -> bytes:
        """A digest of the counts and sequence numbers."""
        self._take_waiting()
        counted = _encode([self._counts, self._batches.sequences])
        return hashlib.blake2b(counted, digest_size=16).digest()

    def counters(self) -> dict[str, int]:
        """Consumed, passed on, dead letters, and the frontier."""
        self._take_waiting()
        return {**self._counts, "frontier_ms": self._clock.frontier()[0]}

    def _wait(self, n: int, n_bytes: int) -> None:
        self._n_waiting += n
        self._n_waiting_bytes += n_bytes
        if self._n_waiting_bytes >= WAITING_BYTES or self._n_waiting >= WAITING_RECORDS:
            self._take_waiting()

    def _gather(self) -> None:
        """Let what came one by one wait with the others, in its place."""
        if self._alone:
            self._waiting.append(SourceRecords.of(self._alone))
            self._alone = []

    def _take_waiting(self) -> None:
        if not self._n_waiting:
            return
        self._gather()
        waiting, self._waiting = SourceRecords.joined(self._waiting), []
        ticks, self._ticks = self._ticks, []
        self._n_waiting = self._n_waiting_bytes = 0
        first = 0
        for last, at_end_ms in ticks:
            self._take(waiting[first:last])
            self._clock.tick(at_end_ms)
            first = last
        self._take(waiting[first:])

    def _take(self, records: SourceRecords) -> None:
        for found in unpacked(records):
            if self._is_of_python or len(found.raws) <= FEW:
                self._take_each(found)
            else:
                self._take_together(found)

    def _take_each(self, found: Unpacked) -> None:
        """Take events one after the other: the rule that all others keep to."""
        for number, appended_ms in enumerate(found.times_ms.tolist()):
            try:
                accepted = self._accepted(found, number)
            except Refused as refusal:
                self._count(1, 0)
                self._outputs.append(self._letter(found, number, refusal))
                self._clock.hear(appended_ms)
                continue
            self._count(1, 1)
            self._clock.see(accepted.at_ms, appended_ms)
            partition = partition_of_route(accepted.route, self._n_partitions)
            element = encode_record(accepted.event)
            self._write(self._batches.add(partition, element, accepted.n_bytes))

    def _take_together(self, found: Unpacked) -> None:
        """Take events in C, and those that are odd in between."""
        encoded, bounds, outcomes = self._plain.write(found)
        n, n_bytes = len(outcomes), len(encoded)
        letters, elements = [], []
        for number in np.flatnonzero(outcomes[:, PARTITION] < 0).tolist():
            try:
                accepted = self._accepted(found, number)
            except Refused as refusal:
                letters.append((number, self._letter(found, number, refusal)))
                continue
            element = encode_record(accepted.event)
            elements.append(element)
            partition = partition_of_route(accepted.route, self._n_partitions)
            bounds[number] = n_bytes, n_bytes + len(element)
            outcomes[number, PARTITION:] = partition, accepted.at_ms, accepted.n_bytes
            n_bytes += len(element)
        if elements:
            odd = np.frombuffer(b"".join(elements), np.uint8)
            encoded = np.concatenate((encoded, odd))
        partitions = outcomes[:, PARTITION]
        full = self._batches.add_together(
            encoded, bounds, partitions, outcomes[:, SIZE]
        )
        self._outputs += map(_output, sorted(letters + full, key=_number))
        self._count(n, n - len(letters))
        self._clock.see_together(
            outcomes[:, AT_MS], found.times_ms, is_accepted=partitions >= 0
        )

    def _accepted(self, found: Unpacked, number: int) -> Accepted:
        """An event, as Python takes it.

        Raises
        ------
        Refused
            Where it is none, or the whole record is refused.
        """
        if number in found.refused:
            raise found.refused[number]
        raw = found.raws[number]
        appended_ms = int(found.records.times_ms[found.rows[number]])
        if self._topic == QUERIES:
            return self._validator.query(raw, appended_ms)
        origin = self._place(found, number)
        return self._validator.click(raw, appended_ms, origin)

    def _place(self, found: Unpacked, number: int) -> Origin:
        offset = int(found.records.offsets[found.rows[number]])
        return Origin(self._topic, self._partition, offset, int(found.indexes[number]))

    def _count(self, n: int, n_passed: int) -> None:
        self._counts["consumed"] += n
        self._counts["passed"] += n_passed
        self._counts["dead_letter"] += n - n_passed

    def _write(self, full: Output | None) -> None:
        if full is not None:
            self._outputs.append(full)

    def _letter(self, found: Unpacked, number: int, refusal: Refused) -> Output:
        record = found.records[int(found.rows[number])]
        raw = record.value if number in found.refused else found.raws[number]
        reason = {
            "stage": refusal.code.stage,
            "code": refusal.code,
            "exception.message": str(refusal),
            "timestamp": str(record.timestamp_ms),
        }
        place = self._place(found, number)
        return dead_letter(place, raw, reason, record.key, record.headers)


def _written_in(state: Any, n_partitions: int) -> list[Written]:
    """Frontiers by partition; builds of before wrote one for all of them."""
    if state and isinstance(state[0], int):
        state = [state] * n_partitions
    known = [tuple(each) if each else None for each in state or ()]
    return [*known, *[None] * (n_partitions - len(known))]
