"""Lists and clicks of both arms of canaries, stage by stage, in groups of sessions.

Kept beside the comparisons: what lists earned that were shown while two versions of a
model were served. Which those are stands in each list, as nobody else saw which share
was in force. Tags come with events, and anybody may send one of a stage that never was:
whoever judges looks only at those of the history, and of a model that has as many as
are kept the one with the fewest lists leaves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankstream.configuration.counting import StatisticsSettings
from rankstream.wire.events import Interaction
from rankstream.wire.models.canaries import FIELD
from rankstream.wire.schemas import check_schema
from rankstream.wire.schemas import decoded as read_extra
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.extra import SCHEMA, name_in, named_key
from streams.native.closed_impressions import Closed
from streams.native.intervention_lists import N_GROUPS
from streams.stage import Change

KIND = "canary"
"""How keys of these sums begin; tag and partition follow."""

MOST_STAGES = 64
"""Stages kept of each model, those of earlier canaries among them."""

LISTS, WITHOUT_CLICK, FIRST_CLASS = range(3)
"""Columns of sums; behind them one for each class of actions."""

SERVED, CANARY = range(2)
"""Arms of sums."""

_MARK = msgspec.msgpack.encode(FIELD)

_encode = msgspec.msgpack.Encoder().encode

OfStage = NDArray[np.int64]


class _Named(msgspec.Struct, frozen=True, gc=False):
    """The part of `Impression.extra` that is needed."""

    canary: str | None = None
    session: str | None = None


_decode_named = msgspec.msgpack.Decoder(_Named).decode


class StageSums(NamedTuple):
    """What was counted of a stage.

    Parameters
    ----------
    names
        Of the classes of actions, in the order of their columns.
    sums : [100, 2, 2 + n_names]
        By group of sessions and arm: lists, lists without a click, clicks by class.
    """

    names: tuple[str, ...]
    sums: OfStage


class CanaryLists:
    """The sums of one partition of the canonical log.

    Parameters
    ----------
    models
        Names of the models that may have canaries.
    """

    def __init__(
        self, models: Sequence[str], statistics: StatisticsSettings, partition: int
    ) -> None:
        self._models = frozenset(models)
        self._partition = partition
        self._names = statistics.classes()
        self._reward = self._names.index(statistics.reward)
        self._class_of = {
            action: self._names.index(name)
            for action, name in statistics.actions.items()
        }
        self._sums: dict[str, OfStage] = {}
        self._changed: set[str] = set()
        self._gone: set[str] = set()

    def take(self, closed: Closed) -> None:
        """Count closed impressions; those of no canary are not decoded."""
        packed = closed.encoded.tobytes() if closed.extras.any() else b""
        if _MARK not in packed:
            return
        ends = closed.ends.tolist()
        for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if closed.extras[i] and packed.find(_MARK, start, end) >= 0:
                self._take(closed[i])

    def _take(self, interaction: Interaction) -> None:
        impression = interaction.impression
        try:
            named = read_extra(_decode_named, impression.extra)
        except msgspec.DecodeError:
            return
        tag = named.canary or ""
        intervention = tag.rpartition("/")[0]
        model = intervention.rpartition("@")[0]
        if model not in self._models or model != impression.model or not named.session:
            return
        sums = self._of_stage(tag, model)
        if sums is None:
            return
        row = np.zeros(FIRST_CLASS + len(self._names), np.int64)
        row[LISTS] = 1
        n_ranks = len(impression.shown) // 2
        seen = {
            (mark.position, self._class_of.get(mark.action, 0))
            for mark in interaction.clicks
            if 0 < mark.position <= n_ranks
        }
        for _, number in seen:
            row[FIRST_CLASS + number] += 1
        row[WITHOUT_CLICK] = not row[FIRST_CLASS + self._reward]
        arm = CANARY if impression.intervention == intervention else SERVED
        sums[impression.unit % N_GROUPS, arm] += row
        self._changed.add(tag)

    def _of_stage(self, tag: str, model: str) -> OfStage | None:
        found = self._sums.get(tag)
        if found is not None:
            return found
        alike = [each for each in self._sums if model_of(each) == model]
        if len(alike) >= MOST_STAGES:
            own = tag.rpartition("/")[0]

            def weight(each: str) -> tuple[bool, int, str]:
                # Earlier stages of the same one are needed with this one.
                return each.rpartition("/")[0] == own, self._n_lists(each), each

            least = min(alike, key=weight)
            del self._sums[least]
            self._changed.discard(least)
            self._gone.add(least)
        self._gone.discard(tag)
        n_columns = FIRST_CLASS + len(self._names)
        return self._sums.setdefault(tag, np.zeros((N_GROUPS, 2, n_columns), np.int64))

    def _n_lists(self, tag: str) -> int:
        return int(self._sums[tag][..., LISTS].sum())

    def changes(self) -> Iterator[Change]:
        """What changed since the last call."""
        for tag in sorted(self._gone):
            yield Change(PREFERENCES, stage_key(tag, self._partition), None)
        for tag in sorted(self._changed):
            value = encoded(StageSums(self._names, self._sums[tag]))
            yield Change(PREFERENCES, stage_key(tag, self._partition), value)
        self._gone.clear()
        self._changed.clear()

    def restore(self, tag: str, value: bytes) -> None:
        """Take back what `changes` gave of a stage.

        One that was counted by other classes of actions goes on without them.
        """
        found = decoded(tag, value)
        n_columns = FIRST_CLASS + len(self._names)
        sums = np.zeros((N_GROUPS, 2, n_columns), np.int64)
        sums[..., :FIRST_CLASS] = found.sums[..., :FIRST_CLASS]
        for number, name in enumerate(found.names):
            if name in self._names:
                at = FIRST_CLASS + self._names.index(name)
                sums[..., at] = found.sums[..., FIRST_CLASS + number]
        self._sums[tag] = sums
        if found.names != self._names:
            # All partitions are to count by the same classes.
            self._changed.add(tag)

    def fingerprint(self) -> bytes:
        """Counts that equal states share; empty where nothing was counted."""
        if not self._sums:
            return b""
        totals = [
            sum(int(each[..., at].sum()) for each in self._sums.values())
            for at in (LISTS, WITHOUT_CLICK)
        ]
        return struct.pack("<3q", len(self._sums), *totals)

    def n_lists(self) -> int:
        """Lists of all stages that are kept."""
        return sum(map(self._n_lists, self._sums))


def model_of(tag: str) -> str:
    """The model of a stage's tag."""
    return tag.rpartition("/")[0].rpartition("@")[0]


