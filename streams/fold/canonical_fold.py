"""The fold over the canonical log: join, consumers and interactions as one.

Its state at an offset is one consistent checkpoint. The join's share of it is kept in
*segments*: what was accepted between two checkpoints, in the order of the log. They say
where in the log that stands, and leave when the watermark has passed all of it.
"""

import hashlib
from collections.abc import Iterable

import msgspec
import numpy as np

from rankstream.configuration.counting import LimitSettings, TimeSettings
from rankstream.wire.events import SCHEMA, Click, Impression, encode_event
from rankstream.wire.refusal_codes import Code
from rankstream.wire.routing import partition_of_model
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import EVENTS, INTERACTIONS, LATE
from streams.dead_letter import Origin, dead_letter
from streams.fold.consumer import Consumer
from streams.fold.join import EXCLUDED, Join
from streams.fold.segments import (
    STATE_KEY,
    STATE_TOPIC,
    Segment,
    Segments,
    array_head,
    joined,
    may_refer,
    origin_at,
)
from streams.native.closed_impressions import Closed
from streams.native.elements import Elements
from streams.native.joining import NOWHERE
from streams.stage import (
    Change,
    LogRefused,
    Output,
    SourceRecord,
    offset_referred,
)
from streams.state_pieces import Parts

KNOWN_MODELS = 4_096
"""Names of models whose partition is remembered."""

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
        self._refers = may_refer(time)
        self._segments = Segments(self.join)

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
            origin = origin_at(record.offset) if self._refers else NOWHERE
            self.join.take(batch, origin)
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
        yield from self._segments.changes()
        state = [
            SCHEMA,
            self.join.state(),
            self._sequences,
            sorted(self._expected.items()),
            self._segments.living,
            self._segments.next_number,
        ]
        for key, value in self._parts.split(STATE_KEY, _encode(state)):
            yield Change(STATE_TOPIC, key, value)
        for consumer in self.consumers:
            yield from consumer.changes(self.join.counts)

    def restore(self, items: Iterable[Change]) -> None:
        """Take back a state, with the records of the log that it refers to.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        LogBroken
            Where something is missing.
        """
        known: dict[bytes, bytes] = {}
        log: dict[int, bytes] = {}
        counted: list[Change] = []
        for item in items:
            if item.topic not in (STATE_TOPIC, EVENTS):
                counted.append(item)
            elif item.value is None:
                continue
            elif item.topic == EVENTS:
                log[offset_referred(item)] = item.value
            else:
                known[item.key] = item.value
        for consumer in self.consumers:
            consumer.restore(counted)
        if STATE_KEY not in known:
            return
        packed = self._parts.value(STATE_KEY, known)
        where = f"{STATE_TOPIC}[{self.partition}], key 'state'"
        check_schema(packed, SCHEMA, "the state of a fold", where)
        _, join, self._sequences, expected, segments, next_number = (
            msgspec.msgpack.decode(packed)
        )
        self.join.restore(join)
        self._expected = dict(expected)
        self._segments.living = [Segment(*each) for each in segments]
        self._segments.next_number = next_number
        try:
            self._segments.restore(known, log)
        except (ValueError, msgspec.DecodeError) as error:
            raise LogBroken(
                f"what was open must be readable; {error}, in {STATE_TOPIC}"
                f"[{self.partition}]: begin anew in another --namespace"
            ) from error

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
        for n_packed, packed in joined(part for one in closed for part in one.parts()):
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
