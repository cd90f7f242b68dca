"""Whose clicks policies may be valued on, and by which estimator."""

from collections.abc import Container, Mapping
from typing import NamedTuple

from models.estimators.adaptivity import Basis, basis_of
from models.estimators.choice import Choice, Known, choice_of
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
    basis = basis_of({*interventions, *own}, models, {**told, **own}, n_groups)
    n_unknown = sum(one.without_exposure for one in counts)
    n_counted = sum(sum(one.sources.values()) for one in counts)
    known = Known(n_counted - n_unknown, n_unknown, logged.has_intervals)
    return ValuationBasis(basis, choice_of(known, asked), n_groups)
