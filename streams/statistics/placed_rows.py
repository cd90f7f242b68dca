"""Where exposure rows may place items, each distinct row computed once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.counts.fixed_point import Int64
from rankstream.wire.events import LOGGED, PLACKETT_LUCE, POLICIES, decode_items
from rankstream.wire.exposures import unpack_exposures
from streams.native.placing import placements_of_scores
from streams.statistics.keys import Row
from streams.statistics.scopes import ScopeBatch, SortedItems


def placement_of(row: Row, n_items: int) -> Floats:
    """P(item at rank) of a stored row, axes items, ranks.

    `n_items` is the number of items that its material refers to.

    Raises
    ------
    ValueError
        If its policy is none that has rows.
    """
    if row.policy == PLACKETT_LUCE:
        scores = np.frombuffer(row.material, "<f4").astype(np.float64)
        matrix: Floats = placements_of_scores(scores[None, :], row.n_ranks)[0]
        return matrix
    if row.policy != LOGGED:
        raise ValueError(
            "policy of an exposure row must be plackett-luce or logged; got "
            f"{POLICIES[row.policy]}"
        )
    exposures = unpack_exposures(row.material, n_items, row.n_ranks)
    return exposures.astype(np.float64)


def placement_in_set(row: Row, items: Sequence[str]) -> Floats:
    """P(item at rank) of a stored row, [n_items, n_ranks], of `items` [n_items]."""
    if not row.items:
        return placement_of(row, len(items))
    own = decode_items(row.items)
    number = {item: i for i, item in enumerate(items)}
    matrix = np.zeros((len(items), row.n_ranks))
    for item, placed in zip(own, placement_of(row, len(own)), strict=True):
        if item in number:
            matrix[number[item]] = placed
    return matrix


MOST_PLACES = 1 << 20
"""Places that are remembered from one batch to the next: 24 MB."""


class Placed(NamedTuple):
    """Places with a chance, those of one row after those of another.

    Parameters
    ----------
    starts : [n_rows + 1]
        Places of row i stand from `starts[i]` to `starts[i + 1]`.
    items, ranks, probabilities : [n_places]
        Numbers of the sorted set; ranks from 1; above 0.
    """

    starts: Int64
    items: Int64
    ranks: Int64
    probabilities: Floats


_Places = tuple[Int64, Int64, Floats]


class PlacedRows:
    """Remembers what rows place: those of other scopes and eras are often the same."""

    def __init__(self) -> None:
        self._n_places = 0
        self._known: dict[tuple[int, Row], _Places] = {}

    def of(self, batch: ScopeBatch, by_id: SortedItems) -> Placed:
        """What the rows of a batch place."""
        found = []
        for row, scope in zip(batch.rows, batch.row_scopes.tolist(), strict=True):
            items, ranks, probabilities = self._places(row, len(batch.items[scope]))
            if row.items:
                items = _in_set(row, batch.items[scope])[items]
                is_there = items >= 0
                items, ranks = items[is_there], ranks[is_there]
                probabilities = probabilities[is_there]
            items = by_id.renumbered(np.full(len(items), scope), items)
            found.append((items, ranks, probabilities))
        starts = np.cumsum([0, *(len(ranks) for _, ranks, _ in found)])
        empty: _Places = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        columns = zip(*[*found, empty], strict=True)
        items, ranks, probabilities = (np.concatenate(column) for column in columns)
        return Placed(starts, items, ranks, probabilities)

    def _places(self, row: Row, n_items: int) -> _Places:
        key = (0 if row.items else n_items, row)
        found = self._known.get(key)
        if found is None:
            n_own = len(decode_items(row.items)) if row.items else n_items
            matrix = placement_of(row, n_own)
            items, columns = np.nonzero(matrix > 0)
            found = items, columns + 1, matrix[items, columns]
            self._n_places += len(items)
            if self._n_places > MOST_PLACES:
                self._known.clear()
                self._n_places = len(items)
            self._known[key] = found
        return found


def _in_set(row: Row, items: tuple[str, ...]) -> Int64:
    """Numbers in a set of the items that a row names; -1 for those of another."""
    number = {item: i for i, item in enumerate(items)}
    return np.array([number.get(x, -1) for x in decode_items(row.items)], np.int64)
