"""Closed candidate sets as decisions are made for them, and lists that have none."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from models.arrays import Integers
from models.counts.fixed_point import Int64
from models.counts.scope_record import CAPPED, CONVERTED
from streams.decisions.refused import Refused
from streams.statistics.scopes import ScopeBatch, SortedItems


class CandidateSets(NamedTuple):
    """Closed candidate sets of queries, in the order of the statistics.

    Parameters
    ----------
    queries, names : [n_sets]
        Query and name of the set.
    items : [n_sets]
        Ids of its items, sorted.
    starts : [n_sets + 1]
        Where the items of each set begin, all sets one after another.
    """

    queries: tuple[str, ...]
    names: tuple[bytes, ...]
    items: tuple[tuple[str, ...], ...]
    starts: Integers


class ClosedSets:
    """Numbers sets as they come, and counts lists of scopes that cannot be used."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._items: list[tuple[str, ...]] = []
        self._refused: Counter[Refused] = Counter()

    def take(self, batch: ScopeBatch, by_id: SortedItems) -> Int64:
        """The number of each scope's set, [n_scopes]; -1 of scopes that are refused."""
        numbers = np.full(len(batch.names), -1)
        is_refused = batch.heads[:, 0] & (CAPPED | CONVERTED) > 0
        for scope, name in enumerate(batch.names):
            if name.is_growing:
                continue
            key = name.query, name.candidate_set
            if key not in self._numbers:
                self._numbers[key] = len(self._items)
                self._items.append(by_id.items[scope])
            if not is_refused[scope]:
                numbers[scope] = self._numbers[key]
        return numbers

    def refuse(self, batch: ScopeBatch, numbers: Int64, lists: Int64) -> None:
        """Count lists of scopes that are refused.

        Parameters
        ----------
        numbers, lists : [n_scopes]
            What `take` gave, and how many lists each has.
        """
        for scope in np.flatnonzero((numbers < 0) & (lists > 0)).tolist():
            flags, why = int(batch.heads[scope, 0]), Refused.CONVERTED
            if flags & CAPPED:
                why = Refused.CAPPED
            if batch.names[scope].is_growing:
                why = Refused.GROWING
            self._refused[why] += int(lists[scope])

    def add(self, why: Refused, n_lists: int) -> None:
        """Count lists that are refused for another reason."""
        self._refused[why] += n_lists

    def refused(self) -> dict[Refused, int]:
        """Lists that were left out, by reason."""
        return {why: n for why in Refused if (n := self._refused[why])}

    def sets(self) -> CandidateSets:
        """All that came."""
        return CandidateSets(
            tuple(query for query, _ in self._numbers),
            tuple(name for _, name in self._numbers),
            tuple(self._items),
            np.cumsum([0, *map(len, self._items)]),
        )
