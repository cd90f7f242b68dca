"""Intervals for sessions to come, at which anybody may look at any time.

The impressions of a session share a user and a taste, so what is independent is the
session. Whole sessions fall into groups by a hash; let T_g be the sum of a group's
preferences, N_g its impressions, and S and n the sums of both. Around the true mean m
per impression of all sessions, T_g - m N_g are sums over independent sessions of mean
0, and

    R(m) = (S - m n)^2 / sum over g of (T_g - m N_g)^2

is a squared standard score whose variance is estimated from the groups at m itself,
not around the mean that was found: one session that outweighs all others cannot make
the estimate small. In the limit of many sessions the numerator is a Brownian motion
at times proportional to n, and

    sum over scales g of w_g exp(R g n / 2 (1 + g n)) / sqrt(1 + g n)

is a mixture of Robbins' martingales, which ever passes 1 / alpha with probability at
most alpha. The interval is all m where it has not. It is bounded only where n^2 over
the sum of the N_g^2, the *effective* number of groups, passes the threshold of R, and
`LEAST_GROUPS`: with fewer sessions nothing is said of those to come.

The guarantee is asymptotic in the number of sessions, unlike that of
`confidence_sequence`, which is exact but speaks of the sessions that came. It cannot
know of a rare kind of session that has not come yet: `LEAST_GROUPS` is where it
starts. Where each group's total is as likely as its opposite, it holds at each single
look whatever the number of sessions, as `exp(l S - l^2 sum of T_g^2 / 2)` has a mean
of at most 1.

References
----------
Robbins (1970), the mixture; Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (Annals of
Statistics 2024), asymptotic confidence sequences; Maharaj et al. (2023), their use;
Liang & Zeger (1986), clusters; de la Pena (1999), self-normalised sums.
"""

import math

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.sums import SCALE, PreferenceSums
from models.kernels.compilation import compiled

SCALES = np.ldexp(1.0, np.arange(6, -12, -2))
"""Of the mixture: sizes at which the interval is narrowest, as planned / scale."""

DECAY = 0.5
"""Each step away from the planned size has this share of the weight of the last."""

SCALE_WEIGHTS = DECAY ** np.abs(np.log2(SCALES) / 2.0)
SCALE_WEIGHTS /= SCALE_WEIGHTS.sum()

LEAST_GROUPS = 35.0
"""Effective groups to begin with: some 54 sessions of equal length in 100 groups."""


@compiled
def log_session_evidence(
    score: float, size: float, alpha: float
) -> tuple[float, float]:
    """Logarithm of the mixture against a mean of this squared standard score.

    Parameters
    ----------
    score
        R, 0 or more.
    size
        Impressions so far over those that were planned, above 0.
    alpha
        The level for which the planned size gives the narrowest interval.

    Returns
    -------
    tuple
        The logarithm, and its derivative by `score`.
    """
    doubled = -2.0 * math.log(alpha)
    best = doubled + math.log(doubled + 1.0)
    top, total, slopes = -math.inf, 0.0, 0.0
    for j in range(SCALES.shape[0]):
        information = best * size * SCALES[j]
        term = math.log(SCALE_WEIGHTS[j]) - 0.5 * math.log1p(information)
        slope = 0.5 * information / (1.0 + information)
        term += slope * score
        if term > top:
            shrunk = math.exp(top - term)
            total, slopes, top = total * shrunk, slopes * shrunk, term
        share = math.exp(term - top)
        total += share
        slopes += share * slope
    return top + math.log(total), slopes / total


@compiled
def largest_score(size: float, alpha: float) -> float:
    """The squared standard score from which on a mean is excluded.

    The effective number of groups must pass it for any to be.
    """
    target = -math.log(alpha)
    score = 0.0
    while True:
        # The logarithm is convex and rises: the first step of Newton's method goes
        # beyond the root, the others come down on it.
        value, slope = log_session_evidence(score, size, alpha)
        step = (value - target) / slope
        score -= step
        if abs(step) <= 1e-12 * score:
            return score


