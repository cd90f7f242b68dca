"""What the sums of a query say of each item's relevance, corrected for position."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.estimators.adaptivity import basis_of
from models.estimators.bias_curve import BiasCurve
from models.estimators.intervals import jackknife_intervals
from models.estimators.intervention_aware import (
    LEAST_SUPPORT,
    ItemSums,
    Places,
    effective_clicks,
    estimates,
    item_sums,
)
from models.estimators.item_classes import class_of
from rankstream.terminal.counts import counted
from streams.fold.statistics_columns import Columns
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
    """Items of a query, the most relevant first, and what must be known of them."""

    items: list[ItemRelevance]
    effective_clicks: float
    warning: str
    remarks: list[str]


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
    """
    found = GatheredQuery(n_groups, has_classes=has_classes)
    for chunk in chunks:
        found.take(chunk)
    return _relevance(found, curve, trust)


class RelevanceByQuery:
    """Corrected relevance query by query, of columns that come in their order.

    Parameters
    ----------
    curve, n_groups, trust
        See `relevance_of`.
    """

    def __init__(self, curve: BiasCurve, n_groups: int, trust: Trust) -> None:
        self._curve, self._n_groups, self._trust = curve, n_groups, trust
        self._query = ""
        self._found = GatheredQuery(n_groups)

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
        found, self._found = self._found, GatheredQuery(self._n_groups)
        if found.numbers:
            yield self._query, _relevance(found, self._curve, self._trust)


def _relevance(
    found: "GatheredQuery", curve: BiasCurve, trust: Trust
) -> QueryRelevance:
    sums = found.sums(curve)
    trusted = trust.models, trust.fitted_on
    basis = basis_of(found.interventions, *trusted, found.n_groups)
    remarks = curve.remarks()
    if found.n_left_out:
        remarks.append(
            f"{counted(found.n_left_out, 'list')} left out: in their group of a scope "
            "are some of unknown policies; give those an intervention of their own"
        )
    based = sums.of_groups(basis.groups)
    items = _items(list(found.numbers), based, has_intervals=basis.has_intervals)
    told = estimates(based)
    effective = effective_clicks(told.clicked, told.weights)
    return QueryRelevance(items, effective, basis.warning, remarks)


def _items(
    names: Sequence[str], sums: ItemSums, *, has_intervals: bool
) -> list[ItemRelevance]:
    told, intervals = estimates(sums), jackknife_intervals(sums)
    nothing = np.nan
    rows = []
    for i, name in enumerate(names):
        reason = intervals.reasons[i] if has_intervals else "chosen from clicks"
        support = float(told.support[i])
        rows.append(
            ItemRelevance(
                name,
                int(told.impressions[i]),
                int(told.clicked[i]),
                support,
                float(told.values[i]),
                nothing if reason else float(intervals.low[i]),
                nothing if reason else float(intervals.high[i]),
                int(intervals.degrees[i]),
                support < LEAST_SUPPORT,
                reason,
            )
        )
    return sorted(rows, key=_order)


def _order(row: ItemRelevance) -> tuple[bool, float, str]:
    has_value = not np.isnan(row.relevance)
    return not has_value, -row.relevance if has_value else 0.0, row.item


class GatheredQuery:
    """Places of a query's items, and how often each could have been shown.

    `numbers` are those of the items, by id or by class, in the order in which they
    came.
    """

    def __init__(self, n_groups: int, *, has_classes: bool = False) -> None:
        self.numbers: dict[str, int] = {}
        self._name_of = class_of if has_classes else str
        self.interventions: set[str] = set()
        self.n_left_out = 0
        self.n_groups = n_groups
        self._places: list[tuple[npt.NDArray[Any], ...]] = []
        self._impressions: list[tuple[npt.NDArray[Any], ...]] = []

    def take(self, chunk: Columns) -> None:
        """Add columns of the query."""
        numbers = [np.array([self._number(x) for x in items]) for items in chunk.items]
        is_used = used_cells(chunk)
        self.n_left_out += int(chunk.cells[~is_used, IMPRESSIONS].sum())
        for scope, group, n, *_ in chunk.cells[is_used].tolist():
            self.interventions.add(chunk.names[scope].intervention)
            if not chunk.names[scope].is_growing:
                items = numbers[scope]
                ones = np.ones_like(items)
                self._impressions.append((ones * group, items, ones * n))
        rows = used_rows(chunk, is_used)
        if not len(rows):
            return
        scopes = chunk.scope[rows]
        first = np.cumsum([0, *(len(each) for each in numbers)])
        items = np.concatenate(numbers)[first[scopes] + chunk.item[rows]]
        clicked = chunk.by_class[chunk.reward][rows]
        columns = (chunk.group[rows], items, chunk.rank[rows], clicked)
        self._places.append((*columns, chunk.expected[rows]))
        growing = np.array([name.is_growing for name in chunk.names])[scopes]
        shown = chunk.shown[rows]
        grown = (chunk.group[rows][growing], items[growing], shown[growing])
        self._impressions.append(grown)

    def _number(self, item: str) -> int:
        return self.numbers.setdefault(self._name_of(item), len(self.numbers))

    def sums(self, curve: BiasCurve) -> ItemSums:
        """All of it under a curve; items as `numbers` has them."""
        found = (int(groups.max(initial=-1)) + 1 for groups, *_ in self._impressions)
        shape = max(self.n_groups, *found, 1), len(self.numbers)
        impressions = np.zeros(shape)
        for groups, items, n in self._impressions:
            np.add.at(impressions, (groups, items), n)
        empty = (*(np.empty(0, np.int64) for _ in range(4)), np.empty(0))
        columns = zip(*[*self._places, empty], strict=True)
        places = Places(*(np.concatenate(column) for column in columns))
        return item_sums(places, impressions, curve)
