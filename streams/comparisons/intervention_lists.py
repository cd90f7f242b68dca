"""Lists and clicks by intervention of a trained model, in groups of sessions.

Kept beside the comparisons: what an intervention earned while it was shown, with what
an interval for sessions to come needs. Lists of the policy before the first one, which
bear the name of the model alone, are counted under that. The common cases are counted
in C.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from rankstream.sections import Settings
from rankstream.wire.events import Interaction
from rankstream.wire.intervention_rates import place_of
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.extra import SCHEMA, extra_of
from streams.fold.closed_impressions import Closed
from streams.fold.native.intervention_lists import (
    N_GROUPS,
    Rules,
    Sums,
    known_of,
    take_lists,
)
from streams.stage import Change

if TYPE_CHECKING:
    import ctypes
    from typing import Any

KIND = "intervention"
"""How keys of these sums begin; name and partition follow."""

LISTS, CLICKS = range(2)
"""Columns of `Sums.groups`."""

_encode = msgspec.msgpack.Encoder().encode


class Trained(NamedTuple):
    """Whose lists are counted, and what a click is.

    Parameters
    ----------
    models
        Names of the trained models.
    most
        Interventions kept of each: the newest. The first policy is one of them.
    actions
        Whether each counts as a click; all others do if `counts_others`.
    """

    models: tuple[str, ...]
    most: int
    actions: dict[str, bool]
    counts_others: bool


def trained_of(settings: Settings) -> Trained | None:
    """Those of the settings; None where no model is trained."""
    models = [name for name, each in settings.models.items() if each.is_trained]
    if not models:
        return None
    statistics = settings.statistics
    return Trained(
        models=tuple(sorted(models)),
        most=settings.limits.interventions,
        actions={
            action: name == statistics.reward
            for action, name in sorted(statistics.actions.items())
        },
        counts_others=statistics.classes()[0] == statistics.reward,
    )


class InterventionLists:
    """The sums of one partition of the canonical log."""

    def __init__(self, trained: Trained, partition: int) -> None:
        self._trained = trained
        self._partition = partition
        prefixes = [f"{model}@" for model in trained.models]
        self._rules = Rules(
            prefixes, trained.actions, counts_others=trained.counts_others
        )
        self._sums: dict[str, Sums] = {}
        self._known: ctypes.Array[Any] | None = None
        self._written: dict[str, bytes] = {}
        self._gone: set[str] = set()

    def take(self, closed: Closed) -> None:
        """Count closed impressions; those of no intervention are not decoded."""
        first = 0
        while first < len(closed):
            if self._known is None:
                self._known = known_of(self._sums)
            first = take_lists(self._rules, self._known, closed, first)
            if first < len(closed):
                self._take(closed[first])
                first += 1

    def _take(self, interaction: Interaction) -> None:
        impression = interaction.impression
        name = impression.intervention
        if name not in self._sums and not self._is_kept(name):
            return
        sums = self._sums[name]
        n_ranks = len(impression.shown) // 2
        ranks = {
            mark.position
            for mark in interaction.clicks
            if 0 < mark.position <= n_ranks
            and self._trained.actions.get(mark.action, self._trained.counts_others)
        }
        sums.groups[impression.unit % N_GROUPS] += (1, len(ranks))
        extra = extra_of(impression.extra) if impression.extra else None
        sums.without_session[0] += not (extra and (extra.session or extra.user))

    def _is_kept(self, name: str) -> bool:
        """Make room for an intervention that is new, unless newer ones fill it."""
        model, pointer = place_of(name)
        if model not in self._trained.models:
            return False
        others = {
            other: at
            for other in self._sums
            for of_model, at in [place_of(other)]
            if of_model == model
        }
        if len(others) >= self._trained.most:
            oldest = min(others, key=others.__getitem__)
            if pointer < others[oldest]:
                return False
            del self._sums[oldest]
            self._gone.add(oldest)
        self._sums[name] = empty()
        self._gone.discard(name)
        self._known = None
        return True

    def sums(self) -> dict[str, Sums]:
        """What was counted, by intervention."""
        return dict(sorted(self._sums.items()))

    def changes(self) -> Iterator[Change]:
        """What changed since the last call."""
        for name in sorted(self._gone):
            if self._written.pop(name, None) is not None:
                yield Change(PREFERENCES, sums_key(name, self._partition), None)
        self._gone.clear()
        for name, sums in self.sums().items():
            value = encoded(sums)
            if self._written.get(name) != value:
                self._written[name] = value
                yield Change(PREFERENCES, sums_key(name, self._partition), value)

    def restore(self, name: str, value: bytes) -> None:
        """Take back what `changes` gave of an intervention."""
        if place_of(name)[0] in self._trained.models:
            self._sums[name] = decoded(name, value)
            self._written[name] = value
            self._known = None

    def fingerprint(self) -> bytes:
        """Counts that equal states share; empty where nothing was counted."""
        if not self._sums:
            return b""
        groups = sum(each.groups for each in self._sums.values())
        return struct.pack("<3q", len(self._sums), *np.sum(groups, axis=0).tolist())

    def n_lists(self) -> int:
        """Lists of all interventions that are kept."""
        return sum(int(each.groups[:, LISTS].sum()) for each in self._sums.values())


def empty() -> Sums:
    """Nothing yet."""
    return Sums(np.zeros((N_GROUPS, 2), np.int64), np.zeros(1, np.int64))


def sums_key(name: str, partition: int) -> bytes:
    """Where one partition keeps its share of an intervention."""
    return _encode([KIND, name, partition])


def name_of(key: bytes) -> str | None:
    """The intervention that a key is of; None of other keys."""
    try:
        kind, name, _ = msgspec.msgpack.decode(key, type=tuple[str, str, int])
    except (ValueError, RecursionError):
        return None
    return name if kind == KIND else None


def encoded(sums: Sums) -> bytes:
    """Sums as bytes that `decoded` takes; equal where they are equal."""
    groups = sums.groups.astype("<i8").tobytes()
    return _encode([SCHEMA, groups, int(sums.without_session[0])])


def decoded(name: str, value: bytes) -> Sums:
    """What `encoded` gave.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    where = f"preferences, intervention {name!r}"
    check_schema(value, SCHEMA, "the sums of an intervention", where)
    _, groups, without = msgspec.msgpack.decode(value, type=tuple[int, bytes, int])
    found = np.frombuffer(groups, "<i8").astype(np.int64).reshape(N_GROUPS, 2)
    return Sums(found, np.array([without], np.int64))


def merged(values: Mapping[bytes, bytes]) -> dict[str, Sums]:
    """Sums of all partitions, by intervention.

    Parameters
    ----------
    values
        The last value of each key of `preferences`.

    Raises
    ------
    SchemaRefused, ValueError
        Where another release wrote one, or something else.
    """
    found: dict[str, Sums] = {}
    for key in sorted(values):
        name = name_of(key)
        if name is not None:
            sums = decoded(name, values[key])
            mine = found.setdefault(name, empty())
            mine.groups[...] += sums.groups
            mine.without_session[...] += sums.without_session
    return found
