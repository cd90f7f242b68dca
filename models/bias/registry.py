"""Estimators of bias by name, and what each one asks of a log."""

from typing import NamedTuple, Protocol

from models.bias.examination import estimate_examination
from models.bias.fitted_curve import FittedCurve, position_fit
from models.bias.harvesting import (
    harvest_adjacent,
    harvest_all_pairs,
    harvest_pivot,
)
from models.bias.logged_views import Views, check_views
from models.bias.trust import estimate_trust


class Estimate(Protocol):
    """A curve of views, up to a number of ranks."""

    def __call__(
        self, views: Views, n_ranks: int, confidence: float = 0.95, /
    ) -> FittedCurve:
        """With intervals of a confidence, where the estimator has information."""


class BiasEstimator(NamedTuple):
    """An estimator that needs nothing but counts.

    Parameters
    ----------
    estimate
        See `Estimate`.
    needs
        What a log must have, in one clause; what has it not is refused by rank.
    has_information
        Whether intervals come of the observed information. Others take a bootstrap.
    has_trust_bias
        Whether what is not relevant may be clicked too.
    """

    estimate: Estimate
    needs: str
    has_information: bool
    has_trust_bias: bool = False


def _likelihood(views: Views, n_ranks: int, confidence: float = 0.95) -> FittedCurve:
    check_views(views, n_ranks)
    found = estimate_examination(*views[2:], n_ranks=n_ranks, confidence=confidence)
    return position_fit(found)


def _trust(views: Views, n_ranks: int, confidence: float = 0.95) -> FittedCurve:
    return estimate_trust(views, n_ranks=n_ranks, confidence=confidence).curve


ESTIMATORS = {
    "position": BiasEstimator(
        _likelihood,
        "items that were clicked, seen at several ranks",
        has_information=True,
    ),
    "trust": BiasEstimator(
        _trust,
        "items of different relevance, two or more of them seen at each rank and at "
        "others that lead to the first",
        has_information=True,
        has_trust_bias=True,
    ),
    "adjacent-pairs": BiasEstimator(
        lambda views, n_ranks, _=0.95: harvest_adjacent(views, n_ranks=n_ranks),
        "items that one policy showed at neighbouring ranks",
        has_information=False,
    ),
    "pivot": BiasEstimator(
        lambda views, n_ranks, _=0.95: harvest_pivot(views, n_ranks=n_ranks),
        "items that one policy showed at the first rank and at others",
        has_information=False,
    ),
    "all-pairs": BiasEstimator(
        lambda views, n_ranks, _=0.95: harvest_all_pairs(views, n_ranks=n_ranks),
        "items that one policy showed at several ranks",
        has_information=False,
    ),
}
"""`estimate_by_class` and `estimate_by_features` stand beside these: they take what is
known of items too."""


def bias_estimator(name: str) -> BiasEstimator:
    """The estimator of a name.

    Raises
    ------
    ValueError
        Where there is none.

    Examples
    --------
    >>> bias_estimator("pivot").needs
    'items that one policy showed at the first rank and at others'
    """
    if name not in ESTIMATORS:
        raise ValueError(
            f"an estimator of bias must be one of {', '.join(ESTIMATORS)}; got {name!r}"
        )
    return ESTIMATORS[name]
