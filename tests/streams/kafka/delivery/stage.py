"""A small pure stage that has everything the rules of delivery are about."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from rankstream.settings import Settings
from rankstream.wire.topics import full_name
from streams.stage import Change, Output, SourceRecord
from streams.topology import StageKind, group_of

SOURCE, STATE, OUT = "source", "counting-state", "out"
N_SOURCES, N_OUTS = 3, 2
NAMESPACE = "t"
SEQUENCE = b"sequence"
ROLE = "count"
GROUP = group_of(NAMESPACE, ROLE)

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode

Restored = Callable[[int, int, Counter[bytes]], None]
"""Hears of a state that was taken back: partition, records folded, counts."""


class Passed(msgspec.Struct, frozen=True, array_like=True):
    """A record that was passed on; numbered without a gap for each source."""

    source: int
    sequence: int
    number: int


class CountingStage:
    """Counts records by key, and passes each on, to one of two partitions."""

    def __init__(self, partition: int, restored: Restored) -> None:
        self._partition = partition
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
        self._passed.append(Passed(self._partition, self._sequence, number))

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
            Change(STATE, key, _pack(self._counts[key]))
            for key in sorted(self._changed)
        ]
        self._changed.clear()
        return [*changed, Change(STATE, SEQUENCE, _pack(self._sequence))]

    def restore(self, items: Iterable[Change]) -> None:
        """Take it back."""
        for _, key, value in items:
            if key == SEQUENCE:
                self._sequence = _unpack(value or b"")
            else:
                self._counts[key] = _unpack(value or b"")
        self._restored(self._partition, self._sequence, self._counts)

    def fingerprint(self) -> bytes:
        """How much was counted."""
        return _pack([self._sequence, self._counts.total(), len(self._counts)])

    def counters(self) -> dict[str, int]:
        """Count what was consumed."""
        return {"consumed": self._sequence}


def stage_kind(restored: Restored, *, state_always: bool) -> StageKind:
    """The stage's row.

    Parameters
    ----------
    state_always
        Whether each commit writes the state, so that nothing is ever replayed.
    """

    def build(_: Settings, partition: int) -> CountingStage:
        return CountingStage(partition, restored)

    return StageKind(
        "counting",
        SOURCE,
        (STATE,),
        build,
        (OUT,),
        state_always=state_always,
        role=ROLE,
    )


def transactional_id(partition: int) -> str:
    """Of whoever has a partition of the source."""
    return full_name(NAMESPACE, f"rankstream-counting-{SOURCE}-{partition}")


def passed_on(value: bytes | None) -> Passed:
    """An output, decoded."""
    return msgspec.msgpack.decode(value or b"", type=Passed)
