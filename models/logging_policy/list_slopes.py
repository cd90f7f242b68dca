"""Gradients by log scores of sums over the ranks of drawn lists, compiled.

At each rank an item that could come adds something that the ranks above it tell; what
follows it is told by the list. With masses m = exp(score), and what is left at a rank,

    d/d score(d) = sum over ranks x up to that of d of
                       m(d) / left(x) (adds(x) value(d) - mean(x) - follows(x))
                   + follows(rank of d), where d is in the list

in which mean(x) is the expectation of adds(x) value at x. Two sums over ranks are
enough for all items.

References
----------
Oosterhuis (SIGIR 2022), PL-Rank-3.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled


@compiled
def fill_left(
    masses: Floats, values: Floats, rows: Integers, left: Floats, means: Floats
) -> None:
    """Fill what is left at each rank of a list, and the mean value of who comes there.

    Parameters
    ----------
    masses, values : [n]
    rows, left, means : [k]
        The list, its items in order.
    """
    k = rows.shape[0]
    is_shown = np.zeros(masses.shape[0], np.bool_)
    is_shown[rows] = True
    mass, weighted = 0.0, 0.0
    for d in range(masses.shape[0]):
        if not is_shown[d]:
            mass += masses[d]
            weighted += masses[d] * values[d]
    # From the end, so that nothing is taken away from a sum.
    for x in range(k - 1, -1, -1):
        mass += masses[rows[x]]
        weighted += masses[rows[x]] * values[rows[x]]
        left[x], means[x] = mass, weighted / mass


@compiled
def add_list_slopes(  # noqa: PLR0913  a kernel takes plain arrays
    masses: Floats,
    values: Floats,
    adds: Floats,
    follows: Floats,
    rows: Integers,
    left: Floats,
    means: Floats,
    gradient: Floats,
) -> None:
    """Add a list's part of the gradient.

    Parameters
    ----------
    masses, values, gradient : [n]
    adds, follows, rows, left, means : [k]
        The last two as `fill_left` leaves them.
    """
    n, k = masses.shape[0], rows.shape[0]
    ranks = np.full(n, k - 1)
    slopes, levels = np.empty(k), np.empty(k)
    slope, level = 0.0, 0.0
    for x in range(k):
        ranks[rows[x]] = x
        slope += adds[x] / left[x]
        level += (adds[x] * means[x] + follows[x]) / left[x]
        slopes[x], levels[x] = slope, level
    for d in range(n):
        x = ranks[d]
        gradient[d] += masses[d] * (values[d] * slopes[x] - levels[x])
    for x in range(k):
        gradient[rows[x]] += follows[x]
