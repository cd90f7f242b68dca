"""What the sums of a query say of each item's relevance, corrected for position."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from models.estimators.adaptivity import Basis, basis_of
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Choice, Known, Unknown, asked_for, choice_of
from models.estimators.intervals import jackknife_intervals
from models.estimators.intervention_aware import (
    LEAST_SUPPORT,
    ItemSums,
    effective_clicks,
    estimates,
    item_sums,
)
from models.estimators.item_classes import class_of
from models.estimators.item_intervals import PointsOfItems, points_of_items
from models.estimators.registry import estimator_of
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.answers.sources import CountedLog, LoggingPolicies
from rankstream.operations.terminal.words import counted
from streams.statistics.columns import Columns
from streams.statistics.keys import ScopeName
from streams.statistics.logged_queries import LoggedQueries, QueryGatherer


class ItemRelevance(NamedTuple):
    """Of one item of a query.

    Parameters
    ----------
    item
        Its id.
    impressions
        Lists of candidate sets that have it.
    clicked
        Clicks at ranks that the curve has.
    exposure
        Its support: the sum of its expected alpha.
    relevance
        Corrected, not clipped; NaN without support.
    low, high
        Ends of the interval of 95 %; NaN where there is none.
    degrees
        Of freedom.
    is_under_exposed
        Whether its support is too little to tell anything.
    reason
        Why there is no interval; empty where there is one.
    """

    item: str
    impressions: int
    clicked: int
    exposure: float
    relevance: float
    low: float
    high: float
    degrees: int
    is_under_exposed: bool
    reason: str


@dataclass(frozen=True)
class QueryRelevance(Answer):
    """Items of a query, the most relevant first, and what must be known of them.

    Parameters
    ----------
    choice
        The estimator, and why it was taken.
    chosen
        That in words, with how many lists it is of.
    n_unknown, n_beside
        Lists that were taken as they were shown, and those of them of known policies.
    n_beyond
        Clicks at ranks that the curve does not have, which are left out.
    """

    items: list[ItemRelevance]
    effective_clicks: float
    warning: str
    remarks: list[str]
    choice: Choice
    chosen: str
    n_unknown: int = 0
    n_beside: int = 0
    n_beyond: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Its items and words; a table of items is `table_of(items)`."""
        named = {"items": self.items, "effective_clicks": self.effective_clicks}
        said = {"warning": self.warning, "remarks": self.remarks, "chosen": self.chosen}
        return {**as_builtins(named), "estimator": self.choice.estimator, **said}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {
            "items": list[ItemRelevance],
            "effective_clicks": float,
            "estimator": str,
            "warning": str,
            "remarks": list[str],
            "chosen": str,
        }


def relevance_in(
    source: CountedLog,
    scopes: Collection[ScopeName],
    curve: BiasCurve,
    *,
    has_classes: bool = False,
    estimator: str | None = None,
) -> QueryRelevance:
    """Corrected relevance of the items in scopes of one query that were counted.

    Parameters
    ----------
    scopes
        One or more.
    """
    statistics, wanted = source.statistics, {*scopes}
    query = next(iter(wanted)).query
    return relevance_of(
        statistics.columns([query], is_wanted=wanted.__contains__),
        curve,
        statistics.counted[0].groups,
        source.policies,
        has_classes=has_classes,
        estimator=estimator,
    )


def relevance_of(
    chunks: Iterable[Columns],
    curve: BiasCurve,
    n_groups: int,
    policies: LoggingPolicies,
    *,
    has_classes: bool = False,
    estimator: str | None = None,
) -> QueryRelevance:
    """Corrected relevance of the items of a query.

    Parameters
    ----------
    chunks
        Columns of the query's scopes, of all that are asked for.
    curve
        Taken as known: intervals do not hold what it may be off.
    n_groups
        `statistics.groups` of the statistics.
    has_classes
        Whether items of one class count as one; see `models.estimators.item_classes`.
    estimator
        The name of one that is asked for; else `models.estimators.choice` says.

    Raises
    ------
    ValueError
        Where the estimator has no such name, or the curve is not for it.
    """
    gatherer = query_gatherer(n_groups, estimator, has_classes=has_classes)
    (found,) = [*gatherer.of(chunks)] or [gatherer.together()]
    return _relevance(found, curve, policies, estimator)


def beyond_label(curve: BiasCurve, n_beyond: int) -> str:
    """That clicks are left out, as the curve has fewer ranks than lists."""
    return (
        f"the curve has {counted(curve.n_ranks, 'rank')}: {counted(n_beyond, 'click')} "
        "further down are left out"
    )


