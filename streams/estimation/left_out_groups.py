"""A log with groups added up, less one of them at a time, in one pass over its rows.

Most estimators add up groups first. What is left without one is then the sum less what
is that group's, which has as many rows as there are places, not places of all groups.
"""

import numpy as np

from models.arrays import Floats
from models.counts.fixed_point import Int64
from models.estimators.click_log import ClickLog

Tables = tuple[Int64, Int64, Floats, Int64, Int64]
"""Shown, clicked, expected, rows, and rows of unknown placements, by place."""


class LeftOutGroups:
    """All groups of a log as one, with or without one of them.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    """

    def __init__(self, log: ClickLog, impressions: Floats) -> None:
        self._impressions = impressions
        self._whole = impressions.sum(axis=0, keepdims=True)
        self._mixed = log.mixed
        n_ranks = int(log.ranks.max(initial=1)) + 1
        places = log.policies * impressions.shape[2] + log.items
        keys, self._places = np.unique(
            places * n_ranks + log.ranks, return_inverse=True
        )
        owners, self._ranks = np.divmod(keys, n_ranks)
        self._policies, self._items = np.divmod(owners, impressions.shape[2])
        self._log = log
        order = np.argsort(log.groups, kind="stable")
        groups = np.arange(impressions.shape[0] + 1)
        self._order = order
        self._ends = np.searchsorted(log.groups[order], groups)
        self._all = self._tables(order)

    def without(self, group: int | None) -> tuple[ClickLog, Floats]:
        """What is left without a group, or all of it: of one group, number 0."""
        shown, clicked, expected, rows, unknown = self._all
        impressions = self._whole
        if group is not None:
            own = self._tables(self._order[slice(*self._ends[group : group + 2])])
            shown, clicked, rows = shown - own[0], clicked - own[1], rows - own[3]
            # What rounding leaves is no probability of anything.
            expected = np.where(rows > 0, np.maximum(expected - own[2], 0.0), 0.0)
            unknown = unknown - own[4]
            impressions = impressions - self._impressions[group]
        return (
            ClickLog(
                np.zeros(len(shown), np.int64),
                self._policies,
                self._items,
                self._ranks,
                shown,
                clicked,
                np.where(unknown > 0, np.nan, expected),
                self._mixed,
            ),
            impressions,
        )

    def _tables(self, rows: Int64) -> Tables:
        """Sums of some rows."""
        places, log, n = self._places[rows], self._log, len(self._ranks)
        is_unknown = np.isnan(log.expected[rows])
        expected = np.where(is_unknown, 0.0, log.expected[rows])

        def summed(numbers: Int64) -> Int64:
            # Counts are below 2^53, where floats are whole.
            return np.bincount(places, numbers, n).astype(np.int64)

        return (
            summed(log.shown[rows]),
            summed(log.clicked[rows]),
            np.bincount(places, expected, n).astype(np.float64),
            np.bincount(places, minlength=n).astype(np.int64),
            summed(is_unknown.astype(np.int64)),
        )
