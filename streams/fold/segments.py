"""How the join's share of the fold's state lies in its topic.

What was accepted between two checkpoints is a *segment*. Blocks of `logged` say where
its elements stand in the log, in the order in which they were accepted: a click that
waited comes behind its list. What stands nowhere there as it is, such
as that a click waits no longer, is in blocks of `open` as packed elements; so is all of
a segment that must not rely on the log. Identities that became known are in blocks of
`known`. The value under `STATE_KEY` names the segments.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, islice
from typing import NamedTuple

import msgspec
import numpy as np

from rankstream.configuration.counting import TimeSettings
from rankstream.wire.events import SCHEMA
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import BATCH_BYTES, EVENTS, LEAST_DAYS, state_topic
from streams.fold.join import Join
from streams.native.closed_impressions import Int64
from streams.native.elements import Elements
from streams.native.joining import NOWHERE
from streams.stage import Change
from streams.state_pieces import Parts

STATE_TOPIC = state_topic("fold")

STATE_KEY = b"state"
"""Key of the watermark, counts and numbers, and of the list of segments."""

NO_HEAD = b"\x94\x00\x00\x00"
"""Makes a record of packed elements that have none."""

ELEMENTS_AT_ONCE = 1_024
"""Of accepted events, or known identities, that are packed into one value."""

REFERENCES_AT_ONCE = BATCH_BYTES // 8

RECORDS_AT_ONCE = 32
"""Of the log, whose elements were found and are kept while a segment is read."""

LONGEST_REFERRED_MS = LEAST_DAYS * 86_400_000 // 3
"""Of windows whose lists are referred to: a third of what `events` keeps at least. The
rest is for events that are ahead of their time, and for workers that were away."""

NUMBER_BITS = 24
"""Of an origin, for the number of an element in its record; above is the offset."""

FARTHEST_OFFSET = 1 << 38

LOGGED, OPEN, KNOWN = "logged", "open", "known"

Log = Mapping[int, bytes]
"""Records of the log by offset."""

_encode = msgspec.msgpack.Encoder().encode


class Segment(NamedTuple):
    """One segment.

    Parameters
    ----------
    kind
        `logged`, `open` or `known`. What is `logged` and what is `open` of one number
        are one, in the order of the former.
    number
        Of the checkpoint that wrote it.
    last_ms
        No element of it is due later, in event time.
    n_blocks
        Values that it has.
    first_offset
        The first record of the log that it refers to, or NOWHERE.
    """

    kind: str
    number: int
    last_ms: int
    n_blocks: int
    first_offset: int = NOWHERE


def segment_key(kind: str, number: int, block: int) -> bytes:
    """The key of a block of a segment."""
    return _encode((kind, number, block))


def array_head(length: int) -> bytes:
    """The head of a MessagePack array."""
    return b"\xdd" + struct.pack(">I", length)


def may_refer(time: TimeSettings) -> bool:
    """Whether `events` keeps a list for longer than its window is open."""
    return time.click_window_ms + time.disorder_ms <= LONGEST_REFERRED_MS


def origin_at(offset: int) -> int:
    """The origin of the first element of a record."""
    return offset << NUMBER_BITS if 0 <= offset < FARTHEST_OFFSET else NOWHERE


def first_referred(state: Mapping[tuple[str, bytes], bytes]) -> int | None:
    """The offset of the first record of the log that a state needs; None if none.

    Parameters
    ----------
    state
        By topic and key.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    values = {key: one for (topic, key), one in state.items() if topic == STATE_TOPIC}
    if STATE_KEY not in values:
        return None
    packed = Parts().value(STATE_KEY, values)
    check_schema(packed, SCHEMA, "the state of a fold", STATE_TOPIC)
    segments = [Segment(*each) for each in msgspec.msgpack.decode(packed)[4]]
    offsets = [each.first_offset for each in segments if each.kind == LOGGED]
    return min(offsets, default=None)


def elements_of(
    segments: Iterable[Segment], values: Mapping[bytes, bytes], log: Log
) -> Iterator[Elements]:
    """What was accepted up to a checkpoint since the one before, in the log's order.

    Parameters
    ----------
    segments
        Those of the checkpoint's number.

    Raises
    ------
    ValueError
        Where blocks or records of the log are missing or not whole.
    """
    own = {each.kind: each for each in segments}
    kept = (Elements(NO_HEAD + block) for block in blocks_of(own.get(OPEN), values))
    if LOGGED not in own:
        yield from kept
        return
    raw = (one.raw(i) for one in kept for i in range(len(one)))
    blocks = blocks_of(own[LOGGED], values)
    origins = np.concatenate([np.frombuffer(block, "<i8") for block in blocks])
    # Clicks that waited stand in others than the list that they come behind.
    record_at = lru_cache(RECORDS_AT_ONCE)(partial(_record_at, log))
    for run in _runs(origins):
        if run[0] == NOWHERE:
            packed = [*islice(raw, len(run))]
            if len(packed) < len(run):
                raise ValueError(
                    f"a segment must hold {len(run)} elements more; got {len(packed)}"
                )
            yield Elements(NO_HEAD + array_head(len(packed)) + b"".join(packed))
            continue
        record = record_at(int(run[0] >> NUMBER_BITS))
        yield record.select(run & ((1 << NUMBER_BITS) - 1))


