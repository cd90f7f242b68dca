"""Lists and clicks by intervention of a deployed model, in groups of sessions.

Kept beside the comparisons: what an intervention earned while it was shown, with what
an interval for sessions to come needs. Lists of the policy before the first one, which
bear the name of the model alone, are counted under that. The common cases are counted
in C.

Names come with events, and anybody may send one of a version that never was. So a name
alone pushes nobody out: of a model that has as many as are kept, the one with the
fewest lists leaves for a new one. Lists that are lost so are counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from rankstream.wire.events import Interaction
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.extra import SCHEMA, extra_of, name_in, named_key
from streams.native.closed_impressions import Closed
from streams.native.intervention_lists import (
    N_GROUPS,
    Rules,
    Sums,
    Table,
)
from streams.stage import Change

KIND = "intervention"
"""How keys of these sums begin; name and partition follow."""

UNCOUNTED = b"\x92\xa9uncounted"
"""How the keys of lists that are in no sums begin; the partition follows."""

LISTS, CLICKS = range(2)
"""Columns of `Sums.groups`."""

_encode = msgspec.msgpack.Encoder().encode


class InterventionLists:
    """The sums of one partition of the canonical log."""

    def __init__(self, rules: Rules, partition: int) -> None:
        self._rules = rules
        self._partition = partition
        self._table = Table(rules)
        self._written: dict[str, bytes] = {}
        self._written_uncounted = 0

    def take(self, closed: Closed) -> None:
        """Count closed impressions; those of no intervention are not decoded."""
        first = 0
        while first < len(closed):
            first = self._table.take(closed, first)
            if first < len(closed):
                self._take(closed[first])
                first += 1

    def _take(self, interaction: Interaction) -> None:
        impression = interaction.impression
        n_ranks = len(impression.shown) // 2
        ranks = {
            mark.position
            for mark in interaction.clicks
            if 0 < mark.position <= n_ranks
            and self._rules.actions.get(mark.action, self._rules.counts_others)
        }
        extra = extra_of(impression.extra) if impression.extra else None
        self._table.add(
            impression.intervention,
            impression.unit % N_GROUPS,
            len(ranks),
            without_session=not (extra and (extra.session or extra.user)),
        )

    def sums(self) -> dict[str, Sums]:
        """What was counted, by intervention; a copy."""
        table = self._table
        return {
            name: Sums(*(each.copy() for each in table.sums(row)))
            for name, row in table.rows().items()
        }

    def changes(self) -> Iterator[Change]:
        """What changed since the last call."""
        table = self._table
        rows = table.rows()
        for name in sorted(self._written.keys() - rows.keys()):
            del self._written[name]
            yield Change(PREFERENCES, sums_key(name, self._partition), None)
        for name, row in rows.items():
            value = encoded(table.sums(row), table.begun(row))
            if self._written.get(name) != value:
                self._written[name] = value
                yield Change(PREFERENCES, sums_key(name, self._partition), value)
        if self._written_uncounted != table.n_uncounted:
            self._written_uncounted = table.n_uncounted
            value = _encode([SCHEMA, table.n_uncounted])
            yield Change(PREFERENCES, UNCOUNTED + _encode(self._partition), value)

    def restore(self, name: str, value: bytes) -> None:
        """Take back what `changes` gave of an intervention."""
        sums, begun = _decoded(name, value)
        if self._table.put(name, sums, begun):
            self._written[name] = value

    def restore_uncounted(self, value: bytes) -> None:
        """Take back what `changes` gave of the others."""
        where = f"preferences[{self._partition}], key 'uncounted'"
        check_schema(value, SCHEMA, "lists that are not counted", where)
        _, n = msgspec.msgpack.decode(value, type=tuple[int, int])
        self._table.n_uncounted = self._written_uncounted = n

    def fingerprint(self) -> bytes:
        """Counts that equal states share; empty where nothing was counted."""
        sums = self.sums()
        if not sums:
            return b""
        groups = sum(each.groups for each in sums.values())
        return struct.pack("<3q", len(sums), *np.sum(groups, axis=0).tolist())

    def n_lists(self) -> int:
        """Lists of all interventions, also of those that were not kept."""
        kept = sum(int(each.groups[:, LISTS].sum()) for each in self.sums().values())
        return kept + self.n_uncounted()

    def n_uncounted(self) -> int:
        """Lists of interventions that were not kept."""
        return self._table.n_uncounted


def empty() -> Sums:
    """Nothing yet."""
    return Sums(np.zeros((N_GROUPS, 2), np.int64), np.zeros(1, np.int64))


def sums_key(name: str, partition: int) -> bytes:
    """Where one partition keeps its share of an intervention."""
    return named_key(KIND, name, partition)


def name_of(key: bytes) -> str | None:
    """The intervention that a key is of; None of other keys."""
    return name_in(key, KIND)


def encoded(sums: Sums, begun: int = 0) -> bytes:
    """Sums as bytes that `decoded` takes; equal where they are equal.

    Parameters
    ----------
    sums
        Of an intervention.
    begun
        When it began, among those of its model.
    """
    groups = sums.groups.astype("<i8").tobytes()
    return _encode([SCHEMA, groups, int(sums.without_session[0]), begun])


def decoded(name: str, value: bytes) -> Sums:
    """What `encoded` gave.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    return _decoded(name, value)[0]


def _decoded(name: str, value: bytes) -> tuple[Sums, int]:
    where = f"preferences, intervention {name!r}"
    check_schema(value, SCHEMA, "the sums of an intervention", where)
    _, groups, without, begun = msgspec.msgpack.decode(
        value, type=tuple[int, bytes, int, int]
    )
    found = np.frombuffer(groups, "<i8").astype(np.int64).reshape(N_GROUPS, 2)
    return Sums(found, np.array([without], np.int64)), begun


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
