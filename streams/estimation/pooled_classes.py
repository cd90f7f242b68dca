"""Items of one class as one, over all queries of a log.

Of a log without ids of documents each item is seen once, or at one rank; its class is
seen at many. What was counted of a class is the sum over its items, and so is what a
policy shows of it: values and rewards are those of a log whose items are classes. They
need few rows, so all of a log is held at once.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.counts.fixed_point import Int64
from models.estimators.click_log import ClickLog
from models.estimators.item_classes import class_of
from streams.statistics.logged_queries import LoggedQueries

MOST_CELLS = 1 << 22
"""Of groups, policies and classes; tens of megabytes of sums."""

GROUP, POLICY, CLASS, RANK = range(4)
"""Columns of places of rows."""


class Worth(NamedTuple):
    """What lists of a policy show.

    Parameters
    ----------
    expected : [n_items, n_ranks]
        Lists that have the item there.
    absent : [n_ranks]
        Lists that have there what is none of these items.
    """

    expected: Floats
    absent: Floats


class PooledClasses:
    """Queries so far, their items by class.

    Parameters
    ----------
    n_groups
        `statistics.groups` of the statistics.
    n_ranks
        Of what policies show.
    """

    def __init__(self, n_groups: int, n_ranks: int) -> None:
        self._n_groups = n_groups
        self._n_ranks = n_ranks
        self._classes: dict[str, int] = {}
        self._policies: dict[str, int] = {}
        self._mixed: set[int] = set()
        self._places = np.empty((0, 4), np.int64)
        # Shown, clicked, expected, and rows of unknown placements.
        self._sums = np.empty((0, 4))
        self._impressions = np.zeros((n_groups, 0, 0))
        self._worth: dict[str, Worth] = {}

    @property
    def n_classes(self) -> int:
        """Classes that were met."""
        return len(self._classes)

    def take(self, queries: LoggedQueries, policies: Mapping[str, Worth]) -> None:
        """Add some queries, and what policies show on lists of theirs.

        Parameters
        ----------
        policies
            By name; of the items of the queries.

        Raises
        ------
        ValueError
            Where there are too many classes for all of them to be held.
        """
        classes = self._numbers(queries.items)
        own = [
            self._policies.setdefault(name, len(self._policies))
            for name in queries.interventions
        ]
        of_policy = np.array(own, np.int64)
        self._grow()
        self._mixed |= {own[policy] for policy in queries.log.mixed}
        cells = np.ix_(np.arange(self._n_groups), of_policy, np.arange(self.n_classes))
        pooled = np.zeros((*queries.impressions.shape[:2], self.n_classes))
        by_item = np.moveaxis(queries.impressions, 2, 0)
        np.add.at(np.moveaxis(pooled, 2, 0), classes, by_item)
        self._impressions[cells] += pooled
        self._take_rows(queries.log, of_policy, classes)
        for name, worth in policies.items():
            self._take_worth(name, worth, classes)

    def together(self) -> tuple[ClickLog, Floats, dict[str, Worth]]:
        """All queries: a log of classes, their impressions, and what policies show."""
        groups, policies, classes, ranks = self._places.T
        shown, clicked, expected, unknown = self._sums.T
        log = ClickLog(
            groups,
            policies,
            classes,
            ranks,
            shown.astype(np.int64),
            clicked.astype(np.int64),
            np.where(unknown > 0.0, np.nan, expected),
            frozenset(self._mixed),
        )
        worth = {name: self._grown(each) for name, each in self._worth.items()}
        return log, self._impressions, worth

    def _numbers(self, items: tuple[str, ...]) -> Int64:
        """The class of each item, [n_items]."""
        found = [
            self._classes.setdefault(class_of(item), len(self._classes))
            for item in items
        ]
        return np.array(found, np.int64)

    def _grow(self) -> None:
        """Room for policies and classes that are new."""
        shape = self._n_groups, len(self._policies), self.n_classes
        if np.prod(shape) > MOST_CELLS:
            raise ValueError(
                "classes of items must be few, as all are held: groups times policies "
                f"times classes at most {MOST_CELLS:,}; got {shape[0]} x {shape[1]} x "
                f"{shape[2]:,} and more, such as {next(reversed(self._classes))!r}: do "
                "without classes where ids have none"
            )
        grown = np.zeros(shape)
        _, n_policies, n_classes = self._impressions.shape
        grown[:, :n_policies, :n_classes] = self._impressions
        self._impressions = grown

    def _take_rows(self, log: ClickLog, policies: Int64, classes: Int64) -> None:
        """Rows of the same group, policy, class and rank as one, with those before."""
        columns = log.groups, policies[log.policies], classes[log.items], log.ranks
        is_unknown = np.isnan(log.expected)
        expected = np.where(is_unknown, 0.0, log.expected)
        sums = np.column_stack((log.shown, log.clicked, expected, is_unknown))
        places = np.concatenate((self._places, np.column_stack(columns)))
        sums = np.concatenate((self._sums, sums))
        order = np.lexsort(places.T[::-1])
        places, sums = places[order], sums[order]
        is_first = np.ones(len(places), np.bool_)
        is_first[1:] = (np.diff(places, axis=0) != 0).any(axis=1)
        starts = np.flatnonzero(is_first)
        self._places = places[starts]
        if len(starts):
            # Counts are below 2^53, where floats are whole.
            self._sums = np.add.reduceat(sums, starts, axis=0)

    def _take_worth(self, name: str, worth: Worth, classes: Int64) -> None:
        empty = Worth(np.zeros((0, self._n_ranks)), np.zeros(self._n_ranks))
        before = self._grown(self._worth.get(name, empty))
        np.add.at(before.expected, classes, worth.expected)
        self._worth[name] = Worth(before.expected, before.absent + worth.absent)

    def _grown(self, worth: Worth) -> Worth:
        """The same, of all classes that were met."""
        expected = np.zeros((self.n_classes, self._n_ranks))
        expected[: len(worth.expected)] = worth.expected
        return Worth(expected, worth.absent)
