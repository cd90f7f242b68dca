"""Estimators of bias by name, what each one asks of a log, and a fit by any."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from models.bias.bootstrap import N_RESAMPLES, with_bootstrap
from models.bias.examination import NOT_SHOWN, estimate_examination
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


def fitted(  # noqa: PLR0913  what a fit depends on
    estimator: str,
    views: Views,
    rng: np.random.Generator,
    *,
    n_ranks: int,
    others: Views | None = None,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    on_estimate: Callable[[], object] = lambda: None,
) -> FittedCurve:
    """A curve, with intervals of the observed information or of a bootstrap.

    Documents that were seen at one rank only take no part, but make the difference
    between a rank at which nothing was shown and one that no other leads to.

    Parameters
    ----------
    estimator
        A name of `ESTIMATORS`.
    views
        Of items that were seen at several ranks.
    rng
        Draws queries, where the estimator has no information.
    others
        Of items that were not, each with a number that no item of `views` has.
    confidence
        Of each rank's interval, in (0, 1).
    n_resamples
        2 or more.
    on_estimate
        Is called before each of them; what it raises ends the fit.

    Raises
    ------
    ValueError
        Where there is no such estimator, or counts are impossible.
    """
    entry = bias_estimator(estimator)
    whole = views if others is None else _joined(views, others)
    told = entry.estimate(whole, n_ranks, confidence)
    if entry.has_information or told.n_known < 2:
        return told

    def again(drawn: Views) -> FittedCurve:
        on_estimate()
        return entry.estimate(drawn, n_ranks, confidence)

    found = with_bootstrap(
        views,
        again,
        rng,
        n_resamples=n_resamples,
        confidence=confidence,
    )
    reasons = (
        known if why == NOT_SHOWN else why
        for why, known in zip(found.reasons, told.reasons, strict=True)
    )
    return replace(found, reasons=tuple(reasons))


def _joined(views: Views, others: Views) -> Views:
    return Views(*(np.concatenate(pair) for pair in zip(views, others, strict=True)))
