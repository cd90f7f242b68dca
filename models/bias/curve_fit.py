"""A curve by any estimator, with the intervals that it has.

Documents that were seen at one rank only take no part, but make the difference between
a rank at which nothing was shown and one that no other leads to.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from models.bias.bootstrap import N_RESAMPLES, with_bootstrap
from models.bias.examination import NOT_SHOWN
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import bias_estimator


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
    """The curve, with intervals of the observed information or of a bootstrap.

    Parameters
    ----------
    estimator
        A name of `models.bias.registry`.
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
