"""Answers of a log as tables: which columns they have, and what is said below."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.bias.fitted_curve import FittedCurve
from models.bias.position_weights import position_weights, row_weights
from models.estimators.choice import NO_CURVE
from rankstream.notebook.counted import Counted
from rankstream.notebook.python_words import in_python
from rankstream.notebook.results import Result, remarks_of
from rankstream.notebook.tables import WIDEST
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.curve import CurveOfBias
from rankstream.operations.answers.relevance import (
    ItemRelevance,
    QueryRelevance,
    relevance_in,
)
from rankstream.operations.answers.statistics import (
    CountedScopes,
    counted_scope,
    together,
)
from rankstream.operations.answers.values import Values
from rankstream.operations.plots.picture import Estimate, Picture, Rows, Series
from rankstream.operations.plots.relevance import relevance_picture
from rankstream.operations.terminal.words import counted
from streams.estimation.policy_rows import PolicyRow

UNSURE = (
    f"{NO_CURVE}: read lists in which the same item stood at several ranks, or give "
    "examination=[1.0, 0.6, ...]"
)
"""Where clicks do not tell a curve."""


class CountedQuery(NamedTuple):
    """What was counted of a query."""

    query: str
    lists: int
    clicks: int
    clicks_per_list: float


class CountedItem(NamedTuple):
    """What was counted of an item at a rank; exposure is how often it was expected."""

    item: str
    rank: int
    shown: int
    clicked: int
    click_rate: float
    exposure: float


class CurveAtRank(NamedTuple):
    """The curve at a rank: a click says relevance times alpha, plus beta."""

    rank: int
    alpha: float
    alpha_low: float
    alpha_high: float
    beta: float


class Letter(NamedTuple):
    """Events that could not be taken, for one reason."""

    topic: str
    code: str
    events: int
    first: str


@dataclass(frozen=True)
class Queries(Answer):
    """What was counted of all queries."""

    queries: list[CountedQuery]


@dataclass(frozen=True)
class Letters(Answer):
    """Why events could not be taken."""

    letters: list[Letter]


class Bias(Result[CurveOfBias, CurveAtRank]):
    """A curve of bias, and the weights that it gives clicks."""

    def weights(self, *, most: float = np.inf) -> Floats:
        """What a click at each rank counts, 1 over its examination; [n_ranks].

        Parameters
        ----------
        most
            No weight is larger. For training only: it biases.

        Raises
        ------
        ValueError
            Where clicks do not tell a curve, or users trust ranks, which no weight of
            clicks corrects.
        """
        curve = self.answer.curve
        if curve is None:
            raise ValueError(UNSURE)
        unknown = np.full(curve.n_ranks, np.nan)
        no_reasons = ("",) * curve.n_ranks
        whole = FittedCurve(
            curve.alpha, curve.beta, unknown, unknown, unknown, unknown, no_reasons
        )
        return position_weights(whole, most=most)

    def row_weights(
        self, ranks: Integers, clicked: Integers, *, most: float = np.inf
    ) -> Floats:
        """The weight of each row of training data, as LightGBM takes it; [n_rows].

        Parameters
        ----------
        ranks : [n_rows]
            From 1.
        clicked : [n_rows]
            0 or 1; a row that was not clicked weighs 1.
        most
            See `weights`.

        Raises
        ------
        ValueError
            As `weights`, and where a click is at a rank that the curve does not have.
        """
        weights = self.weights(most=most)
        return row_weights(np.asarray(ranks), np.asarray(clicked), weights)


def queries(found: Counted) -> Result[Queries, CountedQuery]:
    """All queries, those with most lists first."""
    order = sorted(found.queries.items(), key=lambda each: (-each[1][0], each[0]))
    rows = [
        CountedQuery(query, lists, clicks, clicks / lists)
        for query, (lists, clicks) in order
    ]
    title = counted(len(rows), "query", "queries")
    rates = [Estimate.of(each.clicks_per_list) for each in rows]
    bars = Series("counted", rates, is_estimated=False)
    names = [each.query for each in rows]
    unit = "clicks per list"
    panel = Rows("those with most lists first", unit, names, [bars], is_from_zero=True)
    picture = Picture(title, [[panel]])
    return Result(Queries(rows), title, CountedQuery, rows, pictured=picture)


def places(found: Counted, query: str | int) -> Result[CountedScopes, CountedItem]:
    """Items of a query at their ranks."""
    statistics = found.source.statistics
    one = together([counted_scope(statistics, name) for name in found.scopes(query)])
    rows = [
        CountedItem(
            each.item,
            each.rank,
            each.shown,
            each.clicked,
            each.clicked / each.shown if each.shown else np.nan,
            np.nan if each.exposure is None else each.exposure,
        )
        for each in one.places()
    ]
    lists = counted(one.cell.total("impressions"), "list")
    title = f"{query}: {lists}, {counted(one.cell.total('clicks'), 'click')}"
    return Result(one, title, CountedItem, rows, remarks_of(*one.remarks()))


def dead_letters(found: Counted) -> Result[Letters, Letter]:
    """Events that could not be taken."""
    rows = [
        Letter(topic, code, n, in_python(first))
        for (topic, code), (n, first) in found.letters.items()
    ]
    title = counted(sum(each.events for each in rows), "dead letter")
    # A cell is cut where the remedy stands.
    cut = [each.first for each in rows if len(each.first) > WIDEST]
    return Result(Letters(rows), title, Letter, rows, remarks_of(*cut))


def bias(found: CurveOfBias) -> Bias:
    """A curve by rank; no row where clicks do not tell it."""
    curve, ends = found.curve, found.ends
    if curve is None:
        told = remarks_of(UNSURE, in_python(found.warning))
        return Bias(found, "curve of bias", CurveAtRank, [], told)
    unknown = np.full(curve.n_ranks, np.nan)
    low, high = (unknown, unknown) if ends is None else (ends.low, ends.high)
    columns = (curve.alpha, low, high, curve.beta)
    rows = [
        CurveAtRank(rank, *numbers)
        for rank, numbers in enumerate(
            zip(*(each.tolist() for each in columns), strict=True), 1
        )
    ]
    confidence = None if ends is None else ends.confidence
    of = f", intervals of {100.0 * confidence:g} % each" if confidence else ""
    told = remarks_of(*curve.remarks(), found.bias, found.warning)
    title = f"curve of bias by rank, {found.source}{of}"
    return Bias(found, title, CurveAtRank, rows, told)


def relevance(
    found: Counted,
    query: str | int,
    by: CurveOfBias,
    *,
    estimator: str | None,
    has_classes: bool,
) -> Result[QueryRelevance, ItemRelevance]:
    """Items of a query, the most relevant first.

    Raises
    ------
    ValueError
        Where clicks do not tell the curve.
    """
    scopes = found.scopes(query)
    if by.curve is None:
        raise ValueError(UNSURE)
    answer = relevance_in(
        found.source, scopes, by.curve, has_classes=has_classes, estimator=estimator
    )
    told = remarks_of(answer.chosen, *by.said(), answer.warning, *answer.remarks)
    clicks = counted(round(answer.effective_clicks), "click")
    title = f"{query}: relevance, as precise as {clicks} of equal weight"
    drawn = relevance_picture(answer, str(query))
    picture = replace(drawn, notes=(*drawn.notes, *by.said()))
    return Result(answer, title, ItemRelevance, answer.items, told, picture)


def values(found: Values) -> Result[Values, PolicyRow]:
    """Policies, what was logged first."""
    question, coverage = found.question, found.coverage
    told = remarks_of(*map(in_python, found.remarks()))
    title = (
        f"{found.weights} per list by {question.estimator}, against "
        f"{question.base}: {counted(coverage.n_queries, 'query', 'queries')}, "
        f"{counted(coverage.n_lists, 'list')}, {counted(coverage.n_clicks, 'click')}"
    )
    return Result(found, title, PolicyRow, found.rows, told)
