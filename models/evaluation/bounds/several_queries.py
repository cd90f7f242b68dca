"""The bound at any time where lists of several queries are compared at once.

Their means differ, and what is asked for is the mean over all lists. So one rate
serves all of them, unlike in `any_time`: the mixture of `confidence_sequence`, from
one side. Whatever M- the queries have that are still to come, a rate that is too large
for one of them leaves the mixture for good.
"""

import math
from typing import NamedTuple

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


class ClassSums(NamedTuple):
    """Sums of all queries, by group of sessions and class of M-.

    Parameters
    ----------
    totals : [n_groups]
        Sum of X.
    interactions, squares : [n_groups, n_classes]
        Lists, and sum of X^2.
    """

    totals: Floats
    interactions: Integers
    squares: Floats


def sums_of_classes(sums: DifferenceSums) -> ClassSums:
    """What a bound over several queries needs.

    Parameters
    ----------
    sums
        Of one comparison, over any queries and policies; groups from 0.

    Raises
    ------
    ValueError
        Where M- of a row is too large.
    """
    n_groups = int(sums.groups.max(initial=-1)) + 1
    shape = (n_groups, N_CLASSES)
    cells = sums.groups * N_CLASSES + classes_of_losses(sums.losses)
    n_cells = n_groups * N_CLASSES
    interactions = np.bincount(cells, sums.interactions, n_cells)
    squares = np.bincount(cells, sums.squares, n_cells)
    totals = np.bincount(sums.groups, sums.totals, n_groups)
    return ClassSums(
        totals.astype(np.float64),
        interactions.astype(np.int64).reshape(shape),
        squares.astype(np.float64).reshape(shape),
    )


def lower_bound_over_queries(
    sums: ClassSums, epsilon: float, planned: float = PLANNED_SQUARES
) -> float:
    """A lower bound on the mean of X over all lists, at any time.

    Parameters
    ----------
    epsilon
        The confidence, in [0, 1].
    planned
        Sum of X^2 at which the bound is narrowest; chosen before the first list.

    Returns
    -------
    float
        Minus infinity before the first list, and where epsilon is 1.
    """
    error = 1.0 - epsilon
    possible = sums.interactions.sum(axis=0)
    if not possible.any() or error <= 0.0:
        return -math.inf
    # From one side: half of what two sides may err.
    weights = mixture_weights(planned, min(2.0 * error, 1.0))
    width = half_width(sums.squares.sum(axis=0), possible, weights, 2.0 * error)
    return (float(sums.totals.sum()) - width) / int(possible.sum())


def without(sums: ClassSums, left_out: Integers) -> ClassSums:
    """The sums of all other groups.

    Parameters
    ----------
    left_out : [n_left_out]
        Groups, or one of them.
    """
    return ClassSums._make(np.delete(column, left_out, axis=0) for column in sums)
