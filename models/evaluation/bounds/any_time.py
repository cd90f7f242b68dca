"""A lower bound on a difference that holds at all times at once.

Let X_i be the difference that list i shows, m its mean, and c_i above 0 a bound of how
far X_i can be below 0; it follows from the policy that logged the list, and so is known
before the clicks are. For any r in (0, 1), with the rate l_i = r / c_i,

    exp(sum of l_i (X_i - m) - psi(r) X_i^2 / c_i^2),    psi(r) = -log(1 - r) - r

is a supermartingale that begins at 1: exp(l x - psi(l c) x^2 / c^2) is at most 1 + l x
wherever x >= -c, and the mean of 1 + l X_i at most exp(l m). So is a mixture over
several r, and it ever passes 1 / (1 - epsilon) with probability at most 1 - epsilon
(Ville). That is one side alone: how far X_i can be above 0 does not matter.
As each list has a rate of its own, no r ever leaves the mixture, whatever policy logs
later. What came is told by three sums that add up over policies,

    A = sum of X / c,    B = sum of 1 / c,    C = sum of X^2 / c^2.

Lists that could show more to the contrary count for less. Where the mean is not the
same for all lists, as over several queries, take `several_queries`.

References
----------
Fan, Grama & Liu (2015), the inequality; Howard, Ramdas, McAuliffe & Sekhon (Annals of
Statistics 2021), theorem 4; Waudby-Smith & Ramdas (JRSS B 2024), predictable rates.
"""

import math

import numpy as np

from models.arrays import Floats
from models.kernels.compilation import compiled

RATES = np.outer(np.ldexp(1.0, np.arange(0, -13, -1)), [0.75, 0.5]).ravel()
"""The r of the mixture, falling."""

COSTS = -np.log1p(-RATES) - RATES
"""psi(r) of each."""

PLANNED = 48.0
"""The sum of X^2 / c^2 at which the bound is narrowest."""

DECAY = 1.0
"""Weights of the mixture fall by exp(-DECAY) an octave from the planned rate."""

SHARE_OF_GAINS = 0.25
"""c is M-, but at least this share of M+: where hardly anything can speak against a
difference, rates near 1 / M- would be too large for what speaks for it."""

LARGEST_PLANNED_ERROR = 0.5

NEGLIGIBLE = 40.0
"""Terms smaller than the largest by exp(-NEGLIGIBLE) are below its last bit."""


@compiled
def scale(gain: float, loss: float) -> float:
    """What the rate of a list is relative to, c; 0 where X is always 0.

    Parameters
    ----------
    gain, loss
        M+ and M-, the most that X and -X can be.
    """
    return max(loss, SHARE_OF_GAINS * gain)


def log_weights_of_rates(error: float, planned: float) -> Floats:
    """Logarithms of the weights of `RATES`, which add up to 1. [n_rates].

    Parameters
    ----------
    error
        1 - epsilon, in [0, 1].
    planned
        Sum of X^2 / c^2, above 0, at which the bound is narrowest. Any value gives a
        valid bound, if it was chosen before the first list.
    """
    planned_error = min(max(error, 1e-300), LARGEST_PLANNED_ERROR)
    best = math.sqrt(-2.0 * math.log(planned_error) / planned)
    logs = -DECAY * np.abs(np.log2(RATES / best))
    return np.asarray(logs - np.log(np.exp(logs - logs.max()).sum()) - logs.max())


@compiled
def log_evidence(
    excess: float, squares: float, log_weights: Floats
) -> tuple[float, float]:
    """Logarithm of the mixture.

    Parameters
    ----------
    excess
        A - m B, of the mean m that is spoken against.
    squares
        C, 0 or more.
    log_weights : [n_rates]
        Those of `log_weights_of_rates`.

    Returns
    -------
    tuple
        The logarithm, and its derivative by `excess`.
    """
    top, total, slopes = -math.inf, 0.0, 0.0
    for j in range(log_weights.shape[0]):
        term = log_weights[j] + RATES[j] * excess - COSTS[j] * squares
        if term > top:
            shrunk = math.exp(top - term)
            total, slopes, top = total * shrunk, slopes * shrunk, term
        if term > top - NEGLIGIBLE:
            share = math.exp(term - top)
            total += share
            slopes += share * RATES[j]
    return top + math.log(total), slopes / total


@compiled
def largest_excess(squares: float, log_weights: Floats, error: float) -> float:
    """The A - m B from which on a mean m is excluded.

    Parameters
    ----------
    squares
        C, 0 or more.
    log_weights : [n_rates]
        Those of `log_weights_of_rates`.
    error
        1 - epsilon; 0 excludes nothing.
    """
    if error <= 0.0:
        return math.inf
    target = -math.log(error)
    excess = 0.0
    while True:
        # The logarithm is convex and rises: the first step of Newton's method goes
        # beyond the root, the others come down on it.
        value, slope = log_evidence(excess, squares, log_weights)
        step = (value - target) / slope
        excess -= step
        if abs(step) <= 1e-12 * (1.0 + excess):
            return max(excess, 0.0)
