"""Ends of intervals of sums of few clicks, where no normal distribution is near.

References
----------
Fay & Feuer (Statistics in Medicine 16, 1997), "Confidence intervals for directly
standardized rates: a method based on the gamma distribution", equations 4 and 5;
Garwood (Biometrika 28, 1936) for clicks of one weight.
"""

import numpy as np
from scipy.special import gammaincinv

from models.estimators.intervention_aware import Floats


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
