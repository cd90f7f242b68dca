"""The fold over the canonical log: join, consumers and interactions as one.

Its state at an offset is one consistent checkpoint. The join's share of it is kept in
*segments*: what was accepted between two checkpoints, in the order of the log, written
once and removed by a tombstone when the watermark has passed all of it.
"""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from rankstream.configuration.counting import LimitSettings, TimeSettings
from rankstream.wire.events import SCHEMA, Click, Impression, encode_event
from rankstream.wire.refusal_codes import Code
from rankstream.wire.routing import partition_of_model
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import BATCH_BYTES, INTERACTIONS, LATE
from streams.dead_letter import Origin, dead_letter
from streams.fold.consumer import Consumer
from streams.fold.join import EXCLUDED, Join
from streams.fold.segments import (
    NO_HEAD,
    STATE_KEY,
    STATE_TOPIC,
    Segment,
    array_head,
    segment_key,
)
from streams.native.closed_impressions import Closed
from streams.native.elements import Elements
from streams.stage import Change, LogRefused, Output, SourceRecord
from streams.state_pieces import Parts

KNOWN_MODELS = 4_096
"""Names of models whose partition is remembered."""

ELEMENTS_AT_ONCE = 1_024
"""Of accepted events, or known identities, that are packed into one value."""

_encode = msgspec.msgpack.Encoder().encode


class LogBroken(LogRefused):
    """A record of the canonical log is missing, repeated or unreadable.

    Operator action: something else wrote to `events`, or the topic was truncated;
    fold the log from its beginning in a new namespace.
    """


