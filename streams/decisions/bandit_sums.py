"""What a bandit learns from: sums of its own lists, candidate set by candidate set.

Its lists are known by their intervention, whichever rewrite, group or era they are of.
Of lists of others nothing is taken: they were not shown to learn what it wants to know.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Integers
from models.bandits.cascade_ucb import FirstClicks
from models.counts.fixed_point import Int64
from models.counts.group_tables import summed_rows
from models.counts.list_form import list_pairs, list_preferences
from streams.decisions.closed_sets import CandidateSets, ClosedSets
from streams.decisions.refused import Refused
from streams.statistics.keys import ScopeName
from streams.statistics.reader import Statistics
from streams.statistics.scopes import STRIDE, ScopeBatch
from streams.statistics.summaries import impressions_and_clicks

SHOWN, CLICKED, FIRST_CLICK, SEEN = range(3, 7)
"""Columns of pairs: lists, clicks, first clicks, and lists down to the first click."""


class BanditSums(NamedTuple):
    """Sums of the lists of a bandit.

    Parameters
    ----------
    sets
        Of which there are lists, and of each how many and of which era the newest.
    lists, eras : [n_sets]
    pairs : [n_pairs, 7]
        Number of the set, of the item, and rank, sorted; then the columns above.
    preferences : [n_rows, 4]
        Number of the set and of the item, sorted; how often the item was preferred to
        another, and another to it.
    refused
        Lists that were left out, by reason.
    """

    sets: CandidateSets
    lists: Integers
    eras: Integers
    pairs: Int64
    preferences: Int64
    refused: Mapping[Refused, int]

    def by_rank(self, number: int, n_ranks: int) -> tuple[Integers, Integers]:
        """Clicks and lists of each item at each of the first ranks.

        Both [n_items, n_ranks], of the set of a number.
        """
        rows = _of(self.pairs, number)
        rows = rows[rows[:, 2] <= n_ranks]
        found = np.zeros((2, len(self.sets.items[number]), n_ranks), np.int64)
        found[:, rows[:, 1], rows[:, 2] - 1] = rows[:, [CLICKED, SHOWN]].T
        return found[0], found[1]

    def first_clicks(self, number: int) -> FirstClicks:
        """What a reader from the top told of the items of a set."""
        rows = _of(self.pairs, number)
        clicks, seen = np.zeros((2, len(self.sets.items[number])), np.int64)
        np.add.at(clicks, rows[:, 1], rows[:, FIRST_CLICK])
        np.add.at(seen, rows[:, 1], rows[:, SEEN])
        return FirstClicks(clicks, seen)

    def preferred(self, number: int) -> tuple[Integers, Integers]:
        """How often each item of a set was preferred, and others to it; [n_items]."""
        rows = _of(self.preferences, number)
        plus, minus = np.zeros((2, len(self.sets.items[number])), np.int64)
        plus[rows[:, 1]], minus[rows[:, 1]] = rows[:, 2], rows[:, 3]
        return plus, minus


def bandit_sums(statistics: Statistics, name: str) -> BanditSums:
    """Add up the lists of the bandit of a name.

    Raises
    ------
    ValueError
        Where the statistics are spoilt.
    """
    own = re.compile(re.escape(name) + r"@\d+\.\d+")

    def is_own(scope: ScopeName) -> bool:
        return own.fullmatch(scope.intervention) is not None

    reader = _Reader()
    for batch in statistics.batches(is_wanted=is_own):
        reader.take(batch)
    return reader.sums()


class _Reader:
    """Takes batches in the order of the statistics."""

    def __init__(self) -> None:
        self._closed = ClosedSets()
        self._lists = [np.empty((0, 2), np.int64)]
        self._eras: dict[int, int] = {}
        self._pairs = [np.empty((0, 7), np.int64)]
        self._preferences = [np.empty((0, 4), np.int64)]

    def take(self, batch: ScopeBatch) -> None:
        by_id = batch.sorted_items()
        sets = self._closed.take(batch, by_id)
        lists = np.array([n for _, n, _ in impressions_and_clicks(batch)], np.int64)
        self._closed.refuse(batch, sets, lists)
        self._lists.append(np.column_stack((sets, lists))[sets >= 0])
        for name, number in zip(batch.names, sets.tolist(), strict=True):
            self._eras[number] = max(name.era, self._eras.get(number, name.era))

        def by_set(table: Int64, n_keys: int) -> Int64:
            scopes = table[:, 0] // STRIDE
            items = by_id.renumbered(scopes, table[:, 1])
            found = np.column_stack((sets[scopes], items, table[:, 2:]))
            return summed_rows(found[found[:, 0] >= 0], n_keys)

        general = batch.general
        pairs = np.concatenate((list_pairs(batch.lists), general.pairs))[:, :7]
        preferences = np.concatenate(
            (list_preferences(batch.lists), general.sums[:, :4])
        )
        self._pairs.append(by_set(pairs, 3))
        self._preferences.append(by_set(preferences, 2))

    def sums(self) -> BanditSums:
        sets = self._closed.sets()
        lists = np.zeros(len(sets.items), np.int64)
        numbers, n_lists = np.concatenate(self._lists).T
        np.add.at(lists, numbers, n_lists)
        return BanditSums(
            sets,
            lists,
            np.array([self._eras.get(x, 0) for x in range(len(lists))], np.int64),
            summed_rows(np.concatenate(self._pairs), 3),
            summed_rows(np.concatenate(self._preferences), 2),
            self._closed.refused(),
        )


def _of(table: Int64, number: int) -> Int64:
    """Rows of the set of a number."""
    start, end = np.searchsorted(table[:, 0], (number, number + 1)).tolist()
    return table[start:end]
