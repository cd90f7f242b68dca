"""A small pure stage that has everything the rules of delivery are about."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from rankstream.settings import Settings
from rankstream.wire.topics import full_name
from streams.stage import Change, Output, SourceRecord
from streams.topology import StageKind, group_of

SOURCE, STATE, OUT = "source", "counting-state", "out"
OTHER_SOURCE, OTHER_STATE = "other-source", "other-state"
N_SOURCES, N_OUTS = 3, 2
NAMESPACE = "t"
SEQUENCE = b"sequence"
ROLE = "count"
GROUP = group_of(NAMESPACE, ROLE)

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode

Restored = Callable[[int, int, Counter[bytes]], None]
"""Hears of a state that was taken back: partition, records folded, counts."""


class Counted(NamedTuple):
    """A partition that is counted; its outputs bear its number, that in a layout."""

    source: str
    state: str
    partition: int

    @property
    def transactional_id(self) -> str:
        """Of whoever has it."""
        return full_name(
            NAMESPACE, f"rankstream-counting-{self.source}-{self.partition}"
        )


Layout = tuple[Counted, ...]

ALONE: Layout = tuple(Counted(SOURCE, STATE, each) for each in range(N_SOURCES))
PAIRED: Layout = (*ALONE[:2], Counted(OTHER_SOURCE, OTHER_STATE, 0))
"""Two stages of a role, with a source each."""


class Passed(msgspec.Struct, frozen=True, array_like=True):
    """A record that was passed on; numbered without a gap for each source."""

    source: int
    sequence: int
    number: int


class CountingStage:
    """Counts records by key, and passes each on, to one of two partitions."""

    def __init__(self, number: int, state: str, restored: Restored) -> None:
        self._number = number
        self._state = state
        self._restored = restored
        self._counts: Counter[bytes] = Counter()
        self._changed: set[bytes] = set()
        self._sequence = 0
        self._passed: list[Passed] = []

    def fold(self, record: SourceRecord) -> None:
        """Take a record: a key, and a number for a value."""
        key = record.key or b""
        self._counts[key] += 1
        self._changed.add(key)
        self._sequence += 1
        number = int(record.value or b"0")
        self._passed.append(Passed(self._number, self._sequence, number))

    def tick(self, *, at_end_ms: int) -> None:
        """Hear of no end."""

    def settle(self) -> None:
        """Leave nothing for later."""

    def outputs(self) -> list[Output]:
        """What was passed on."""
        passed, self._passed = self._passed, []
        return [Output(OUT, p.number % N_OUTS, None, _pack(p)) for p in passed]

    def changes(self) -> list[Change]:
        """Every count that changed, and the sequence."""
        changed = [
            Change(self._state, key, _pack(self._counts[key]))
            for key in sorted(self._changed)
        ]
        self._changed.clear()
        return [*changed, Change(self._state, SEQUENCE, _pack(self._sequence))]

    def restore(self, items: Iterable[Change]) -> None:
        """Take it back."""
        for _, key, value in items:
            if key == SEQUENCE:
                self._sequence = _unpack(value or b"")
            else:
                self._counts[key] = _unpack(value or b"")
        self._restored(self._number, self._sequence, self._counts)

    def fingerprint(self) -> bytes:
        """How much was counted."""
        return _pack([self._sequence, self._counts.total(), len(self._counts)])

    def counters(self) -> dict[str, int]:
        """Count what was consumed."""
        return {"consumed": self._sequence}


def stage_kinds(
    layout: Layout, restored: Restored, *, state_always: bool
) -> tuple[StageKind, ...]:
    """The rows of the stages of a layout.

    Parameters
    ----------
    state_always
        Whether each commit writes the state, so that nothing is ever replayed.
    """

    def kind(source: str, state: str) -> StageKind:
        def build(_: Settings, partition: int) -> CountingStage:
            number = layout.index(Counted(source, state, partition))
            return CountingStage(number, state, restored)

        return StageKind(
            "counting",
            source,
            (state,),
            build,
            (OUT,),
            state_always=state_always,
            role=ROLE,
        )

    topics = dict.fromkeys((each.source, each.state) for each in layout)
    return tuple(kind(*each) for each in topics)


def stage_kind(restored: Restored, *, state_always: bool) -> StageKind:
    """The row of the stage where there is one."""
    (found,) = stage_kinds(ALONE, restored, state_always=state_always)
    return found


def transactional_id(partition: int) -> str:
    """Of whoever has a partition of the source."""
    return ALONE[partition].transactional_id


def passed_on(value: bytes | None) -> Passed:
    """An output, decoded."""
    return msgspec.msgpack.decode(value or b"", type=Passed)
