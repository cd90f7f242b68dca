"""What the sums of a query say of each item's relevance, corrected for position."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.estimators.adaptivity import Basis, basis_of
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Choice, Known, Unknown, asked_for, choice_of
from models.estimators.intervals import jackknife_intervals
from models.estimators.intervention_aware import (
    LEAST_SUPPORT,
    Floats,
    ItemSums,
    effective_clicks,
    estimates,
    item_sums,
)
from models.estimators.item_classes import class_of
from models.estimators.item_intervals import PointsOfItems, points_of_items
from models.estimators.logged_places import LoggedPlaces, places_of
from models.estimators.registry import estimator_of
from rankstream.operations.terminal.counts import counted
from streams.statistics.columns import Columns
from streams.training.used_cells import IMPRESSIONS, used_cells, used_rows


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


class QueryRelevance(NamedTuple):
    """Items of a query, the most relevant first, and what must be known of them.

    Parameters
    ----------
    choice
        The estimator, and why it was taken.
    chosen
        That in words, with how many lists it is of.
    """

    items: list[ItemRelevance]
    effective_clicks: float
    warning: str
    remarks: list[str]
    choice: Choice
    chosen: str


class Trust(NamedTuple):
    """What is known of the policies that logged.

    Parameters
    ----------
    models
        Names of models that learn online.
    fitted_on
        Groups whose clicks an intervention was chosen from; see
        `models.estimators.adaptivity.basis_of`.
    """

    models: Container[str]
    fitted_on: Mapping[str, frozenset[int] | None] = {}


def relevance_of(
    chunks: Iterable[Columns],
    curve: BiasCurve,
    n_groups: int,
    trust: Trust,
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
    unknown = unknown_for(estimator)
    found = GatheredQuery(n_groups, has_classes=has_classes, unknown=unknown)
    for chunk in chunks:
        found.take(chunk)
    return _relevance(found, curve, trust, estimator)


def unknown_for(estimator: str | None) -> Unknown:
    """What becomes of lists of unknown policies, by the estimator that is asked for."""
    return asked_for(estimator).unknown if estimator else Unknown.AS_SHOWN


class RelevanceByQuery:
    """Corrected relevance query by query, of columns that come in their order.

    Parameters
    ----------
    curve, n_groups, trust, estimator
        See `relevance_of`.
    """

    def __init__(
        self,
        curve: BiasCurve,
        n_groups: int,
        trust: Trust,
        estimator: str | None = None,
    ) -> None:
        self._curve, self._n_groups, self._trust = curve, n_groups, trust
        self._estimator = estimator
        self._query = ""
        self._found = self._nothing()

    def _nothing(self) -> "GatheredQuery":
        return GatheredQuery(self._n_groups, unknown=unknown_for(self._estimator))

    def take(self, chunk: Columns) -> Iterator[tuple[str, QueryRelevance]]:
        """Add columns; gives the queries that have ended."""
        first, last = chunk.cells[[0, -1], 0].tolist() if len(chunk.cells) else (0, -1)
        names = chunk.names[first : last + 1]
        for query, of_query in groupby(names, lambda name: name.query):
            if query != self._query:
                yield from self.finish()
                self._query = query
            end = first + len([*of_query])
            self._found.take(chunk.of_scopes(first, end))
            first = end

    def finish(self) -> Iterator[tuple[str, QueryRelevance]]:
        """The last query, if there is one."""
        found, self._found = self._found, self._nothing()
        if found.numbers:
            yield (
                self._query,
                _relevance(found, self._curve, self._trust, self._estimator),
            )


def _relevance(
    found: "GatheredQuery", curve: BiasCurve, trust: Trust, asked: str | None
) -> QueryRelevance:
    trusted = trust.models, trust.fitted_on
    basis = basis_of(found.interventions, *trusted, found.n_groups)
    known = Known(found.n_known, found.n_unknown, basis.has_intervals)
    choice = choice_of(known, asked)
    remarks = curve.remarks()
    if found.n_left_out:
        remarks.append(
            f"{counted(found.n_left_out, 'list')} left out: in their group of a scope "
            "are some of unknown policies, which this estimator cannot take"
        )
    if asked or not known.is_fixed:
        items, effective = _by_registry(found, curve, choice, basis)
    else:
        based = found.sums(curve).of_groups(basis.groups)
        items = _items(list(found.numbers), based)
        told = estimates(based)
        effective = effective_clicks(told.clicked, told.weights)
    return QueryRelevance(
        sorted(items, key=_order),
        effective,
        basis.warning,
        remarks,
        choice,
        choice.said(found.n_unknown),
    )


def _items(names: Sequence[str], sums: ItemSums) -> Iterator[ItemRelevance]:
    """By the sums, in which lists of unknown policies are as they were shown."""
    told, intervals = estimates(sums), jackknife_intervals(sums)
    points = PointsOfItems(
        told.values, told.support, intervals, told.impressions, told.clicked
    )
    return _rows(names, points, has_intervals=True)


def _by_registry(
    found: "GatheredQuery", curve: BiasCurve, choice: Choice, basis: Basis
) -> tuple[Iterator[ItemRelevance], float]:
    """By any estimator, and the effective number of clicks."""
    points, effective = points_of_items(
        estimator_of(choice.estimator).estimator,
        *found.logged(),
        curve,
        basis.groups,
        has_intervals=basis.has_intervals,
    )
    names = list(found.numbers)
    return _rows(names, points, has_intervals=basis.has_intervals), effective


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


class GatheredQuery:
    """Places of a query's items, and how often each could have been shown.

    `numbers` are those of the items, by id or by class, in the order in which they
    came.

    Parameters
    ----------
    n_groups
        `statistics.groups` of the statistics.
    has_classes
        See `relevance_of`.
    unknown
        What becomes of lists of unknown policies.
    """

    def __init__(
        self,
        n_groups: int,
        *,
        has_classes: bool = False,
        unknown: Unknown = Unknown.LEFT_OUT,
    ) -> None:
        self.numbers: dict[str, int] = {}
        self._name_of = class_of if has_classes else str
        self._unknown = unknown
        self._policies: dict[str, int] = {}
        self.n_known = self.n_unknown = 0
        self.n_groups = n_groups
        self._places: list[tuple[npt.NDArray[Any], ...]] = []
        self._impressions: list[tuple[npt.NDArray[Any], ...]] = []

    @property
    def n_left_out(self) -> int:
        """Lists that do not count."""
        return self.n_unknown if self._unknown is Unknown.LEFT_OUT else 0

    @property
    def interventions(self) -> Collection[str]:
        """Under which lists that count were logged."""
        return self._policies.keys()

    def take(self, chunk: Columns) -> None:
        """Add columns of the query."""
        numbers = [np.array([self._number(x) for x in items]) for items in chunk.items]
        is_known = used_cells(chunk)
        n_lists = chunk.cells[:, IMPRESSIONS]
        self.n_known += int(n_lists[is_known].sum())
        self.n_unknown += int(n_lists[~is_known].sum())
        is_used = is_known
        if self._unknown is not Unknown.LEFT_OUT:
            is_used = np.ones_like(is_known)
        is_sure = ~is_known & (self._unknown is Unknown.AS_SHOWN)
        cells = chunk.cells[is_used].tolist()
        for (scope, group, n, *_), as_shown in zip(
            cells, is_sure[is_used].tolist(), strict=True
        ):
            policy = self._policy(chunk.names[scope].intervention)
            if not (as_shown or chunk.names[scope].is_growing):
                items = numbers[scope]
                ones = np.ones_like(items)
                place = ones * group, ones * policy, items
                self._impressions.append((*place, ones * n))
        rows = used_rows(chunk, is_used)
        if len(rows):
            self._take_rows(chunk, rows, numbers, is_known, is_sure)

    def _take_rows(
        self,
        chunk: Columns,
        rows: npt.NDArray[np.int64],
        numbers: Sequence[npt.NDArray[Any]],
        is_known: npt.NDArray[np.bool_],
        is_sure: npt.NDArray[np.bool_],
    ) -> None:
        scopes = chunk.scope[rows]
        first = np.cumsum([0, *(len(each) for each in numbers)])
        items = np.concatenate(numbers)[first[scopes] + chunk.item[rows]]
        of_scope = [self._policies.get(name.intervention, -1) for name in chunk.names]
        policies = np.array(of_scope, np.int64)[scopes]
        shown = chunk.shown[rows]
        expected = chunk.expected[rows]
        growing = np.array([name.is_growing for name in chunk.names])[scopes]
        if not is_known.all():
            untold = np.isin(rows, used_rows(chunk, is_known), invert=True)
            as_shown = np.isin(rows, used_rows(chunk, is_sure))
            expected = np.where(untold, np.where(as_shown, shown, np.nan), expected)
            growing = growing | as_shown
        clicked = chunk.by_class[chunk.reward][rows]
        place = chunk.group[rows], policies, items
        self._places.append((*place, chunk.rank[rows], shown, clicked, expected))
        self._impressions.append((*(x[growing] for x in place), shown[growing]))

    def _number(self, item: str) -> int:
        return self.numbers.setdefault(self._name_of(item), len(self.numbers))

    def _policy(self, intervention: str) -> int:
        return self._policies.setdefault(intervention, len(self._policies))

    def logged(self) -> tuple[LoggedPlaces, Floats]:
        """All of it by policy, and impressions, as estimators take them."""
        impressions = np.zeros(
            (self._most_groups(), len(self._policies), len(self.numbers))
        )
        for groups, policies, items, n in self._impressions:
            np.add.at(impressions, (groups, policies, items), n)
        return self._log(), impressions

    def _log(self) -> LoggedPlaces:
        empty = (*(np.empty(0, np.int64) for _ in range(6)), np.empty(0))
        columns = zip(*[*self._places, empty], strict=True)
        return LoggedPlaces._make(
            [*(np.concatenate(column) for column in columns), frozenset()]
        )

    def _most_groups(self) -> int:
        found = (int(groups.max(initial=-1)) + 1 for groups, *_ in self._impressions)
        return max(self.n_groups, *found, 1)

    def sums(self, curve: BiasCurve) -> ItemSums:
        """All of it under a curve; items as `numbers` has them."""
        impressions = np.zeros((self._most_groups(), len(self.numbers)))
        for groups, _, items, n in self._impressions:
            np.add.at(impressions, (groups, items), n)
        return item_sums(places_of(self._log()), impressions, curve)