@compiled
def means_within(moments: Floats, largest: float) -> tuple[float, float]:
    """The means whose squared standard score is at most `largest`.

    Parameters
    ----------
    moments : [6]
        S, n, and the sums over groups of T^2, T N, N^2 and |T|.
    largest
        That of `largest_score`.

    Returns
    -------
    tuple
        Both ends; infinite where too few groups carry the impressions, or the
        preferences, for anything to be excluded.
    """
    total, n, squares, products, sizes, absolute = moments
    spare = n * n - largest * sizes
    is_early = n * n <= LEAST_GROUPS * sizes
    if is_early or spare <= 0.0 or absolute * absolute <= largest * squares:
        return -math.inf, math.inf
    middle = (n * total - largest * products) / spare
    constant = (total * total - largest * squares) / spare
    spread = math.sqrt(max(middle * middle - constant, 0.0))
    return middle - spread, middle + spread


def session_intervals(sums: PreferenceSums, alpha: float, planned: float) -> Floats:
    """Mean preference per impression of sessions to come. [n_pairs, 2].

    Parameters
    ----------
    alpha
        Probability, in the limit of many sessions, that a pair's ever errs.
    planned
        Impressions at which intervals should be narrowest, fixed beforehand.

    Returns
    -------
    [n_pairs, 2]
        Both ends; infinite where sessions are too few.
    """
    n_pairs = len(sums.counts)
    n = int(sums.impressions.sum())
    if n == 0:
        return np.tile([-np.inf, np.inf], (n_pairs, 1))
    largest = largest_score(n / planned, alpha)
    totals, sizes = sums.totals / SCALE, sums.impressions.astype(np.float64)
    moments = np.empty((n_pairs, 6))
    moments[:, 0] = totals.sum(axis=0)
    moments[:, 1] = n
    moments[:, 2] = (totals * totals).sum(axis=0)
    moments[:, 3] = sizes @ totals
    moments[:, 4] = sizes @ sizes
    moments[:, 5] = np.abs(totals).sum(axis=0)
    return np.array([means_within(of_pair, largest) for of_pair in moments])


def rate_interval(
    totals: Integers, sizes: Integers, alpha: float, planned: float
) -> tuple[float, float]:
    """A mean per impression of sessions to come, such as that of clicks per list.

    Parameters
    ----------
    totals : [n_groups]
        Of what is averaged, by group of sessions.
    sizes : [n_groups]
        Impressions of each group.
    alpha
        Probability, in the limit of many sessions, that the interval ever errs.
    planned
        Impressions at which it should be narrowest, fixed beforehand.

    Returns
    -------
    tuple
        Both ends; infinite where sessions are too few.
    """
    return mean_interval(
        totals.astype(np.float64), sizes.astype(np.float64), alpha, planned
    )


def mean_interval(
    totals: Floats, sizes: Floats, alpha: float, planned: float
) -> tuple[float, float]:
    """The same, where sizes need not be whole numbers, as where lists have weights.

    Parameters
    ----------
    totals, sizes : [n_groups]
        By group of sessions; no size is below 0.
    alpha, planned
        As of `rate_interval`; `planned` in the unit of the sizes.
    """
    n = float(sizes.sum())
    if n == 0.0:
        return -math.inf, math.inf
    moments = np.array(
        [
            totals.sum(),
            n,
            totals @ totals,
            totals @ sizes,
            sizes @ sizes,
            np.abs(totals).sum(),
        ]
    )
    low, high = means_within(moments, largest_score(n / planned, alpha))
    return float(low), float(high)


def groups_of_equal_size(impressions: Integers) -> float:
    """How many groups of equal size would carry as much as these.

    Parameters
    ----------
    impressions : [n_groups]
        Of each group.

    Returns
    -------
    float
        0 before any impression.
    """
    sizes = impressions.astype(np.float64)
    squares = float(sizes @ sizes)
    return float(sizes.sum() ** 2 / squares) if squares else 0.0
