"""Whose clicks policies may be valued on, and by which estimator."""

from collections.abc import Container, Mapping
from typing import NamedTuple

from models.estimators.adaptivity import Basis, basis_of
from models.estimators.registry import recommended
from streams.fold.statistics_reader import Statistics

FittedOn = Mapping[str, frozenset[int] | None]
"""Groups whose clicks policies came from, by name; None where that is not known."""


class Grounds(NamedTuple):
    """What values rest on.

    Parameters
    ----------
    basis
        Groups, and what must be said of them.
    estimator
        The name of the one to take where nothing else is asked for.
    n_groups
        `statistics.groups` of the statistics.
    """

    basis: Basis
    estimator: str
    n_groups: int


def grounds_of(
    statistics: Statistics, models: Container[str], fitted_on: FittedOn, own: FittedOn
) -> Grounds:
    """What policies may be valued on.

    Parameters
    ----------
    models
        Names of models that learn online; see `models.estimators.adaptivity`.
    fitted_on
        Of policies that logged.
    own
        Of those that are to be valued; such as no click has moved are not there.
    """
    counts = statistics.counted
    n_groups = counts[0].groups if counts else 1
    interventions = {name.intervention for name in statistics.scopes()}
    known = {name: fitted_on.get(name) for name in interventions}
    logged = basis_of(interventions, models, known, n_groups)
    basis = basis_of({*interventions, *own}, models, {**known, **own}, n_groups)
    n_unknown = sum(one.without_exposure for one in counts)
    n_counted = sum(sum(one.sources.values()) for one in counts)
    name = recommended(
        has_placements=n_unknown < n_counted, is_fixed=logged.has_intervals
    )
    return Grounds(basis, name, n_groups)
