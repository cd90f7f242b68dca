"""Which cell an impression belongs to, and which exposure row it was drawn from.

A *scope* is a query, a candidate set and an intervention; its cells are its
groups. A *place* is one exposure row of a scope, or stands for its impressions
without one. Numbers of scopes and places are internal and used again.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from models.counting_tables import CAPPED, N_GROUPS, WITH_ROW, WITHOUT_ROW
from models.statistics_store import StatisticsStore
from rankstream.events import MULTILEAVE, UNKNOWN, decode_items
from rankstream.settings import LimitSettings
from streams.folds import statistics_keys as keys
from streams.folds.statistics_keys import OPEN, OPEN_SET, OVERFLOW_SET, PlaceKey

Rows = NDArray[np.uint16]

MOST_UNROWED = 1 << 17
"""Places without a row are a cache; beyond this many it is emptied."""


class CandidateSet:
    """The items of a query that its cells speak of."""

    __slots__ = ("candidates", "key", "n_scopes", "name", "numbers")

    def __init__(self, query: str, name: bytes, candidates: bytes) -> None:
        self.name = name
        self.key = keys.encode(["set", query, name])
        self.candidates = candidates
        self.n_scopes = 0
        is_growing = name in (OPEN_SET, OVERFLOW_SET)
        self.numbers: dict[str, int] | None = {} if is_growing else None

    def value(self) -> bytes:
        """What is stored of the set."""
        if self.numbers is None:
            return b"\x92" + bytes((keys.SCHEMA,)) + self.candidates
        return keys.encode([keys.SCHEMA, list(self.numbers)])


class Scope:
    """A query, a candidate set and an intervention."""

    __slots__ = ("candidate_set", "cell_prefix", "intervention", "query", "row_prefix")

    def __init__(
        self, query: str, candidate_set: CandidateSet, intervention: str
    ) -> None:
        self.query = query
        self.candidate_set = candidate_set
        self.intervention = intervention
        parts = (query, candidate_set.name, intervention)
        self.cell_prefix = keys.prefix("cell", *parts)
        self.row_prefix = keys.prefix("row", *parts) + b"\xc4\x10"


class Query:
    """The candidate sets and interventions of a query, to hold them to limits."""

    __slots__ = ("interventions", "sets")

    def __init__(self) -> None:
        self.sets: dict[bytes, CandidateSet] = {}
        self.interventions: dict[str, int] = {}


class Places:
    """All scopes and places of one partition.

    `known` finds the place of an impression; where it has none, `add` makes one.
    `maps` holds, for places of growing sets, the item number of each candidate.
    """

    def __init__(self, limits: LimitSettings, store: StatisticsStore) -> None:
        self.known: dict[PlaceKey, int] = {}
        self.maps: dict[int, bytes] = {}
        self.rows: dict[int, PlaceKey] = {}
        self.scopes: dict[int, Scope] = {}
        self.changed_sets: dict[bytes, CandidateSet | None] = {}
        self.changed_rows: dict[bytes, PlaceKey | None] = {}
        self._limits = limits
        self._store = store
        self._scope_numbers: dict[tuple[str, bytes, str], int] = {}
        self._queries: dict[str, Query] = {}
        self._row_keys: dict[int, bytes] = {}
        self._unrowed: list[PlaceKey] = []
        self._free_places: list[int] = []
        self._free_scopes: list[int] = []

    def add(self, key: PlaceKey) -> int:
        """The place of impressions that are not known yet."""
        query, candidates, intervention, code, _, _ = key
        name = OPEN_SET if code & OPEN else keys.set_name(candidates)
        scope = self._scope_numbers.get((query, name, intervention))
        kind = WITHOUT_ROW if code & 7 in (UNKNOWN, MULTILEAVE) else WITH_ROW
        if scope is None and self._is_full(query, name, intervention):
            kind = CAPPED
            scope = self.scope(query, OVERFLOW_SET, "")
        elif scope is None:
            scope = self.scope(query, name, intervention, candidates)
        return self._place(key, scope, kind)

    def add_row(self, scope: int, row: keys.Row) -> int:
        """The place of a stored row."""
        owner = self.scopes[scope]
        code = row.policy | (OPEN if row.items else 0)
        key = (
            owner.query,
            row.items or owner.candidate_set.candidates,
            owner.intervention,
            code,
            2 * row.n_ranks,
            row.material,
        )
        place = self._place(key, scope, WITH_ROW)
        self.changed_rows.clear()
        return place

    def scope(
        self, query: str, name: bytes, intervention: str, candidates: bytes = b""
    ) -> int:
        """The number of a scope, made if it is not there."""
        number = self._scope_numbers.get((query, name, intervention))
        if number is not None:
            return number
        number = self._free_scopes.pop() if self._free_scopes else len(self.scopes)
        candidate_set = self.candidate_set(query, name, candidates)
        candidate_set.n_scopes += 1
        self.scopes[number] = Scope(query, candidate_set, intervention)
        self._scope_numbers[query, name, intervention] = number
        if name != OVERFLOW_SET:
            counts = self._queries[query].interventions
            counts[intervention] = counts.get(intervention, 0) + 1
        self._store.reserve_scope(number)
        return number

    def candidate_set(self, query: str, name: bytes, candidates: bytes) -> CandidateSet:
        """A candidate set, made if it is not there."""
        sets = self._queries.setdefault(query, Query()).sets
        found = sets.get(name)
        if found is None:
            found = sets[name] = CandidateSet(query, name, candidates)
            self.changed_sets[found.key] = found
        return found

    def restore_set(self, query: str, name: bytes, value: bytes) -> None:
        """Take back a stored candidate set."""
        items = keys.decode_set(value)
        restored = self.candidate_set(query, name, value[2:])
        if restored.numbers is not None:
            restored.numbers.update((item, i) for i, item in enumerate(items))
        self.changed_sets.clear()

    def trim(self) -> None:
        """Keep the cache of places without a row small."""
        if len(self._unrowed) > MOST_UNROWED:
            self.forget_unrowed()

    def forget_unrowed(self) -> None:
        """Empty the cache of places without a row."""
        for key in self._unrowed:
            place = self.known.pop(key)
            self.maps.pop(place, None)
            self._free_places.append(place)
        self._unrowed.clear()

    def remove_rows(self, places: list[int]) -> None:
        """Remove exposure rows that no cell counts any more."""
        for place in places:
            del self.known[self.rows.pop(place)]
            self.maps.pop(place, None)
            self.changed_rows[self._row_keys.pop(place)] = None
            self._free_places.append(place)

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
        """Item numbers of rows of a place's candidates."""
        if place not in self.maps:
            return rows.astype(np.int32)
        items: NDArray[np.int32] = np.frombuffer(self.maps[place], np.int32)[rows]
        return items

    def cell_keys(self, slots: Iterator[int]) -> Iterator[bytes]:
        """The keys of the cells at slots."""
        for slot in slots:
            scope, group = divmod(slot, N_GROUPS)
            yield self.scopes[scope].cell_prefix + bytes((group,))

    def _remove_scope(self, number: int) -> None:
        scope = self.scopes.pop(number)
        candidate_set = scope.candidate_set
        del self._scope_numbers[scope.query, candidate_set.name, scope.intervention]
        self._free_scopes.append(number)
        query = self._queries[scope.query]
        if candidate_set.name != OVERFLOW_SET:
            query.interventions[scope.intervention] -= 1
            if not query.interventions[scope.intervention]:
                del query.interventions[scope.intervention]
        candidate_set.n_scopes -= 1
        if not candidate_set.n_scopes:
            del query.sets[candidate_set.name]
            self.changed_sets[candidate_set.key] = None
        if not query.sets:
            del self._queries[scope.query]

    def _is_full(self, query: str, name: bytes, intervention: str) -> bool:
        known = self._queries.get(query)
        if known is None:
            return False
        n_sets = len(known.sets) - (OVERFLOW_SET in known.sets)
        limits = self._limits
        return (name not in known.sets and n_sets >= limits.candidate_sets) or (
            intervention not in known.interventions
            and len(known.interventions) >= limits.interventions
        )

    def _place(self, key: PlaceKey, scope: int, kind: int) -> int:
        owner = self.scopes[scope]
        _, candidates, _, code, length, material = key
        if not code & OPEN and kind != CAPPED:
            # One copy of the candidates for all rows of a set.
            candidates = owner.candidate_set.candidates
            key = (owner.query, candidates, owner.intervention, code, length, material)
        n_places = len(self.known)
        place = self._free_places.pop() if self._free_places else n_places
        self.known[key] = place
        name = keys.row_name(key) if kind == WITH_ROW else b""
        self._store.set_place(place, scope, kind, name)
        if kind == WITH_ROW:
            self.rows[place] = key
            row_key = self._row_keys[place] = owner.row_prefix + name
            self.changed_rows[row_key] = key
        else:
            self._unrowed.append(key)
        if owner.candidate_set.numbers is not None:
            self.maps[place] = self._mapped(owner.candidate_set, candidates)
        return place

    def _mapped(self, growing: CandidateSet, candidates: bytes) -> bytes:
        numbers = growing.numbers
        if numbers is None:
            raise ValueError("only a growing set maps items; got a closed one")
        n_before = len(numbers)
        mapped = [
            numbers.setdefault(item, len(numbers)) for item in decode_items(candidates)
        ]
        if len(numbers) != n_before:
            self.changed_sets[growing.key] = growing
        return np.array(mapped, np.int32).tobytes()
