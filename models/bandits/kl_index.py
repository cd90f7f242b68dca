"""How good an item may be by its clicks: the upper index of KL-UCB, over several ranks.

An item was shown N_l times and clicked S_l times at rank l, which is examined with
chance kappa_l. If it is clicked with chance q where it is examined, what came costs

    c(q) = sum over l of N_l kl(S_l / N_l, kappa_l q)

with kl the divergence of two coins. The index is the largest q in [0, 1] with c(q) at
most log t + 3 log log t, after t lists. As c is convex, all q between that of least
cost and the index are within the budget. Where none is, as chance at several ranks may
have it, the index is that of least cost. What was never shown has the index 1.

References
----------
Garivier & Cappe (COLT 2011), KL-UCB; Lagree, Vernade & Cappe (NIPS 2016), the index of
the position-based model, section 4.
"""

import math

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled

HALVINGS = 52
"""Of the interval in which an index lies."""


@compiled
def divergence(p: float, q: float) -> float:
    """kl(p, q) of two coins, in nats; infinite where q rules out what p has."""
    found = 0.0
    if p > 0.0:
        found += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        found += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return found


@compiled
def cost(clicks: Integers, shows: Integers, examination: Floats, q: float) -> float:
    """c(q), in nats.

    Parameters
    ----------
    clicks, shows, examination : [n_ranks]
        S, N and kappa.
    q
        In [0, 1].
    """
    found = 0.0
    for rank in range(len(shows)):
        if shows[rank] > 0:
            rate = clicks[rank] / shows[rank]
            found += shows[rank] * divergence(rate, examination[rank] * q)
    return found


@compiled
def budget(n_lists: int) -> float:
    """Log t + 3 log log t, in nats; the second term counts from t = e on."""
    if n_lists <= 1:
        return 0.0
    log = math.log(n_lists)
    return log + 3.0 * math.log(max(log, 1.0))


@compiled
def reaches(
    clicks: Integers, shows: Integers, examination: Floats, most: float, level: float
) -> bool:
    """Whether the index is at least as high as a level; one look at c instead of many.

    Parameters
    ----------
    clicks, shows, examination : [n_ranks]
        S, N and kappa.
    most
        The budget.
    level
        From 0; above 1 it is taken as 1.
    """
    level = min(level, 1.0)
    if level <= 0.0:
        return True
    slope = 0.0
    for rank in range(len(shows)):
        chance = examination[rank] * level
        lacking = shows[rank] * chance - clicks[rank]
        if chance < 1.0:
            slope += lacking / (1.0 - chance)
        elif lacking > 0.0:
            return False
        else:
            slope -= shows[rank]  # its limit where each list was clicked
    return slope <= 0.0 or cost(clicks, shows, examination, level) <= most


@compiled
def upper_index(
    clicks: Integers, shows: Integers, examination: Floats, most: float
) -> float:
    """The index, to 1e-15.

    Parameters
    ----------
    clicks, shows, examination : [n_ranks]
        S, N and kappa.
    most
        The budget.
    """
    if reaches(clicks, shows, examination, most, 1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if reaches(clicks, shows, examination, most, middle):
            low = middle
        else:
            high = middle
    return low
