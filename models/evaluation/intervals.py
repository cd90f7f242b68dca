"""Intervals for a sample size that was fixed beforehand. Do not peek at these.

References
----------
Chapelle, Joachims, Radlinski & Yue (TOIS 2012) for interleaving; Cameron & Miller
(2015) for clusters.
"""

import numpy as np
from scipy.stats import norm, t

from models.arrays import Floats
from models.evaluation.sums import SCALE, PreferenceSums


def fixed_half_widths(sums: PreferenceSums, alpha: float) -> Floats:
    """Half of each pair's interval if impressions are independent. [n_pairs]."""
    n = int(sums.impressions.sum())
    if n < 2:
        return np.full(len(sums.counts), np.inf)
    squares = sums.squares_by_class().sum(axis=1)
    variance = np.maximum(squares / n - sums.mean() ** 2, 0.0) * n / (n - 1)
    return np.asarray(norm.ppf(1.0 - alpha / 2.0) * np.sqrt(variance / n))


def clustered_half_widths(sums: PreferenceSums, alpha: float) -> Floats:
    """Half of each pair's interval if only sessions are independent. [n_pairs].

    Groups of whole sessions are the clusters: the variance is that of their totals
    around what their sizes make expected, and Student's t has one degree of freedom
    less than there are groups.
    """
    has_any = sums.impressions > 0
    n_groups, n = int(has_any.sum()), int(sums.impressions.sum())
    if n_groups < 2:
        return np.full(len(sums.counts), np.inf)
    totals = sums.totals[has_any] / SCALE
    expected = sums.impressions[has_any, None] * sums.mean()
    spread = ((totals - expected) ** 2).sum(axis=0) * n_groups / (n_groups - 1)
    quantile = t.ppf(1.0 - alpha / 2.0, n_groups - 1)
    return np.asarray(quantile * np.sqrt(spread) / n)
