"""Intervals that hold at all times at once, so that anybody may peek.

Let X_i be the preference of impression i, mu_i its mean given everything before,
the rankings included but not the list that was drawn, and c_i a bound of |X_i| that
follows from the rankings. For any l with l c_i < 1 at all i,

    exp(sum of l (X_i - mu_i) - psi_i(l) X_i^2),
    psi_i(l) = (-log(1 - l c_i) - l c_i) / c_i^2

is a supermartingale that begins at 1. So is a mixture over several l, and it passes
2 / alpha with probability at most alpha / 2 ever (Ville). An l that the bound of an
impression does not allow leaves the mixture for good, clicked or not. Solved for the
sum of mu_i, from both sides, that covers the running mean of the mu_i, whatever
rankers and users do meanwhile. What users do may be taken as given beforehand, so that
only the draws are random: the mean is then that over all lists that might have been
drawn for the sessions that came, whether or not sessions resemble each other. Of those
to come it says nothing: see `session_sequence`. As psi grows with c, squares may be
summed by class of bound, and the interval is a function of sums that add up over
partitions.

References
----------
Fan, Grama & Liu (2015), the inequality; Howard, Ramdas, McAuliffe & Sekhon (Annals
of Statistics 2021), theorem 4, the empirical-Bernstein sequence; Waudby-Smith &
Ramdas (JRSS B 2024), predictable choices; Lindon & Kallus (2026), inference from the
draws alone. The predicted mean is 0 here, which keeps the squares additive.
"""

import math

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.sums import PreferenceSums, class_bounds
from models.kernels.compilation import compiled

RATES = np.outer(np.ldexp(1.0, np.arange(8, -25, -1)), [1.0, 0.75]).ravel()
"""The l of the mixture, falling: bounds are rounded up to powers of two, of which the
largest useful l is three quarters of the inverse."""

CLASS_BOUNDS = class_bounds()

DECAY = 0.5
"""Weights of the mixture fall by exp(-DECAY) an octave from the planned rate."""


def mixture_weights(planned_squares: float, alpha: float) -> Floats:
    """Weights of `RATES`, heaviest where the interval is narrowest when it matters.

    Parameters
    ----------
    planned_squares
        Sum of squared preferences at which the interval should be narrowest. Any
        value gives valid intervals, if it was chosen before the first impression.
    alpha
        Probability that either end ever errs.
    """
    best = math.sqrt(2.0 * math.log(2.0 / alpha) / planned_squares)
    weights = np.exp(-DECAY * np.abs(np.log2(RATES / best)))
    return np.asarray(weights / weights.sum())


@compiled
def log_mixture(
    excess: float,
    squares: Floats,
    possible: Integers,
    bounds: Floats,
    log_weights: Floats,
) -> float:
    """Logarithm of the mixture where the sum is `excess` above that of its means.

    Parameters
    ----------
    squares, possible, bounds : [n_classes]
        Sums of squares and impressions by class of bound, and the classes' bounds.
    log_weights : [n_rates]
        Of `RATES`.
    """
    largest = 0.0
    for row in range(bounds.shape[0]):
        if possible[row] > 0:
            largest = bounds[row]
    total, top = 0.0, -math.inf
    for j in range(log_weights.shape[0]):
        rate = RATES[j]
        if rate * largest >= 1.0:
            continue
        term = log_weights[j] + rate * excess
        for row in range(bounds.shape[0]):
            if squares[row] > 0.0:
                scaled = rate * bounds[row]
                cost = -math.log1p(-scaled) - scaled
                term -= cost / (bounds[row] * bounds[row]) * squares[row]
        if term > top:
            total = total * math.exp(top - term) + 1.0
            top = term
        else:
            total += math.exp(term - top)
    return top + math.log(total)


@compiled
def half_width(
    squares: Floats, possible: Integers, weights: Floats, alpha: float
) -> float:
    """How far the sum of preferences may be from the sum of their means.

    Parameters
    ----------
    squares, possible : [n_classes]
        Sums of squares, and impressions, by class of bound.
    weights : [n_rates]
        Those of `mixture_weights`.
    alpha
        Probability that either end ever errs.

    Returns
    -------
    float
        Infinite before anything was observed.
    """
    if not possible.any():
        return math.inf
    bounds, logs = CLASS_BOUNDS, np.log(weights)
    target = math.log(2.0 / alpha)
    low, high = 0.0, 1.0
    while log_mixture(high, squares, possible, bounds, logs) < target:
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        if log_mixture(middle, squares, possible, bounds, logs) < target:
            low = middle
        else:
            high = middle
    return high


def half_widths(sums: PreferenceSums, alpha: float, planned_squares: float) -> Floats:
    """Half of each pair's interval around its mean preference. [n_pairs]."""
    n = max(1, int(sums.impressions.sum()))
    weights = mixture_weights(planned_squares, alpha)
    squares = sums.squares_by_class()
    widths = [
        half_width(of_pair, possible, weights, alpha)
        for of_pair, possible in zip(squares, sums.possible, strict=True)
    ]
    return np.array(widths) / n