def _record_at(log: Log, offset: int) -> Elements:
    if offset not in log:
        raise ValueError(
            "what open lists refer to must be in the log still; offset "
            f"{offset} of {EVENTS} is not"
        )
    return Elements(log[offset])


def _runs(origins: Int64) -> list[Int64]:
    """Neighbours of one record together, and neighbours that are NOWHERE."""
    # A shift leaves NOWHERE what it is.
    starts = np.flatnonzero(np.diff(origins >> NUMBER_BITS)) + 1
    return np.split(origins, starts)


def blocks_of(
    segment: Segment | None, values: Mapping[bytes, bytes]
) -> Iterator[bytes]:
    """The values of a segment, if there is one.

    Raises
    ------
    ValueError
        Where one is missing.
    """
    if segment is None:
        return
    for block in range(segment.n_blocks):
        name = segment.kind, segment.number, block
        if segment_key(*name) not in values:
            raise ValueError(f"blocks of segments must be there; {name} is not")
        yield values[segment_key(*name)]


def by_checkpoint(segments: Iterable[Segment]) -> dict[int, list[Segment]]:
    """Those of each number, in the order in which they were written."""
    found: dict[int, list[Segment]] = {}
    for segment in segments:
        found.setdefault(segment.number, []).append(segment)
    return found


def joined(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
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


class Segments:
    """The segments of a join, as of the last checkpoint.

    Attributes
    ----------
    living
        Those that something of is open or known still.
    next_number
        Of the next checkpoint.
    """

    def __init__(self, join: Join) -> None:
        self._join = join
        self.living: list[Segment] = []
        self.next_number = 0

    def changes(self) -> Iterator[Change]:
        """What the join accepted since the last call, and what it needs no more."""
        yield from self._accepted()
        yield from self._remembered()
        self.next_number += 1
        yield from self._passed()

    def restore(self, values: Mapping[bytes, bytes], log: Log) -> None:
        """Give the join back what it had accepted.

        Raises
        ------
        ValueError, msgspec.DecodeError
            Where something is missing or not whole.
        """
        join = self._join
        known = (each for each in self.living if each.kind == KNOWN)
        for packed in chain.from_iterable(blocks_of(each, values) for each in known):
            packed_times, packed_names = msgspec.msgpack.decode(packed)
            times = np.frombuffer(packed_times, "<i8").astype(np.int64)
            names = np.frombuffer(packed_names, "<u8").astype(np.uint64)
            kept = join.is_remembered(times)
            if kept.any():
                join.restore_known(times[kept], names.reshape(-1, 2)[kept])
        for segments in by_checkpoint(self.living).values():
            for elements in elements_of(segments, values, log):
                join.restore_elements(elements)

    def _accepted(self) -> Iterator[Change]:
        due, origins, raw = self._join.new_accepted()
        if not len(due):
            return
        last_ms = int(due.max())
        in_log = origins[origins != NOWHERE]
        if len(in_log):
            first_offset = int(in_log.min() >> NUMBER_BITS)
            references = (
                origins[i : i + REFERENCES_AT_ONCE].astype("<i8").tobytes()
                for i in range(0, len(origins), REFERENCES_AT_ONCE)
            )
            yield from self._segment(LOGGED, last_ms, references, first_offset)
        parts = joined((1, one) for one in raw)
        blocks = (array_head(n) + packed for n, packed in parts)
        yield from self._segment(OPEN, last_ms, blocks)

    def _remembered(self) -> Iterator[Change]:
        times, names = self._join.new_remembered()
        blocks = (
            _encode([times[i:j].astype("<i8").tobytes(), names[i:j].tobytes()])
            for i in range(0, len(times), ELEMENTS_AT_ONCE)
            for j in [i + ELEMENTS_AT_ONCE]
        )
        last_ms = int(times.max(initial=0))
        yield from self._segment(KNOWN, last_ms, blocks)

    def _segment(
        self,
        kind: str,
        last_ms: int,
        blocks: Iterable[bytes],
        first_offset: int = NOWHERE,
    ) -> Iterator[Change]:
        number, n_blocks = self.next_number, 0
        for block in blocks:
            yield Change(STATE_TOPIC, segment_key(kind, number, n_blocks), block)
            n_blocks += 1
        if n_blocks:
            segment = Segment(kind, number, last_ms, n_blocks, first_offset)
            self.living.append(segment)

    def _passed(self) -> Iterator[Change]:
        now_ms = self._join.watermark.at_ms
        kept = []
        for segment in self.living:
            kind, number, last_ms, n_blocks, _ = segment
            is_needed = (
                self._join.is_remembered(last_ms) if kind == KNOWN else last_ms > now_ms
            )
            if is_needed:
                kept.append(segment)
                continue
            for block in range(n_blocks):
                yield Change(STATE_TOPIC, segment_key(kind, number, block), None)
        self.living = kept
