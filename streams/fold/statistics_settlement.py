"""Placement probabilities that counting asked for, computed apart from it.

Clicks under Plackett-Luce wait here for P(item at rank), and exposure rows that a
cell had no room for wait to be summed. What comes out are integer sums, so it
does not matter when they are settled, or with what others.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from models.counts.count_kernel import Later
from models.counts.count_tables import LEAST_PROBABILITY, Int32
from models.counts.exposure_overflow import (
    placements_of,
    placements_of_lists,
    tail_shuffle_matrix,
)
from models.counts.store import StatisticsStore
from rankstream.wire.arrays import n_items_of
from rankstream.wire.events import DETERMINISTIC, PLACKETT_LUCE, TAIL_SHUFFLE
from rankstream.wire.exposures import unpack_exposures
from streams.fold.native.placing import placements_of_scores
from streams.fold.statistics_places import Places

Floats = NDArray[np.float64]

CACHED_PROBABILITIES = 1 << 23
"""Placement probabilities that are kept for the next time, in all (64 MiB)."""

BATCH_PROBABILITIES = 1 << 20
"""Placement matrices are computed in batches of about so many probabilities."""


class Settlement:
    """What waits for placement probabilities, and those already computed."""

    def __init__(self, places: Places, store: StatisticsStore) -> None:
        self._places = places
        self._store = store
        self._evicted: list[Int32] = []
        self._waiting: list[Int32] = []
        self._computed: dict[int, Floats] = {}
        self._n_computed = 0

    @property
    def n_waiting(self) -> int:
        """Clicks and exposure rows that wait."""
        return sum(map(len, self._evicted)) + sum(map(len, self._waiting))

    def add(self, later: Later) -> None:
        """Take what a batch left to do."""
        if len(later.evicted):
            self._evicted.append(later.evicted)
        if len(later.waiting):
            self._waiting.append(later.waiting)

    def settle(self) -> None:
        """Do what waits, then let go of exposure rows that no cell counts."""
        if not self._evicted and not self._waiting:
            return
        evicted = np.concatenate([np.empty((0, 3), np.int32), *self._evicted])
        waiting = np.concatenate([np.empty((0, 5), np.int32), *self._waiting])
        self._evicted.clear()
        self._waiting.clear()
        self._add_inverses(waiting)
        self._overflow(evicted)
        places = np.unique(evicted[:, 1])
        left = places[~self._store.is_referred(places)].tolist()
        for place in left:
            self.forget(place)
        self._places.remove_rows(left)

    def forget(self, place: int) -> None:
        """Drop the placement probabilities of a row that goes."""
        matrix = self._computed.pop(place, None)
        if matrix is not None:
            self._n_computed -= matrix.size

    def _add_inverses(self, waiting: Int32) -> None:
        for places in self._batches(np.unique(waiting[:, 3]).tolist()):
            matrices = self._plackett_luce(places)
            mine = waiting[np.isin(waiting[:, 3], places)]
            probabilities = [
                matrices[place][row, rank - 1]
                for rank, place, row in mine[:, 2:].tolist()
            ]
            # Whatever was shown had a chance, however small its computed value.
            least = np.maximum(probabilities, LEAST_PROBABILITY / 2)
            self._store.add_inverses(
                np.ascontiguousarray(mine[:, 0]),
                np.ascontiguousarray(mine[:, 1]),
                least,
            )

    def _overflow(self, evicted: Int32) -> None:
        rows = self._places.rows
        by_shape: dict[tuple[int, int, int], list[int]] = {}
        for place in np.unique(evicted[:, 1]).tolist():
            _, candidates, _, code, length, _ = rows[place]
            n_items = 0 if code & 7 == DETERMINISTIC else n_items_of(candidates)
            shape = (code & 7, length // 2, n_items)
            by_shape.setdefault(shape, []).append(place)
        for (policy, n_ranks, n_items), places in by_shape.items():
            for some in self._batches(places):
                self._overflow_rows(evicted, some, (policy, n_ranks, n_items))

    def _overflow_rows(
        self, evicted: Int32, places: list[int], shape: tuple[int, int, int]
    ) -> None:
        policy, n_ranks, n_items = shape
        rows = self._places.rows
        materials = [rows[place][5] for place in places]
        if policy == DETERMINISTIC:
            lists = [
                self._places.items_of(place, np.frombuffer(material, "<u2"))
                for place, material in zip(places, materials, strict=True)
            ]
            placements = placements_of_lists(lists)
        elif policy == TAIL_SHUFFLE:
            first = [np.frombuffer(one, "<u2").astype(np.int32) for one in materials]
            placements = placements_of(
                np.stack([tail_shuffle_matrix(one, n_items) for one in first])
            )
        elif policy == PLACKETT_LUCE:
            computed = self._plackett_luce(places)
            placements = placements_of(np.stack([computed[p] for p in places]))
        else:
            logged = [unpack_exposures(one, n_items, n_ranks) for one in materials]
            placements = placements_of(np.stack(logged).astype(np.float64))
        mine = evicted[np.isin(evicted[:, 1], places)]
        mine[:, 1] = np.searchsorted(places, mine[:, 1])
        self._store.overflow(mine, placements)

    def _plackett_luce(self, places: list[int]) -> dict[int, Floats]:
        """Placement matrices by place; those not known yet are computed together."""
        rows, computed = self._places.rows, self._computed
        found = {p: computed[p] for p in places if p in computed}
        missing: dict[tuple[int, int], list[int]] = {}
        for place in places:
            if place not in found:
                _, _, _, _, length, material = rows[place]
                missing.setdefault((len(material) // 4, length // 2), []).append(place)
        for (n_items, n_ranks), group in missing.items():
            scores = np.frombuffer(b"".join(rows[p][5] for p in group), "<f4")
            matrices = placements_of_scores(
                scores.reshape(-1, n_items).astype(np.float64), n_ranks
            )
            found.update(zip(group, matrices, strict=True))
            self._keep(group, matrices)
        return found

    def _keep(self, places: list[int], matrices: Floats) -> None:
        for place, matrix in zip(places, matrices, strict=True):
            if matrix.size > CACHED_PROBABILITIES // 8:
                continue
            # The copy lets go of the rest of the batch.
            self._computed[place] = matrix.copy()
            self._n_computed += matrix.size
        while self._n_computed > CACHED_PROBABILITIES:
            self.forget(next(iter(self._computed)))

    def _batches(self, places: list[int]) -> Iterator[list[int]]:
        """Places in pieces of bounded size; sorted."""
        piece: list[int] = []
        n_probabilities = 0
        for place in places:
            _, candidates, _, _, length, _ = self._places.rows[place]
            piece.append(place)
            n_probabilities += n_items_of(candidates) * (length // 2)
            if n_probabilities >= BATCH_PROBABILITIES:
                yield piece
                piece, n_probabilities = [], 0
        if piece:
            yield piece
