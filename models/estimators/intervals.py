"""Intervals of corrected relevance, from how much groups of users differ.

For one look at sums whose policies were fixed beforehand, or fitted on other groups.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri, stdtrit

from models.arrays import Floats
from models.estimators.intervention_aware import ItemSums, estimates

FEW = 25
"""Clicks of an item below which its interval is that of few clicks."""

FEW_GROUPS = "counted in fewer than two groups"
FEW_CLICKS = "clicked in fewer than two groups"


class Intervals(NamedTuple):
    """Ends of each item's interval, and why there is none.

    Parameters
    ----------
    low, high : [n_items]
        NaN where there is none.
    degrees : [n_items]
        Of freedom: groups that could show the item, less one.
    reasons : [n_items]
        Why there is none; empty where there is one.
    """

    low: Floats
    high: Floats
    degrees: Floats
    reasons: tuple[str, ...]


def jackknife_intervals(sums: ItemSums, *, confidence: float = 0.95) -> Intervals:
    """Intervals of `estimates(sums)`, leaving out one group at a time.

        value -+ t * sqrt((G - 1) / G * sum of (value without g - their mean)^2)

    G groups could show the item, and t is the quantile of Student's distribution with
    G - 1 degrees of freedom. A group holds whole sessions, so users with tastes of
    their own do no harm. Where fewer than two groups clicked the item, groups hardly
    differ, and what they say of its spread is too little.

    Of fewer than `FEW` clicks that would hold the truth too seldom: clicks that came by
    chance are few and alike at once. Their ends are those of `few_click_ends`, less
    what trust bias makes expected, over the support; clicks vary as much as groups
    say, times (t / z)^2, and at least as their number. No click has an interval too.

    Parameters
    ----------
    sums : [n_groups, n_items]
        Groups that the estimate is made of.
    confidence
        In (0, 1).

    References
    ----------
    Efron & Tibshirani (An Introduction to the Bootstrap, 1993), chapter 11, for the
    jackknife of a smooth statistic.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")
    has_item = sums.alpha > 0.0
    n_groups = has_item.sum(axis=0)
    without = _without_each(sums)
    deviation = spread_without_each(without, has_item)
    degrees = np.maximum(n_groups - 1.0, 0.0)
    quantile = stdtrit(np.maximum(degrees, 1.0), 0.5 + 0.5 * confidence)
    reasons = _reasons(sums)
    is_there = np.array([not reason for reason in reasons], np.bool_)
    half = np.where(is_there, quantile * deviation, np.nan)
    values = estimates(sums).values
    low, high = values - half, values + half
    few = np.flatnonzero(is_there & (sums.clicked.sum(axis=0) < FEW))
    low[few], high[few] = _of_few(sums, half, few, confidence)
    return Intervals(low, high, degrees, reasons)


def _of_few(
    sums: ItemSums, half: Floats, items: npt.NDArray[np.intp], confidence: float
) -> tuple[Floats, Floats]:
    """Ends of items of few clicks; `half` [n_items] of the interval that groups say."""
    alpha, beta, clicked = (
        table[:, items].sum(axis=0) for table in (sums.alpha, sums.beta, sums.clicked)
    )
    said = (half[items] * alpha / float(ndtri(0.5 - 0.5 * confidence))) ** 2
    ends = few_click_ends(
        clicked, np.maximum(clicked, said), np.ones(len(items)), confidence=confidence
    )
    low, high = ((end - beta) / alpha for end in ends)
    return low, high


def spread_without_each(without: Floats, has_item: npt.NDArray[np.bool_]) -> Floats:
    """Standard errors, [n_items], of figures without each group.

    Parameters
    ----------
    without : [n_groups, n_items]
        Those that are not finite count 0.
    has_item : [n_groups, n_items]
        Whether the group counts.
    """
    n_groups = has_item.sum(axis=0)
    known = np.where(has_item & np.isfinite(without), without, 0.0)
    n_divided = np.maximum(n_groups, 1)
    mean = known.sum(axis=0) / n_divided
    squares = np.where(has_item, (known - mean) ** 2, 0.0).sum(axis=0)
    spread: Floats = np.sqrt(squares * (n_groups - 1) / n_divided)
    return spread


def _without_each(sums: ItemSums) -> Floats:
    """Values without each group, [n_groups, n_items]; not finite where nothing is."""
    alpha, beta, clicked = (
        table.sum(axis=0) - table for table in (sums.alpha, sums.beta, sums.clicked)
    )
    values: Floats = np.full_like(alpha, np.nan)
    np.divide(clicked - beta, alpha, out=values, where=alpha > 0.0)
    return values


def _reasons(sums: ItemSums) -> tuple[str, ...]:
    n_groups = (sums.alpha > 0.0).sum(axis=0)
    n_clicked = (sums.clicked > 0.0).sum(axis=0)
    is_of_one = (n_clicked < 2) & (sums.clicked.sum(axis=0) >= FEW)
    without = np.where(is_of_one, FEW_CLICKS, "")
    return tuple(np.where(n_groups < 2, FEW_GROUPS, without).tolist())


def few_click_ends(
    total: Floats, variance: Floats, heaviest: Floats, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Ends of the interval of the mean of a weighted sum of clicks.

    Both are quantiles of gamma distributions. The lower one has the mean and variance
    of the sum, the upper one those of the sum and one click more, of the largest
    weight. Of clicks of one weight that vary as Poisson's do they are Garwood's exact
    ends; what varies less, as clicks of independent lists, is held more often.

    Parameters
    ----------
    total : [n]
        Sum of the weights of clicks; 0 without any.
    variance : [n]
        Of that: the sum of squared weights, or more where clicks vary more.
    heaviest : [n]
        The largest weight that a click may have, more than 0.
    confidence
        In (0, 1).

    References
    ----------
    Fay & Feuer (Statistics in Medicine 16, 1997), "Confidence intervals for directly
    standardized rates: a method based on the gamma distribution", equations 4 and 5;
    Garwood (Biometrika 28, 1936) for clicks of one weight.

    Examples
    --------
    No click, and three of them:

    >>> clicks = np.array([0.0, 3.0])
    >>> low, high = few_click_ends(clicks, clicks, np.ones(2))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.619], [3.689, 8.767])
    """
    is_there = total > 0.0
    mean, spread = np.where(is_there, total, 1.0), np.where(is_there, variance, 1.0)
    low = _quantile(0.5 - 0.5 * confidence, mean, spread)
    high = _quantile(0.5 + 0.5 * confidence, total + heaviest, variance + heaviest**2)
    return np.where(is_there, low, 0.0), high


def _quantile(chance: float, mean: Floats, variance: Floats) -> Floats:
    """Of gamma distributions of these means and variances."""
    found: Floats = gammaincinv(mean**2 / variance, chance) * variance / mean
    return found
