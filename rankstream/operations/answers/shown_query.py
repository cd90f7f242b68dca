"""All that was counted of one query, with what it says of its items' relevance."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.estimators.bias_curve import BiasCurve
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.curve import CurveOfBias, curve_for
from rankstream.operations.answers.relevance import QueryRelevance, relevance_in
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.statistics import (
    CountedScopes,
    counted_scope,
    together,
)
from streams.statistics.keys import ScopeName


@dataclass(frozen=True)
class ShownQuery(Answer):
    """Scopes of a query, together and each by itself.

    Parameters
    ----------
    scopes
        Each scope, in the order in which they were asked for.
    together
        The same as one.
    curve
        By which relevance is corrected.
    relevance
        Of the items in all of them; None without a curve.
    """

    query: str
    scopes: list[CountedScopes]
    together: CountedScopes
    curve: CurveOfBias
    relevance: QueryRelevance | None


def shown_query(
    source: CountedLog,
    names: Sequence[ScopeName],
    *,
    examination: BiasCurve | None = None,
    curve_model: str | None = None,
    has_classes: bool = False,
    estimator: str | None = None,
) -> ShownQuery:
    """What was counted in scopes of one query, one at least."""
    found = [counted_scope(source.statistics, name) for name in names]
    by = curve_for(
        source, given=examination, model=curve_model, has_classes=has_classes
    )
    relevance = None
    if by.curve is not None and source.statistics.counted:
        relevance = relevance_in(
            source, names, by.curve, has_classes=has_classes, estimator=estimator
        )
    return ShownQuery(names[0].query, found, together(found), by, relevance)