class CanonicalFold:
    """One partition of `events`.

    Parameters
    ----------
    n_targets
        Partitions of `interactions`: `kafka.learner_partitions`.
    """

    def __init__(
        self,
        partition: int,
        time: TimeSettings,
        limits: LimitSettings,
        n_targets: int,
        consumers: tuple[Consumer, ...] = (),
    ) -> None:
        self.partition = partition
        self._n_targets = n_targets
        self.join = Join(time, self._pass_on, limits)
        self._limits = limits
        self._parts = Parts()
        self.consumers = consumers
        self._outputs: list[Output] = []
        self._closed: list[list[Closed]] = [[] for _ in range(self._n_targets)]
        self._sequences = [0] * self._n_targets
        self._target_of: dict[tuple[int, int], int] = {}
        self._expected: dict[int, int] = {}
        self._segments: list[Segment] = []
        self._next_segment = 0

    def fold(self, record: SourceRecord) -> None:
        """Take a record of the log.

        Raises
        ------
        LogBroken
            Where the log itself is not whole; no event can cause that.
        SchemaRefused
            Where another release wrote it.
        """
        value = record.value or b""
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        # Compiled loops find elements by their tags: the number is compared here.
        check_schema(value, SCHEMA, "a record of events", where)
        try:
            batch = Elements(value)
        except ValueError as error:
            raise LogBroken(
                f"a record of events must be readable; {error}, at {where}"
            ) from error
        expected = self._expected.get(batch.source, 0) + 1
        if batch.sequence != expected:
            raise LogBroken(
                f"records of a source must follow each other; got {batch.sequence} "
                f"after {expected - 1} of source {batch.source}, at {where}"
            )
        self._expected[batch.source] = expected
        try:
            self.join.take(batch)
        except (ValueError, msgspec.DecodeError) as error:
            raise LogBroken(
                f"the elements of a record must be readable; {error}, in {where}"
            ) from error
        self._set_aside()

    def tick(self, *, at_end_ms: int) -> None:
        """A pure fold hears nothing but its log."""

    def settle(self) -> None:
        """Count what was collected, and compute the placements that it needs."""
        for consumer in self.consumers:
            consumer.settle()

    def outputs(self) -> list[Output]:
        """Interactions, dead letters, what came too late, and what consumers write."""
        for target, closed in enumerate(self._closed):
            if closed:
                self._write_interactions(target, closed)
                self._closed[target] = []
        written, self._outputs = self._outputs, []
        for consumer in self.consumers:
            written += consumer.outputs()
        return written

    def changes(self) -> Iterable[Change]:
        """What `restore` needs that it has not been given before."""
        yield from self._new_segment()
        yield from self._passed_segments()
        state = [
            SCHEMA,
            self.join.state(),
            self._sequences,
            sorted(self._expected.items()),
            self._segments,
            self._next_segment,
        ]
        for key, value in self._parts.split(STATE_KEY, _encode(state)):
            yield Change(STATE_TOPIC, key, value)
        for consumer in self.consumers:
            yield from consumer.changes(self.join.counts)

    def restore(self, items: Iterable[Change]) -> None:
        """Take back a state.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        """
        known: dict[bytes, bytes] = {}
        counted: list[Change] = []
        for item in items:
            if item.topic != STATE_TOPIC:
                counted.append(item)
            elif item.value is not None:
                known[item.key] = item.value
        for consumer in self.consumers:
            consumer.restore(counted)
        if STATE_KEY not in known:
            return
        packed = self._parts.value(STATE_KEY, known)
        where = f"{STATE_TOPIC}[{self.partition}], key 'state'"
        check_schema(packed, SCHEMA, "the state of a fold", where)
        _, join, self._sequences, expected, segments, self._next_segment = (
            msgspec.msgpack.decode(packed)
        )
        self.join.restore(join)
        self._expected = dict(expected)
        self._segments = [Segment(*each) for each in segments]
        self._restore_segments(known)

    def fingerprint(self) -> bytes:
        """A digest of counts, sequence numbers and time."""
        taken = (consumer.fingerprint() for consumer in self.consumers)
        parts = [
            self.join.state(),
            self._sequences,
            sorted(self._expected.items()),
            *filter(None, taken),
        ]
        return hashlib.blake2b(_encode(parts), digest_size=16).digest()

    def counters(self) -> dict[str, int]:
        """Outcomes, what is pending, and what the consumers hold."""
        counts = {
            **dict.fromkeys(EXCLUDED, 0),
            **self.join.counts,
            "pending": self.join.pending,
            "open_impressions": self.join.n_open,
            "known_identities": self.join.n_known,
            "watermark_ms": self.join.watermark.at_ms,
            "interactions": sum(self._sequences),
        }
        for consumer in self.consumers:
            counts |= consumer.counters()
        return counts

    def _pass_on(self) -> None:
        """Give what closed to every consumer and to its model's log."""
        closed, self.join.closed = self.join.closed, []
        for piece in closed:
            for consumer in self.consumers:
                consumer.take(piece)
            if self._n_targets == 1:
                self._closed[0].append(piece)
            else:
                self._route(piece)
        for consumer in self.consumers:
            consumer.advance(self.join.watermark.at_ms)

    def _route(self, closed: Closed) -> None:
        if (closed.models == closed.models[0]).all():
            self._closed[self._target(closed, 0)].append(closed)
            return
        _, first, owner = np.unique(
            closed.models, axis=0, return_index=True, return_inverse=True
        )
        targets = [self._target(closed, one) for one in first.tolist()]
        target_of = np.array(targets)[owner.reshape(-1)]
        for target in sorted(set(targets)):
            which = np.flatnonzero(target_of == target)
            self._closed[target].append(closed.select(which))

    def _target(self, closed: Closed, one: int) -> int:
        """The partition of `interactions` of one's model."""
        first, second = closed.models[one].tolist()
        target = self._target_of.get((first, second))
        if target is None:
            name = closed[one].impression.model
            target = partition_of_model(name, self._n_targets)
            if len(self._target_of) >= KNOWN_MODELS:
                self._target_of.clear()
            self._target_of[first, second] = target
        return target

    def _write_interactions(self, target: int, closed: list[Closed]) -> None:
        for n_packed, packed in _joined(part for one in closed for part in one.parts()):
            first = self._sequences[target] + 1
            head = b"".join(map(_encode, (SCHEMA, self.partition, first)))
            value = b"\x94" + head + array_head(n_packed) + packed
            self._sequences[target] += n_packed
            self._outputs.append(Output(INTERACTIONS, target, None, value))

    def _set_aside(self) -> None:
        for outcome, event in self.join.set_aside:
            headers = (("outcome", outcome.encode()),)
            value = event.raw if isinstance(event, Click) else _summary(event)
            self._outputs.append(Output(LATE, self.partition, None, value, headers))
        self.join.set_aside.clear()
        for click in self.join.not_shown:
            reason = {
                "stage": "join",
                "code": Code.NOT_SHOWN,
                "exception.message": "a click must be on a place of its list; got item "
                f"{click.item_id!r:.100} at position {click.position}",
            }
            self._outputs.append(dead_letter(Origin(*click.origin), click.raw, reason))
        self.join.not_shown.clear()
        for click in self.join.beyond:
            reason = {
                "stage": "join",
                "code": Code.TOO_MANY_CLICKS,
                "exception.message": f"clicks of one list must be {self._limits.clicks}"
                f" and {self._limits.click_bytes} bytes at most",
            }
            self._outputs.append(dead_letter(Origin(*click.origin), click.raw, reason))
        self.join.beyond.clear()

    def _new_segment(self) -> Iterator[Change]:
        """What was accepted since the last checkpoint, and is not decided yet."""
        due, raw = self.join.new_accepted()
        parts = _joined((1, one) for one in raw)
        blocks = (array_head(n) + packed for n, packed in parts)
        yield from self._segment("open", due, blocks)
        times, names = self.join.new_remembered()
        blocks = (
            _encode([times[i:j].astype("<i8").tobytes(), names[i:j].tobytes()])
            for i in range(0, len(times), ELEMENTS_AT_ONCE)
            for j in [i + ELEMENTS_AT_ONCE]
        )
        yield from self._segment("known", times.tolist(), blocks)
        self._next_segment += 1

    def _segment(
        self, kind: str, due_ms: list[int], blocks: Iterator[bytes]
    ) -> Iterator[Change]:
        if not due_ms:
            return
        n_blocks = 0
        for block in blocks:
            yield Change(
                STATE_TOPIC, segment_key(kind, self._next_segment, n_blocks), block
            )
            n_blocks += 1
        self._segments.append(Segment(kind, self._next_segment, max(due_ms), n_blocks))

    def _passed_segments(self) -> Iterator[Change]:
        now_ms = self.join.watermark.at_ms
        kept = []
        for segment in self._segments:
            kind, number, last_ms, n_blocks = segment
            is_needed = (
                last_ms > now_ms if kind == "open" else self.join.is_remembered(last_ms)
            )
            if is_needed:
                kept.append(segment)
                continue
            for block in range(n_blocks):
                yield Change(STATE_TOPIC, segment_key(kind, number, block), None)
        self._segments = kept

    def _restore_segments(self, values: dict[bytes, bytes]) -> None:
        for packed in self._blocks("known", values):
            packed_times, packed_names = msgspec.msgpack.decode(packed)
            times = np.frombuffer(packed_times, "<i8").astype(np.int64)
            names = np.frombuffer(packed_names, "<u8").astype(np.uint64)
            kept = self.join.is_remembered(times)
            if kept.any():
                self.join.restore_known(times[kept], names.reshape(-1, 2)[kept])
        for packed in self._blocks("open", values):
            try:
                self.join.restore_elements(Elements(NO_HEAD + packed))
            except (ValueError, msgspec.DecodeError) as error:
                raise LogBroken(
                    f"what was open must be readable; {error}, in {STATE_TOPIC}"
                    f"[{self.partition}]: begin anew in another --namespace"
                ) from error

    def _blocks(self, kind: str, values: dict[bytes, bytes]) -> Iterator[bytes]:
        for own_kind, number, _, n_blocks in self._segments:
            if own_kind == kind:
                for block in range(n_blocks):
                    yield values[segment_key(kind, number, block)]


def _joined(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Neighbours together, in pieces that each fit a batch; counts are added."""
    n_joined, n_bytes = 0, 0
    pieces: list[bytes] = []
    for n, packed in parts:
        is_full = n_bytes + len(packed) > BATCH_BYTES or n_joined + n > ELEMENTS_AT_ONCE
        if pieces and is_full:
            yield n_joined, b"".join(pieces)
            n_joined, n_bytes, pieces = 0, 0, []
        pieces.append(packed)
        n_joined += n
        n_bytes += len(packed)
    if pieces:
        yield n_joined, b"".join(pieces)


def _summary(impression: Impression) -> bytes:
    return encode_event(
        {
            "impression_id": impression.impression_id,
            "query_id": impression.query_id,
            "at_ms": impression.at_ms,
            "model": impression.model,
            "version": impression.version,
        }
    )
