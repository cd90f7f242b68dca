"""Intervals of a curve by drawing queries again, whatever the estimator.

A query is drawn as a whole, so users and documents that have something in common do no
harm as long as they are of one query. Resamples are as many queries as there are, with
repetition; the spread of the logs of their ratios is that of the estimate.

References
----------
Efron & Tibshirani (An Introduction to the Bootstrap, 1993), sections 6.2 and 8.3;
Hesterberg (The American Statistician 69, 2015), section 3.2, for intervals of few.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from models.arrays import Floats
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views

N_RESAMPLES = 200

LEAST_QUERIES = 20
"""Fewer say too little of how queries differ."""

LEAST_KNOWN = 0.9
"""Share of resamples that must know a rank."""

FEW_QUERIES = "there are too few queries to draw from"
SELDOM_KNOWN = "too few resamples of queries know it"


class Resamples(NamedTuple):
    """Curves of resampled queries.

    Parameters
    ----------
    alpha, beta : [n_resamples, n_ranks]
        NaN where a resample does not know the rank.
    """

    alpha: Floats
    beta: Floats

    def log_errors(self) -> Floats:
        """Standard errors of the logs of alpha, [n_ranks]; NaN where seldom known."""
        return _deviations(np.log(np.where(self.alpha > 0.0, self.alpha, np.nan)))

    def beta_errors(self) -> Floats:
        """Standard errors of beta, [n_ranks]; NaN where seldom known."""
        return _deviations(self.beta)


def resample(
    views: Views,
    estimate: Callable[[Views], FittedCurve],
    rng: np.random.Generator,
    *,
    n_resamples: int = N_RESAMPLES,
) -> Resamples:
    """Estimate again from queries that are drawn with repetition.

    Parameters
    ----------
    estimate
        The estimator that is asked about.
    rng
        Two generators of one seed draw the same queries.
    n_resamples
        2 or more.
    """
    if n_resamples < 2:
        raise ValueError(f"resamples must be 2 or more; got {n_resamples}")
    n_queries = len(np.unique(views.queries))
    chances = np.full(n_queries, 1.0 / n_queries)
    curves = [
        estimate(views.drawn(rng.multinomial(n_queries, chances)))
        for _ in range(n_resamples)
    ]
    return Resamples(
        np.array([curve.alpha for curve in curves]),
        np.array([curve.beta for curve in curves]),
    )


def with_bootstrap(
    views: Views,
    estimate: Callable[[Views], FittedCurve],
    rng: np.random.Generator,
    *,
    n_resamples: int = N_RESAMPLES,
    confidence: float = 0.95,
) -> FittedCurve:
    """The estimate, with intervals from the spread of resampled queries.

        alpha * exp(-+ t * error of log alpha)        beta -+ t * error of beta

    t is Student's quantile of Q - 1 degrees of freedom for Q queries, times
    sqrt(Q / (Q - 1)), as resamples vary that much less than queries do. Ranks that
    the estimate or too many of the resamples do not know have none.

    Parameters
    ----------
    confidence
        In (0, 1). As in `resample`.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")
    found = estimate(views)
    n_queries = len(np.unique(views.queries))
    if n_queries < LEAST_QUERIES:
        return found.without_intervals(FEW_QUERIES)
    drawn = resample(views, estimate, rng, n_resamples=n_resamples)
    t = float(stdtrit(n_queries - 1.0, 0.5 + 0.5 * confidence))
    t *= float(np.sqrt(n_queries / (n_queries - 1.0)))
    factor, half = np.exp(t * drawn.log_errors()), t * drawn.beta_errors()
    is_told = np.isfinite(factor) & np.isfinite(half)
    reasons = tuple(
        why if not is_there else "" if is_known else SELDOM_KNOWN
        for why, is_there, is_known in zip(
            found.reasons, np.isfinite(found.alpha), is_told, strict=True
        )
    )
    factor, half = np.where(is_told, factor, np.nan), np.where(is_told, half, np.nan)
    return replace(
        found,
        alpha_low=found.alpha / factor,
        alpha_high=found.alpha * factor,
        beta_low=found.beta - half,
        beta_high=found.beta + half,
        reasons=reasons,
    )


def _deviations(values: Floats) -> Floats:
    is_known = np.isfinite(values)
    n = is_known.sum(axis=0)
    kept = np.where(is_known, values, 0.0)
    divisor = np.maximum(n, 2)
    mean = kept.sum(axis=0) / divisor
    squares = np.where(is_known, (values - mean) ** 2, 0.0).sum(axis=0)
    deviations: Floats = np.sqrt(squares / (divisor - 1))
    return np.where(n >= LEAST_KNOWN * len(values), deviations, np.nan)
