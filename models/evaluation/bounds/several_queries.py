"""The bound at any time where lists of several queries are compared at once.

Their means differ, and what is asked for is the mean over all lists. So one rate
serves all of them, unlike in `any_time`: the mixture of `confidence_sequence`, from
one side. Whatever M- the queries have that are still to come, a rate that is too large
for one of them leaves the mixture for good.
"""

import math

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.confidence_sequence import half_width, mixture_weights
from models.evaluation.differences import DifferenceSums
from models.evaluation.sums import LOWEST_CLASS, N_CLASSES, class_bounds

PLANNED_SQUARES = 1e4
"""Sum of X^2 at which the bound is narrowest."""


def classes_of_losses(losses: Floats) -> Integers:
    """The class of M- of each row, rounded up to a power of two. [n_rows].

    Parameters
    ----------
    losses : [n_rows]

    Raises
    ------
    ValueError
        Where one is larger than the largest class.
    """
    largest = float(class_bounds()[-1])
    if losses.max(initial=0.0) > largest:
        raise ValueError(
            f"a list can lose {losses.max():.3g}, more than {largest:g} that bounds "
            "over several queries allow: compare shorter lists, or leave out items "
            "that are hardly ever examined"
        )
    exponents = np.ceil(np.log2(np.maximum(losses, 2.0**LOWEST_CLASS)))
    return exponents.astype(np.int64) - LOWEST_CLASS


def lower_bound_over_queries(
    sums: DifferenceSums, epsilon: float, planned: float = PLANNED_SQUARES
) -> float:
    """A lower bound on the mean of X over all lists, at any time.

    Parameters
    ----------
    sums
        Of one comparison, over any queries and policies.
    epsilon
        The confidence, in [0, 1].
    planned
        Sum of X^2 at which the bound is narrowest; chosen before the first list.

    Raises
    ------
    ValueError
        Where M- of a row is too large.
    """
    n, error = int(sums.interactions.sum()), 1.0 - epsilon
    of_row = classes_of_losses(sums.losses)
    if n == 0 or error <= 0.0:
        return -math.inf
    possible = np.bincount(of_row, sums.interactions, N_CLASSES).astype(np.int64)
    squares = np.bincount(of_row, sums.squares, N_CLASSES).astype(np.float64)
    # From one side: half of what two sides may err.
    weights = mixture_weights(planned, min(2.0 * error, 1.0))
    width = half_width(squares, possible, weights, 2.0 * error)
    return (float(sums.totals.sum()) - width) / n
