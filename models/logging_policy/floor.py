"""A policy under which each item that matters is looked at often enough.

A click counts lambda / rho. So rho must not be near 0 where lambda is not: a policy
that was optimised by wrong estimates would else rest on a few clicks. Scores are led
towards those of the policy whose least rho is the largest, which shows what matters in
any order above all else, just as far as the floor asks for.
"""

import numpy as np

from models.arrays import Floats
from models.logging_policy.compared_query import ComparedQuery
from models.losses.placement_gradient import fill_weights

LEAST = 0.01
"""P(looked at) of what matters, where nothing else is asked for."""

FAR_BELOW = -40.0
"""Score of what does not matter, under the policy whose least rho is the largest."""

N_HALVINGS = 20


def checked_floor(floor: float) -> float:
    """The same floor.

    Raises
    ------
    ValueError
        Where it is not in [0, 1).
    """
    if not 0.0 <= floor < 1.0:
        raise ValueError(f"floor must lie in [0, 1); got {floor}")
    return floor


def highest_floor(query: ComparedQuery) -> float:
    """The largest least P(looked at) of what matters, over all policies; 1 for none."""
    differs = int((query.differences != 0.0).sum())
    if not differs:
        return 1.0
    return float(query.examination[:differs].sum() / differs)


def floored(scores: Floats, query: ComparedQuery, floor: float) -> Floats:
    """The scores, or the nearest on the way to the safest policy that meet the floor.

    What matters are items with a difference, whatever their relevance: that is not
    known for sure.

    Parameters
    ----------
    scores : [n]
        Finite.
    floor
        Least P(looked at) of what matters, in [0, 1).

    Returns
    -------
    [n]

    Raises
    ------
    ValueError
        Where no policy meets the floor.
    """
    matters = query.differences != 0.0
    if not matters.any():
        return scores
    if checked_floor(floor) > highest_floor(query):
        raise ValueError(
            f"floor must be at most {highest_floor(query):.4g} for {matters.sum()} "
            f"items that lists of {len(query.examination)} differ in; got {floor}: no "
            "policy meets it"
        )
    safest = np.where(matters, 0.0, FAR_BELOW)
    centred = scores - scores[matters].mean()
    if _least(centred, query) >= floor:
        return scores
    met, missed = 0.0, 1.0
    for _ in range(N_HALVINGS):
        share = 0.5 * (met + missed)
        if _least(safest + share * (centred - safest), query) >= floor:
            met = share
        else:
            missed = share
    return np.asarray(safest + met * (centred - safest))


def _least(scores: Floats, query: ComparedQuery) -> float:
    """The least P(looked at) of an item with a difference."""
    n = len(scores)
    propensities = np.empty(n)
    fill_weights(scores, query.examination, np.empty(n, np.int64), propensities)
    return float(propensities[query.differences != 0.0].min())
