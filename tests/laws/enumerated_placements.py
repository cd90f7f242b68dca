"""P(item at rank) under Plackett-Luce from all lists, of a few items."""

import itertools
from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@cache
def _lists(n_items: int, cutoff: int) -> Integers:
    """Rows of all lists of so many places, [n_lists, cutoff]."""
    return np.array([*itertools.permutations(range(n_items), cutoff)], np.int64)


def enumerated_placements(scores: Floats, cutoff: int) -> Floats:
    """As `models.plackett_luce.placement.placement_batch`, [1, n_items, cutoff].

    `scores` [1, n_items]. Sums have no difference in them, so that nothing cancels.
    """
    (scored,) = scores
    rates = np.exp(scored - scored.max())
    lists = _lists(len(rates), cutoff)
    is_left = np.ones((len(lists), len(rates)), bool)
    np.put_along_axis(is_left, lists, values=False, axis=1)
    picked = rates[lists]
    left = picked[:, ::-1].cumsum(axis=1)[:, ::-1] + (is_left @ rates)[:, None]
    chances = (picked / left).prod(axis=1)
    found = np.zeros((len(rates), cutoff))
    for rank in range(cutoff):
        found[:, rank] = np.bincount(lists[:, rank], chances, len(rates))
    return found[None]