def stage_key(tag: str, partition: int) -> bytes:
    """Where one partition keeps its share of a stage."""
    return named_key(KIND, tag, partition)


def tag_of(key: bytes) -> str | None:
    """The stage that a key is of; None of other keys."""
    return name_in(key, KIND)


def encoded(stage: StageSums) -> bytes:
    """Sums as bytes that `decoded` takes; equal where they are equal."""
    return _encode([SCHEMA, list(stage.names), stage.sums.astype("<i8").tobytes()])


def decoded(tag: str, value: bytes) -> StageSums:
    """What `encoded` gave.

    Raises
    ------
    SchemaRefused, ValueError
        Where another release wrote it, or something else.
    """
    where = f"preferences, canary {tag!r}"
    check_schema(value, SCHEMA, "the sums of a canary", where)
    _, names, packed = msgspec.msgpack.decode(value, type=tuple[int, list[str], bytes])
    sums = np.frombuffer(packed, "<i8").astype(np.int64)
    return StageSums(tuple(names), sums.reshape(N_GROUPS, 2, FIRST_CLASS + len(names)))


def merged(values: Mapping[bytes, bytes], tag: str) -> StageSums | None:
    """Sums of a stage over all partitions; None before any list.

    Parameters
    ----------
    values
        The last value of each key of `preferences`.

    Raises
    ------
    SchemaRefused, ValueError
        Where another release wrote one, or partitions count by other classes.
    """
    found: StageSums | None = None
    for key in sorted(values):
        if tag_of(key) != tag:
            continue
        one = decoded(tag, values[key])
        if found is None:
            found = one
        elif one.names != found.names:
            raise ValueError(
                f"sums of canary {tag!r} must be by the same classes of actions in all "
                f"partitions; got {one.names} beside {found.names}: wait until all "
                "workers have the same settings"
            )
        else:
            found = StageSums(found.names, found.sums + one.sums)
    return found
