"""Which cell an impression belongs to, and which exposure row it was drawn from.

A *scope* is a query, a candidate set and an intervention; its cells are its
groups. A *place* is one exposure row of a scope, or stands for its impressions
without one. Numbers of scopes and places are internal and used again.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from models.counts.count_tables import CAPPED, N_GROUPS, WITH_ROW, WITHOUT_ROW, Int64
from models.counts.store import StatisticsStore
from rankstream.sections import LimitSettings
from rankstream.wire.events import MULTILEAVE, UNKNOWN, decode_items
from streams.fold import statistics_keys as keys
from streams.fold.statistics_columns import (
    let_go,
    no_places,
    number_of_key,
    with_places,
)
from streams.fold.statistics_keys import OPEN, OPEN_SET, OVERFLOW_SET, PlaceKey

Rows = NDArray[np.uint16]

MOST_UNROWED = 1 << 17
"""Places without a row are a cache; beyond this many it is emptied."""


class CandidateSet:
    """The items of a query that its cells speak of.

    `items` tells it from the query's other sets: the packed candidates, or the name
    of a set that grows.
    """

    __slots__ = ("_name", "items", "n_scopes", "numbers", "query")

    def __init__(self, query: str, items: bytes) -> None:
        self.query = query
        self.items = items
        self.n_scopes = 0
        is_growing = items in (OPEN_SET, OVERFLOW_SET)
        self.numbers: dict[str, int] | None = {} if is_growing else None
        self._name = items if is_growing else b""

    @property
    def name(self) -> bytes:
        """How keys call it; worked out when it is first written."""
        if not self._name:
            self._name = keys.set_name(self.items)
        return self._name

    def key(self) -> bytes:
        """Under which it is stored."""
        return keys.encode(["set", self.query, self.name])

    def value(self) -> bytes:
        """What is stored of the set."""
        if self.numbers is None:
            return b"\x92" + bytes((keys.SCHEMA,)) + self.items
        return keys.encode([keys.SCHEMA, list(self.numbers)])


class Scope:
    """A query, a candidate set and an intervention."""

    __slots__ = ("_prefixes", "candidate_set", "intervention", "query")

    def __init__(
        self, query: str, candidate_set: CandidateSet, intervention: str
    ) -> None:
        self.query = query
        self.candidate_set = candidate_set
        self.intervention = intervention
        # Made when first written.
        self._prefixes: tuple[bytes, bytes] | None = None

    def cell_prefix(self) -> bytes:
        """How the keys of its cells begin."""
        return self._both()[0]

    def row_prefix(self) -> bytes:
        """How the keys of its exposure rows begin."""
        return self._both()[1]

    def _both(self) -> tuple[bytes, bytes]:
        if self._prefixes is None:
            parts = (self.query, self.candidate_set.name, self.intervention)
            row_prefix = keys.prefix("row", *parts) + b"\xc4\x10"
            self._prefixes = keys.prefix("cell", *parts), row_prefix
        return self._prefixes


class Query:
    """The candidate sets of a query, and the scopes of sets and interventions."""

    __slots__ = ("scopes", "sets")

    def __init__(self) -> None:
        self.sets: dict[bytes, CandidateSet] = {}
        self.scopes: dict[tuple[bytes, str], int] = {}

    def is_full(self, items: bytes, intervention: str, limits: LimitSettings) -> bool:
        """Whether a new scope would be beyond the limits."""
        n_sets = len(self.sets) - (OVERFLOW_SET in self.sets)
        if items not in self.sets and n_sets >= limits.candidate_sets:
            return True
        known = {other for set_of, other in self.scopes if set_of != OVERFLOW_SET}
        return intervention not in known and len(known) >= limits.interventions


class Places:
    """All scopes and places of one partition.

    `table` finds the place of an impression; `add` says what a new one stands for.
    `maps` holds, for places of growing sets, the item number of each candidate.
    """

    def __init__(self, limits: LimitSettings, store: StatisticsStore) -> None:
        self.table = no_places()
        self.maps: dict[int, bytes] = {}
        self.rows: dict[int, PlaceKey] = {}
        self.scopes: dict[int, Scope] = {}
        self._changed_sets: dict[CandidateSet, None] = {}
        self._changed_rows: dict[int, None] = {}
        self._removed: dict[bytes, None] = {}
        self._limits = limits
        self._store = store
        self._queries: dict[str, Query] = {}
        self._row_keys: dict[int, bytes] = {}
        self._new: list[tuple[int, int, int]] = []
        self._unrowed: list[int] = []
        self._free_scopes: list[int] = []

    def make_room(self, n_more: int) -> None:
        """Have room in the table for so many new places."""
        self.table = with_places(self.table, n_more)

    def add_all(self, new: Iterable[tuple[int, PlaceKey]]) -> None:
        """Say what the impressions of each new place have in common."""
        for place, key in new:
            self._add(place, key)
        self._store.set_places(np.array(self._new, np.int32).reshape(-1, 3))
        self._new.clear()

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of the sets and rows that changed since the last call."""
        yield from self._removed.items()
        self._removed.clear()
        for candidate_set in self._changed_sets:
            yield candidate_set.key(), candidate_set.value()
        self._changed_sets.clear()
        for place in self._changed_rows:
            key, name = self.rows[place], keys.row_name(self.rows[place])
            self._store.name_place(place, name)
            scope = int(self._store.tables.place_scope[place])
            row_key = self._row_keys[place] = self.scopes[scope].row_prefix() + name
            yield row_key, keys.encode_row(_row_of(key))
        self._changed_rows.clear()

    def _add(self, place: int, key: PlaceKey) -> None:
        query, candidates, intervention, code, _, _ = key
        items = OPEN_SET if code & OPEN else candidates
        kind = WITHOUT_ROW if code & 7 in (UNKNOWN, MULTILEAVE) else WITH_ROW
        known = self._queries.get(query)
        if known is None:
            scope = self.scope(query, items, intervention)
        elif (items, intervention) in known.scopes:
            scope = known.scopes[items, intervention]
        elif known.is_full(items, intervention, self._limits):
            kind = CAPPED
            scope = self.scope(query, OVERFLOW_SET, "")
        else:
            scope = self.scope(query, items, intervention)
        self._place(place, key, scope, kind)

    def add_row(self, scope: int, row: keys.Row) -> int:
        """The place of a stored row, for which there is room."""
        owner = self.scopes[scope]
        code = row.policy | (OPEN if row.items else 0)
        key = (
            owner.query,
            row.items or owner.candidate_set.items,
            owner.intervention,
            code,
            2 * row.n_ranks,
            row.material,
        )
        place = number_of_key(self.table, key)
        self._place(place, key, scope, WITH_ROW)
        self._store.set_places(np.array(self._new, np.int32))
        self._new.clear()
        name = keys.row_name(key)
        self._store.name_place(place, name)
        self._row_keys[place] = owner.row_prefix() + name
        self._changed_rows.clear()
        return place

    def scope(self, query: str, items: bytes, intervention: str) -> int:
        """The number of a scope, made if it is not there."""
        known = self._queries.get(query)
        if known is None:
            known = self._queries[query] = Query()
        number = known.scopes.get((items, intervention))
        if number is not None:
            return number
        number = self._free_scopes.pop() if self._free_scopes else len(self.scopes)
        candidate_set = known.sets.get(items)
        if candidate_set is None:
            candidate_set = known.sets[items] = CandidateSet(query, items)
            self._changed_sets[candidate_set] = None
        candidate_set.n_scopes += 1
        self.scopes[number] = Scope(query, candidate_set, intervention)
        known.scopes[items, intervention] = number
        self._store.reserve_scope(number)
        return number

    def restore_set(self, query: str, name: bytes, value: bytes) -> bytes:
        """Take back a stored candidate set; returns its `items`."""
        items = name if name in (OPEN_SET, OVERFLOW_SET) else value[2:]
        numbered = keys.decode_set(value)
        restored = CandidateSet(query, items)
        self._queries.setdefault(query, Query()).sets[items] = restored
        if restored.numbers is not None:
            restored.numbers.update((item, i) for i, item in enumerate(numbered))
        return items

    def maps_of(self, places: NDArray[np.int32]) -> tuple[Int64, NDArray[np.int32]]:
        """Where the item numbers of each place begin, -1 without any; and they.

        `places` [n].
        """
        starts = np.full(len(places), -1, np.int64)
        maps: list[bytes] = []
        if self.maps:
            start = 0
            for i, place in enumerate(places.tolist()):
                if place in self.maps:
                    maps.append(self.maps[place])
                    starts[i] = start
                    start += len(maps[-1]) // 4
        return starts, np.frombuffer(b"".join(maps), np.int32)

    def trim(self) -> None:
        """Keep the cache of places without a row small."""
        if len(self._unrowed) > MOST_UNROWED:
            self.forget_unrowed()

    def forget_unrowed(self) -> None:
        """Empty the cache of places without a row."""
        for place in self._unrowed:
            self.maps.pop(place, None)
        let_go(self.table, np.array(self._unrowed, np.int32))
        self._unrowed.clear()

    def remove_rows(self, places: list[int]) -> None:
        """Remove exposure rows that no cell counts any more."""
        for place in places:
            del self.rows[place]
            self.maps.pop(place, None)
            self._changed_rows.pop(place, None)
            row_key = self._row_keys.pop(place, None)
            # Without a key it was never written.
            if row_key is not None:
                self._removed[row_key] = None
        let_go(self.table, np.array(places, np.int32))

    def remove_empty_scopes(self, numbers: set[int]) -> None:
        """Remove those of the scopes that have no cell left."""
        for number in sorted(numbers):
            first = number * N_GROUPS
            cells = (
                self._store.cell_of_slot(slot)
                for slot in range(first, first + N_GROUPS)
            )
            if all(cell < 0 for cell in cells):
                self._remove_scope(number)

    def unreferred_rows(self) -> list[int]:
        """Places whose row no cell counts."""
        places = np.fromiter(self.rows, np.int32, len(self.rows))
        left: list[int] = places[~self._store.is_referred(places)].tolist()
        return left

    def items_of(self, place: int, rows: Rows) -> NDArray[np.int32]:
        """Item numbers of `rows` [n] of a place's candidates."""
        if place not in self.maps:
            return rows.astype(np.int32)
        items: NDArray[np.int32] = np.frombuffer(self.maps[place], np.int32)[rows]
        return items

    def cell_keys(self, slots: Iterator[int]) -> Iterator[bytes]:
        """The keys of the cells at slots."""
        for slot in slots:
            scope, group = divmod(slot, N_GROUPS)
            yield self.scopes[scope].cell_prefix() + bytes((group,))

    def _remove_scope(self, number: int) -> None:
        scope = self.scopes.pop(number)
        candidate_set = scope.candidate_set
        query = self._queries[scope.query]
        del query.scopes[candidate_set.items, scope.intervention]
        self._free_scopes.append(number)
        candidate_set.n_scopes -= 1
        if not candidate_set.n_scopes:
            del query.sets[candidate_set.items]
            self._changed_sets.pop(candidate_set, None)
            self._removed[candidate_set.key()] = None
        if not query.sets:
            del self._queries[scope.query]

    def _place(self, place: int, key: PlaceKey, scope: int, kind: int) -> None:
        owner = self.scopes[scope]
        _, candidates, _, code, length, material = key
        is_shared = not code & OPEN and kind != CAPPED
        if is_shared and candidates is not owner.candidate_set.items:
            # One copy of the candidates for all rows of a set.
            candidates = owner.candidate_set.items
            key = (owner.query, candidates, owner.intervention, code, length, material)
        self._new.append((place, scope, kind))
        if kind == WITH_ROW:
            self.rows[place] = key
            self._changed_rows[place] = None
        else:
            self._unrowed.append(place)
        if owner.candidate_set.numbers is not None:
            self.maps[place] = self._mapped(owner.candidate_set, candidates)

    def _mapped(self, growing: CandidateSet, candidates: bytes) -> bytes:
        numbers = growing.numbers
        if numbers is None:
            raise ValueError("only a growing set maps items; got a closed one")
        n_before = len(numbers)
        mapped = [
            numbers.setdefault(item, len(numbers)) for item in decode_items(candidates)
        ]
        if len(numbers) != n_before:
            self._changed_sets[growing] = None
        return np.array(mapped, np.int32).tobytes()


def _row_of(key: PlaceKey) -> keys.Row:
    _, candidates, _, code, length, material = key
    items = candidates if code & OPEN else b""
    return keys.Row(code & 7, length // 2, material, items)
