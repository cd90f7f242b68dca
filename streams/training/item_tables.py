"""What a training keeps of each item of a query, by split of the groups.

Values follow from it once all lists are counted, as trainings clip by their number.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from models.arrays import Floats
from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown, asked_for
from models.estimators.click_log import of_groups
from models.estimators.intervention_aware import (
    ItemSums,
    estimates,
    item_sums,
    least_average,
    training_values,
)
from models.estimators.registry import BY_GROUP, estimator_of
from streams.statistics.logged_queries import (
    CELLS_AT_ONCE,
    LoggedQueries,
    QueryGatherer,
)

TRAINED_ON, APART, SELECTED_ON = 0, 1, 2
"""Splits of the groups: values to learn from, values to judge by, and the others."""

N_SPLITS = 3

N_TABLES = 4
"""Of each item and split."""


class EstimatorRefused(ValueError):
    """An estimator cannot take the curve.

    Operator action: as the message says, or set another `training.estimator`.
    """


class QueryTables(NamedTuple):
    """Of one query.

    Parameters
    ----------
    query
        Its id.
    sets
        Names of its closed candidate sets, sorted.
    items : [n_items]
        Ids, sorted.
    tables : [n_tables, n_splits, n_items]
        See `ItemTables`.
    n_impressions : [n_splits]
        Lists that count.
    """

    query: str
    sets: tuple[bytes, ...]
    items: tuple[str, ...]
    tables: Floats
    n_impressions: Int64


class ItemTables(Protocol):
    """How tables are made of what was logged, and what they say of one split.

    `own` are the tables of a split; what follows from them is [n_items].
    """

    def gatherer(self) -> QueryGatherer:
        """One that tells apart what tables are made of."""

    def of(self, queries: LoggedQueries) -> tuple[Floats, Int64]:
        """Tables [n_tables, n_splits, n_items], and lists [n_queries, n_splits]."""

    def values(self, own: Floats) -> Floats:
        """Values as they are judged by, NaN where there is none; `own` [4, n_items]."""

    def raised(self, own: Floats, n_impressions: int) -> Floats:
        """Values to learn from, whose averages are raised to a least one.

        `own` [4, n_items]; `n_impressions` are all lists of the split that is learned
        from.
        """

    def support(self, own: Floats) -> Floats:
        """How much values rest on; `own` [4, n_items]."""

    def clicked(self, own: Floats) -> Floats:
        """Clicks at ranks that the curve has; `own` [4, n_items]."""


class PooledSums:
    """Sums over all policies, of which the intervention-aware values follow.

    Sums are made row by row in the order of the columns, so that they have the same
    bits however these are cut into chunks. The tables are those of `ItemSums`.

    Parameters
    ----------
    curve
        Ranks that it does not have are left out with their clicks.
    split_of : [n_groups]
        The split of each group, one of `N_SPLITS`.
    unknown
        What becomes of cells with lists of unknown policies: left out, or as shown.
    """

    def __init__(
        self, curve: BiasCurve, split_of: Int64, unknown: Unknown = Unknown.LEFT_OUT
    ) -> None:
        self._curve = curve
        self._split_of = split_of
        self._unknown = unknown

    def gatherer(self) -> QueryGatherer:
        """Policies are one, and groups are splits."""
        return QueryGatherer(self._split_of, N_SPLITS, self._unknown, by_policy=False)

    def of(self, queries: LoggedQueries) -> tuple[Floats, Int64]:
        """See `ItemTables`."""
        sums = item_sums(queries.log, queries.impressions, self._curve)
        return np.stack(sums), queries.lists_of_queries()

    def values(self, own: Floats) -> Floats:
        """See `ItemTables`; `own` [4, n_items]."""
        return estimates(_sums(own)).values

    def raised(self, own: Floats, n_impressions: int) -> Floats:
        """See `ItemTables`; `own` [4, n_items]."""
        return training_values(_sums(own), n_impressions)

    def support(self, own: Floats) -> Floats:
        """The sum of the expected alpha; `own` [4, n_items]."""
        return np.asarray(own[1])

    def clicked(self, own: Floats) -> Floats:
        """See `ItemTables`; `own` [4, n_items]."""
        return np.asarray(own[3])


def _sums(own: Floats) -> ItemSums:
    return ItemSums(*own[:, None])


class EstimatedValues:
    """Values of any estimator: plain, raised, their support, and clicks.

    Parameters
    ----------
    name
        Of the estimator; see `models.estimators.registry`.
    curve
        Ranks that it does not have are left out with their clicks.
    split_of : [n_groups]
        As that of `PooledSums`.
    n_impressions
        All lists that are learned from, at least 1.
    """

    def __init__(
        self, name: str, curve: BiasCurve, split_of: Int64, n_impressions: int
    ) -> None:
        self._name = name
        self._curve = curve
        self._split_of = split_of
        self._least = least_average(n_impressions)

    def gatherer(self) -> QueryGatherer:
        """Each policy and each group by itself; of some estimators each query, too."""
        return QueryGatherer(
            np.arange(len(self._split_of)),
            len(self._split_of),
            asked_for(self._name).unknown,
            cells_at_once=1 if self._name in BY_GROUP else CELLS_AT_ONCE,
        )

    def of(self, queries: LoggedQueries) -> tuple[Floats, Int64]:
        """See `ItemTables`."""
        estimator, curve = estimator_of(self._name).estimator, self._curve
        tables = np.zeros((N_TABLES, N_SPLITS, len(queries.items)))
        by_group = queries.lists_of_queries()
        lists = np.zeros((len(by_group), N_SPLITS), np.int64)
        for split in (TRAINED_ON, SELECTED_ON):
            is_own = self._split_of == split
            log, impressions = of_groups(queries.log, queries.impressions, is_own)
            try:
                found = estimator(log, impressions, curve)
                raised = estimator(log, impressions, curve, least=self._least)
            except ValueError as error:
                raise EstimatorRefused(str(error)) from error
            is_known = log.ranks <= curve.n_ranks
            clicked = np.bincount(
                log.items[is_known], log.clicked[is_known], len(queries.items)
            )
            tables[:, split] = found.values, raised.values, found.support, clicked
            lists[:, split] = by_group[:, is_own].sum(axis=1)
        return tables, lists

    def values(self, own: Floats) -> Floats:
        """See `ItemTables`; `own` [4, n_items]."""
        return np.asarray(own[0])

    def raised(self, own: Floats, n_impressions: int) -> Floats:
        """By the lists that were told beforehand; `own` [4, n_items]."""
        del n_impressions
        return np.asarray(own[1])

    def support(self, own: Floats) -> Floats:
        """See `models.estimators.item_estimates`; `own` [4, n_items]."""
        return np.asarray(own[2])

    def clicked(self, own: Floats) -> Floats:
        """See `ItemTables`; `own` [4, n_items]."""
        return np.asarray(own[3])


def query_tables(how: ItemTables, queries: LoggedQueries) -> Iterator[QueryTables]:
    """Tables of queries one by one."""
    tables, lists = how.of(queries)
    ends = np.searchsorted(queries.owners, np.arange(len(queries.queries) + 1))
    sets = queries.closed_sets()
    for number, query in enumerate(queries.queries):
        first, end = ends[number : number + 2].tolist()
        items = queries.items[first:end]
        order = sorted(range(len(items)), key=items.__getitem__)
        yield QueryTables(
            query,
            sets[number],
            tuple(items[i] for i in order),
            np.ascontiguousarray(tables[:, :, np.array(order, np.int64) + first]),
            lists[number],
        )
