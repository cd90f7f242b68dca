"""The fold over the canonical log: join, statistics and interactions as one.

Its state at an offset is one consistent cut. The join's share of it is kept in
*segments*: what was accepted between two cuts, in the order of the log, written
once and removed by a tombstone when the watermark has passed all of it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from rankstream.events import (
    SCHEMA,
    Click,
    Impression,
    Interaction,
    decode_event_record,
    encode_event,
    encode_record,
)
from rankstream.settings import Settings
from rankstream.topics import BATCH_BYTES, INTERACTIONS, LATE
from streams.folds.front_door import Origin
from streams.folds.ingest import dead_letter
from streams.folds.join import Join
from streams.folds.preferences import PreferencesFold
from streams.folds.statistics import StatisticsFold
from streams.stage import Change, Output, SourceRecord

STATE_TOPIC = "fold-state"
ELEMENTS_AT_ONCE = 1_024
"""Accepted events, or interactions, that are packed into one value at first."""

_encode = msgspec.msgpack.Encoder().encode
_decode_events = msgspec.msgpack.Decoder(list[Impression | Click]).decode


class LogBroken(RuntimeError):
    """A record of the canonical log is missing, repeated or unreadable.

    Operator action: something else wrote to `events`, or the topic was truncated;
    fold the log from its beginning in a new namespace.
    """


class CanonicalFold:
    """One partition of `events`."""

    def __init__(self, partition: int, settings: Settings) -> None:
        self.partition = partition
        self._n_targets = settings.kafka.learner_partitions
        self.join = Join(settings.time, self._pass_on)
        self.statistics = StatisticsFold(settings.limits, keep_ms=settings.time.keep_ms)
        self.preferences = PreferencesFold(settings.experiments, partition)
        self._outputs: list[Output] = []
        self._closed: list[list[Interaction]] = [[] for _ in range(self._n_targets)]
        self._sequences = [0] * self._n_targets
        self._target_of: dict[str, int] = {}
        self._expected: dict[int, int] = {}
        self._segments: list[tuple[str, int, int, int]] = []
        self._next_segment = 0

    def fold(self, record: SourceRecord) -> None:
        """Take a record of the log.

        Raises
        ------
        LogBroken
            Where the log itself is not whole; no event can cause that.
        """
        try:
            batch = decode_event_record(record.value or b"")
        except msgspec.DecodeError as error:
            raise LogBroken(
                f"a record of events must be readable; {error}, at "
                f"{record.topic}[{record.partition}]@{record.offset}"
            ) from error
        expected = self._expected.get(batch.source, 0) + 1
        if batch.sequence != expected:
            raise LogBroken(
                f"records of a source must follow each other; got {batch.sequence} "
                f"after {expected - 1} of source {batch.source}, at "
                f"{record.topic}[{record.partition}]@{record.offset}"
            )
        self._expected[batch.source] = expected
        self.join.take(batch.elements)
        if self.join.set_aside or self.join.not_shown:
            self._set_aside()

    def tick(self, now_ms: int, *, at_end: bool) -> None:
        """A pure fold hears no clock."""

    def settle(self) -> None:
        """Count what was collected, and compute the placements that it needs."""
        self.statistics.settle()

    def outputs(self) -> list[Output]:
        """Interactions, dead letters, and what came too late."""
        for target, closed in enumerate(self._closed):
            if closed:
                self._write_interactions(target, closed)
                self._closed[target] = []
        written, self._outputs = self._outputs, []
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
        yield Change(STATE_TOPIC, b"state", _encode(state))
        yield from self.statistics.changes()
        yield from self.preferences.changes()

    def restore(self, items: Iterable[Change]) -> None:
        """Take back a state."""
        known: dict[bytes, bytes] = {}
        counted: list[Change] = []
        for item in items:
            if item.topic != STATE_TOPIC:
                counted.append(item)
            elif item.value is not None:
                known[item.key] = item.value
        self.statistics.restore(counted)
        self.preferences.restore(counted)
        if b"state" not in known:
            return
        _, join, self._sequences, expected, segments, self._next_segment = (
            msgspec.msgpack.decode(known[b"state"])
        )
        self.join.restore(join)
        self._expected = dict(expected)
        self._segments = [tuple(segment) for segment in segments]
        self._restore_segments(known)

    def fingerprint(self) -> bytes:
        """A digest of counts, sequence numbers and time."""
        parts = [
            self.join.state(),
            self._sequences,
            sorted(self._expected.items()),
            self.statistics.fingerprint(),
            self.preferences.fingerprint(),
        ]
        return hashlib.blake2b(_encode(parts), digest_size=16).digest()

    def counters(self) -> dict[str, int]:
        """Outcomes, what is pending, and what the statistics hold."""
        return {
            **self.join.counts,
            "pending": self.join.pending,
            "open_impressions": self.join.n_open,
            "known_identities": self.join.n_known,
            "watermark_ms": self.join.watermark.at_ms,
            "interactions": sum(self._sequences),
            **self.statistics.counters(),
            **self.preferences.counters(),
        }

    def _pass_on(self) -> None:
        """Give what closed to the statistics and to its model's log."""
        closed, self.join.closed = self.join.closed, []
        if closed:
            self.statistics.take_all(closed)
            self.preferences.take_all(closed)
            if self._n_targets == 1:
                self._closed[0] += closed
            else:
                self._route(closed)
        self.statistics.advance(self.join.watermark.at_ms)

    def _route(self, closed: list[Interaction]) -> None:
        target_of = self._target_of
        for interaction in closed:
            model = interaction.impression.model
            target = target_of.get(model)
            if target is None:
                target = partition_of_model(model, self._n_targets)
                target_of[model] = target
            self._closed[target].append(interaction)

    def _write_interactions(self, target: int, closed: list[Interaction]) -> None:
        def encode(part: list[Interaction]) -> bytes:
            first = self._sequences[target] + 1
            return encode_record([SCHEMA, self.partition, first, part])

        for n_packed, value in _packed(closed, encode):
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
                "code": "not-shown",
                "exception.message": "a click must be on a place of its list; got item "
                f"{click.item_id!r:.100} at position {click.position}",
            }
            self._outputs.append(dead_letter(Origin(*click.origin), click.raw, reason))
        self.join.not_shown.clear()

    def _new_segment(self) -> Iterator[Change]:
        """What was accepted since the last cut, and is not decided yet."""
        now_ms = self.join.watermark.at_ms
        accepted, self.join.accepted = self.join.accepted, []
        remembered, self.join.remembered = self.join.remembered, []
        open_ = [entry for entry in accepted if entry[0] > now_ms]
        events = [event for _, event in open_]
        yield from self._segment("open", open_, _packed(events, _encode))
        known = [
            entry
            for times, identities in remembered
            for entry in zip(times, identities, strict=True)
            if self.join.is_remembered(entry[0])
        ]
        yield from self._segment("known", known, _packed(known, _encode_known))
        self._next_segment += 1

    def _segment(
        self,
        kind: str,
        entries: list[tuple[int, Any]],
        blocks: Iterator[tuple[int, bytes]],
    ) -> Iterator[Change]:
        if not entries:
            return
        n_blocks = 0
        for _, block in blocks:
            yield Change(STATE_TOPIC, _key(kind, self._next_segment, n_blocks), block)
            n_blocks += 1
        last_ms = max(due_ms for due_ms, _ in entries)
        self._segments.append((kind, self._next_segment, last_ms, n_blocks))

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
                yield Change(STATE_TOPIC, _key(kind, number, block), None)
        self._segments = kept

    def _restore_segments(self, values: dict[bytes, bytes]) -> None:
        for packed in self._blocks("known", values):
            packed_times, packed_identities = msgspec.msgpack.decode(packed)
            times = np.frombuffer(packed_times, "<i8").tolist()
            identities = [
                packed_identities[start : start + 16]
                for start in range(0, 16 * len(times), 16)
            ]
            first = sum(not self.join.is_remembered(at) for at in times)
            if first < len(times):
                self.join.restore_known(times[first:], identities[first:])
        for packed in self._blocks("open", values):
            for event in _decode_events(packed):
                self.join.restore_event(event)

    def _blocks(self, kind: str, values: dict[bytes, bytes]) -> Iterator[bytes]:
        for own_kind, number, _, n_blocks in self._segments:
            if own_kind == kind:
                for block in range(n_blocks):
                    yield values[_key(kind, number, block)]


def partition_of_model(model: str, n_partitions: int) -> int:
    """The partition of `interactions` that a model's are in."""
    digest = hashlib.blake2b(model.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % n_partitions


def _key(*parts: Any) -> bytes:
    return _encode(parts)


def _packed(
    elements: list[Any], encode: Callable[[list[Any]], bytes]
) -> Iterator[tuple[int, bytes]]:
    """The elements in order, encoded in parts that each fit a batch."""
    for start in range(0, len(elements), ELEMENTS_AT_ONCE):
        yield from _halved(elements[start : start + ELEMENTS_AT_ONCE], encode)


def _halved(
    elements: list[Any], encode: Callable[[list[Any]], bytes]
) -> Iterator[tuple[int, bytes]]:
    value = encode(elements)
    if len(value) <= BATCH_BYTES or len(elements) == 1:
        yield len(elements), value
        return
    half = len(elements) // 2
    yield from _halved(elements[:half], encode)
    yield from _halved(elements[half:], encode)


def _encode_known(entries: list[tuple[int, bytes]]) -> bytes:
    times = np.array([at_ms for at_ms, _ in entries], "<i8").tobytes()
    return _encode([times, b"".join(identity for _, identity in entries)])


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