def query_gatherer(
    n_groups: int, estimator: str | None = None, *, has_classes: bool = False
) -> QueryGatherer:
    """What gathers queries one by one, as `relevance_of` takes them."""
    return QueryGatherer(
        np.arange(n_groups),
        n_groups,
        unknown_for(estimator),
        sorts_policies=False,
        name_of=class_of if has_classes else None,
        cells_at_once=1,
    )


def unknown_for(estimator: str | None) -> Unknown:
    """What becomes of lists of unknown policies, by the estimator that is asked for."""
    return asked_for(estimator).unknown if estimator else Unknown.JOINED


class RelevanceByQuery:
    """Corrected relevance query by query, of columns that come in their order.

    Parameters
    ----------
    curve, n_groups, policies, estimator
        See `relevance_of`.
    """

    def __init__(
        self,
        curve: BiasCurve,
        n_groups: int,
        policies: LoggingPolicies,
        estimator: str | None = None,
    ) -> None:
        self._curve, self._policies, self._estimator = curve, policies, estimator
        self._gatherer = query_gatherer(n_groups, estimator)

    def take(self, chunk: Columns) -> Iterator[tuple[str, QueryRelevance]]:
        """Add columns; gives the queries that have ended."""
        yield from map(self._told, self._gatherer.take(chunk))

    def finish(self) -> Iterator[tuple[str, QueryRelevance]]:
        """The last query, if there is one."""
        yield from map(self._told, self._gatherer.finish())

    def _told(self, found: LoggedQueries) -> tuple[str, QueryRelevance]:
        told = _relevance(found, self._curve, self._policies, self._estimator)
        return found.queries[0], told


def _relevance(
    found: LoggedQueries, curve: BiasCurve, policies: LoggingPolicies, asked: str | None
) -> QueryRelevance:
    trusted = policies.models, policies.fitted_on
    # Those of lists that count.
    counted_under = [found.interventions[x] for x in np.unique(found.lists[:, 2])]
    basis = basis_of(counted_under, *trusted, len(found.impressions))
    known = Known(found.n_known, found.n_unknown, basis.has_intervals, found.n_beside)
    choice = choice_of(known, asked)
    remarks = curve.remarks()
    n_beyond = int(found.log.clicked[found.log.ranks > curve.n_ranks].sum())
    if n_beyond:
        remarks.append(beyond_label(curve, n_beyond))
    if found.n_left_out:
        remarks.append(
            f"{counted(found.n_left_out, 'list')} left out: in their group of a scope "
            "are some of unknown policies, which this estimator cannot take"
        )
    if asked or not known.is_fixed:
        items, effective = _by_registry(found, curve, choice, basis)
    else:
        sums = item_sums(found.log, found.impressions, curve)
        based = sums.of_groups(basis.groups)
        items = _items(found.items, based)
        told = estimates(based)
        effective = effective_clicks(told.clicked, told.weights)
    return QueryRelevance(
        sorted(items, key=_order),
        effective,
        basis.warning,
        remarks,
        choice,
        choice.said(found.n_unknown, found.n_beside),
        found.n_unknown,
        found.n_beside,
        n_beyond,
    )


def _items(names: Sequence[str], sums: ItemSums) -> Iterator[ItemRelevance]:
    """By the sums, in which lists of unknown policies are as they were shown."""
    told, intervals = estimates(sums), jackknife_intervals(sums)
    points = PointsOfItems(
        told.values, told.support, intervals, told.impressions, told.clicked
    )
    return _rows(names, points, has_intervals=True)


def _by_registry(
    found: LoggedQueries, curve: BiasCurve, choice: Choice, basis: Basis
) -> tuple[Iterator[ItemRelevance], float]:
    """By any estimator, and the effective number of clicks."""
    points, effective = points_of_items(
        estimator_of(choice.estimator).estimator,
        found.log,
        found.impressions,
        curve,
        basis.groups,
        has_intervals=basis.has_intervals,
    )
    return _rows(found.items, points, has_intervals=basis.has_intervals), effective


def _rows(
    names: Sequence[str], points: PointsOfItems, *, has_intervals: bool
) -> Iterator[ItemRelevance]:
    nothing = np.nan
    intervals = points.intervals
    for i, name in enumerate(names):
        reason = intervals.reasons[i] if has_intervals else "chosen from clicks"
        support = float(points.support[i])
        yield ItemRelevance(
            name,
            int(points.impressions[i]),
            int(points.clicked[i]),
            support,
            float(points.values[i]),
            nothing if reason else float(intervals.low[i]),
            nothing if reason else float(intervals.high[i]),
            int(intervals.degrees[i]),
            support < LEAST_SUPPORT,
            reason,
        )


def _order(row: ItemRelevance) -> tuple[bool, float, str]:
    has_value = not np.isnan(row.relevance)
    return not has_value, -row.relevance if has_value else 0.0, row.item
