"""Whose clicks policies may be valued on, and by which estimator."""

from collections.abc import Container, Mapping
from typing import NamedTuple

from models.estimators.adaptivity import Basis, basis_of
from models.estimators.choice import Choice, Known, choice_of
from streams.statistics.columns import IMPRESSIONS
from streams.statistics.reader import Statistics

FittedOn = Mapping[str, frozenset[int] | None]
"""Groups whose clicks policies came from, by name; None where that is not known."""


class ValuationBasis(NamedTuple):
    """What values rest on.

    Parameters
    ----------
    basis
        Groups, and what must be said of them.
    choice
        The estimator, and why.
    n_groups
        `statistics.groups` of the statistics.
    """

    basis: Basis
    choice: Choice
    n_groups: int


def valuation_basis_of(
    statistics: Statistics,
    models: Container[str],
    fitted_on: FittedOn,
    own: FittedOn,
    asked: str | None = None,
) -> ValuationBasis:
    """What policies may be valued on.

    Parameters
    ----------
    models
        Names of models that learn online; see `models.estimators.adaptivity`.
    fitted_on
        Of policies that logged.
    own
        Of those that are to be valued; such as no click has moved are not there.
    asked
        The name of an estimator that is asked for.
    """
    counts = statistics.counted
    n_groups = counts[0].groups if counts else 1
    interventions = {name.intervention for name in statistics.scopes()}
    told = {name: fitted_on.get(name) for name in interventions}
    logged = basis_of(interventions, models, told, n_groups)
    basis = basis_of(
        {*interventions, *own}, models, {**told, **own}, n_groups, surely=own.keys()
    )
    known = _known(statistics, is_fixed=logged.has_intervals)
    return ValuationBasis(basis, choice_of(known, asked), n_groups)


def _known(statistics: Statistics, *, is_fixed: bool) -> Known:
    """What is known of all lists; reads no more of them than it takes to know."""
    n_unknown = n_beside = 0
    for chunk in statistics.columns():
        n_placed = chunk.n_placed()
        n_told = int(n_placed[chunk.tells_policies()].sum())
        if n_told:
            return Known(n_told, 0, is_fixed)
        n_unknown += int(chunk.cells[:, IMPRESSIONS].sum())
        n_beside += int(n_placed.sum())
    return Known(0, n_unknown, is_fixed, n_beside)
