"""What lies in the topic `statistics`, query by query, without holding its values.

The last value of each key counts. Which that is, is found where a query is asked for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rankstream.wire.schemas import schema_of
from streams.state_pieces import Parts, is_split
from streams.statistics import keys
from streams.statistics.keys import Counted, ScopeName
from streams.statistics.value_spool import Span, ValueSpool

MOST_HELD = 8 << 20
"""Values of a query up to so many bytes are held while it is the last one."""

_LENGTHS = {"scope": 4, "piece": 5, "lists": 5, "set": 3, "row": 5}
"""Parts of a key behind its kind."""


class QueryRecords(Mapping[bytes, bytes]):
    """Keys of the records of one query, by what they are of.

    Parameters
    ----------
    spool
        Has the records.
    oldest
        The least era that lives.
    """

    def __init__(self, spool: ValueSpool, query: str, oldest: float) -> None:
        self._spool = spool
        self._latest: dict[bytes, Span] = {}
        self._held: dict[bytes, bytes] = {}
        places = spool.places(query)
        is_held = sum(place.length for place in places) <= MOST_HELD
        for place in places:
            key, value = spool.record(place)
            self._held.pop(key, None)
            self._latest.pop(key, None)
            if value:
                self._latest[key] = place
            if value and is_held:
                self._held[key] = value
        self.scopes: dict[ScopeName, bytes] = {}
        self.pieces: dict[ScopeName, dict[int, bytes]] = defaultdict(dict)
        self.lists: dict[ScopeName, dict[int, bytes]] = defaultdict(dict)
        self.sets: dict[tuple[bytes, int], bytes] = {}
        self.rows: dict[ScopeName, dict[bytes, bytes]] = defaultdict(dict)
        for key in self._latest:
            self._place(key, oldest)

    def _place(self, key: bytes, oldest: float) -> None:
        kind, *rest = keys.decode(key)
        # Keys of an earlier release have other lengths; their values are refused.
        if len(rest) != _LENGTHS.get(kind):
            return
        if kind == "scope":
            if rest[3] >= oldest:
                self.scopes[ScopeName(*rest)] = key
        elif kind == "piece":
            self.pieces[ScopeName(*rest[:4])][rest[4]] = key
        elif kind == "lists":
            self.lists[ScopeName(*rest[:4])][rest[4]] = key
        elif kind == "set":
            self.sets[rest[1], rest[2]] = key
        elif kind == "row":
            self.rows[ScopeName(*rest[:4])][rest[4]] = key

    def check(self) -> None:
        """Compare the schemas of all values.

        Raises
        ------
        SchemaRefused
        """
        for key in self._latest:
            kind = keys.decode(key)[0]
            if kind != "part":
                keys.check_value(kind, key, self.value(key))

    def value(self, key: bytes) -> bytes:
        """A whole value.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        """
        value = self[key]
        if is_split(value):
            value = Parts().value(key, self)
        if schema_of(value) != keys.SCHEMA:
            keys.check_value(keys.decode(key)[0], key, value)
        return value

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._latest)

    def __len__(self) -> int:
        return len(self._latest)

    def __getitem__(self, key: bytes) -> bytes:
        held = self._held.get(key)
        return held if held is not None else self._spool.record(self._latest[key])[1]


class StatisticsIndex:
    """Records of the topic by query, and what was counted of each partition.

    Raises
    ------
    SchemaRefused
        Where another release wrote a value.
    """

    def __init__(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._spool = ValueSpool()
        counted: dict[bytes, bytes] = {}
        # Values of other schemas are refused only if nothing came after them.
        suspects: set[str] = set()
        for key, value in items:
            kind, query = _kind_and_query(key)
            if kind == "counted":
                if value:
                    counted[key] = value
                else:
                    counted.pop(key, None)
                continue
            self._spool.add(query, key, value or b"")
            if value and not _is_of_ours(kind, value):
                suspects.add(query)
        self.counted: tuple[Counted, ...] = tuple(
            keys.decode_counted(value) for value in counted.values()
        )
        oldest = [one.oldest for one in self.counted if one.oldest is not None]
        self.oldest: float = min(oldest, default=-np.inf)
        self._last: tuple[str, QueryRecords] | None = None
        for query in sorted(suspects):
            self.of(query).check()

    def queries(self) -> list[str]:
        """Queries of which there was anything, sorted."""
        return self._spool.names()

    def of(self, query: str) -> QueryRecords:
        """What there is of a query; the last one that was asked for is remembered."""
        if self._last is None or self._last[0] != query:
            self._last = query, QueryRecords(self._spool, query, self.oldest)
        return self._last[1]

    def all(self) -> Iterator[QueryRecords]:
        """Each query's records, sorted by query."""
        for query in self.queries():
            yield self.of(query)


def _is_of_ours(kind: str, value: bytes) -> bool:
    if kind == "part":
        return True
    return kind not in keys.OLD_KINDS and (
        is_split(value) or schema_of(value) == keys.SCHEMA
    )


def _kind_and_query(key: bytes) -> tuple[str, str]:
    parts: Any = keys.decode(key)
    if parts[0] != "part":
        return parts[0], str(parts[1]) if len(parts) > 1 else ""
    return "part", str(keys.decode(parts[1])[1])
