"""Plackett-Luce placements a second time: one integral, one plain trapezoid.

Give item i an exponential clock of rate exp(score); the list is the order in which
clocks ring (Luce, 1959; Yellott, 1977). Item i stands at rank r where exactly r - 1
of the others have rung before it, and given when i rings the others are independent.
All terms are positive, and in the logarithm of time the integrand is analytic in a
strip, so that the trapezoid converges geometrically in 1 / step.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.2
"""Of the logarithm of time; its error is below exp(-pi^2 / STEP)."""

CACHED_PLACEMENTS = 4_096

WIDEST_GAP = 60.0
"""Between neighbouring scores, as wide as it is taken."""

ERROR = 1e-9
"""What the two computations of a placement may differ by."""


@lru_cache(maxsize=CACHED_PLACEMENTS)
def placements(scores: bytes, n_ranks: int) -> Floats:
    """P(item at rank) under Plackett-Luce.

    Parameters
    ----------
    scores : float32 [n_items], as bytes
    n_ranks
        Length of the list.

    Returns
    -------
    Array [n_items, n_ranks].
    """
    values = _drawn_together(np.frombuffer(scores, "<f4").astype(np.float64))
    n_items = len(values)
    nodes = np.arange(-values.max() - 46.0, -values.min() + 5.0, STEP)
    log_rates = values[:, None] + nodes
    with np.errstate(under="ignore", over="ignore"):
        silent = np.exp(-np.exp(log_rates))
        rung = -np.expm1(-np.exp(log_rates))
        density = np.exp(log_rates - np.exp(log_rates))
        before = [_none_rung(len(nodes), n_ranks)]
        for item in range(n_items - 1):
            before.append(_with_one_more(before[-1], rung[item], silent[item]))
        matrix = np.zeros((n_items, n_ranks))
        after = _none_rung(len(nodes), n_ranks)
        for item in reversed(range(n_items)):
            for rank in range(n_ranks):
                others = sum(
                    before[item][some] * after[rank - some] for some in range(rank + 1)
                )
                matrix[item, rank] = STEP * math.fsum(density[item] * others)
            after = _with_one_more(after, rung[item], silent[item])
    return matrix


def _drawn_together(values: Floats) -> Floats:
    """Scores below 0, the largest, with no gap that takes longer than it matters.

    Far from 0 a step of the trapezoid would be rounded; and an item behind a gap of
    `WIDEST_GAP` comes before one above it with a probability below 1e-26.
    """
    below = np.sort(values)[::-1] - values.max()
    gaps = np.minimum(-np.diff(below, prepend=0.0), WIDEST_GAP)
    together = np.empty_like(values)
    together[np.argsort(-values, kind="stable")] = -np.cumsum(gaps)
    return together


def _none_rung(n_nodes: int, n_ranks: int) -> Floats:
    """P(how many rang) of no clocks at all: [n_ranks, n_nodes]."""
    counts = np.zeros((n_ranks, n_nodes))
    counts[0] = 1.0
    return counts


def _with_one_more(counts: Floats, rung: Floats, silent: Floats) -> Floats:
    """P(how many rang) with one more clock; more than n_ranks - 1 are left out."""
    more = counts * silent
    more[1:] += counts[:-1] * rung
    return more
