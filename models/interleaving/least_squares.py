"""The probabilities that come closest to fulfilling equations that none fulfil."""

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled

TOLERANCE = 1e-12
MAX_ROUNDS = 3


@compiled
def closest_distribution(rows: Floats) -> tuple[Floats, bool]:
    """Probabilities p for which the sum of p_i * rows_i is shortest.

    Without the sum, minimising |sum p_i rows_i|^2 + (sum p_i - 1)^2 over p >= 0
    gives the same direction: along a direction of length a the best scale leaves
    a / (1 + a), which grows with a. That problem is solved by active sets.

    Parameters
    ----------
    rows : [n, n_equations]

    Returns
    -------
    [n], and whether the search ended by itself.

    References
    ----------
    Lawson & Hanson, "Solving Least Squares Problems" (1974), chapter 23; the form
    with the matrix of products is Bro & de Jong's (1997).
    """
    n = rows.shape[0]
    products = rows @ rows.T + 1.0
    scale = np.diag(products).max()
    solution = np.zeros(n)
    is_free = np.zeros(n, np.bool_)
    for _ in range(MAX_ROUNDS * n + 10):
        gradient = 1.0 - products @ solution
        best = -1
        for i in range(n):
            is_steep = gradient[i] > TOLERANCE * scale
            if (
                not is_free[i]
                and is_steep
                and (best < 0 or gradient[i] > gradient[best])
            ):
                best = i
        if best < 0:
            return solution / solution.sum(), True
        is_free[best] = True
        if not _descend(products, solution, is_free):
            break
    total = solution.sum()
    if total <= 0.0:
        return np.full(n, 1.0 / n), False
    return solution / total, False


@compiled
def _descend(products: Floats, solution: Floats, is_free: Flags) -> bool:
    """Solve on the free set, giving up what turns negative; False if singular."""
    for _ in range(solution.shape[0] + 1):
        free = np.flatnonzero(is_free)
        wanted = np.linalg.solve(_block(products, free), np.ones(free.shape[0]))
        now = solution[free]
        step = 1.0
        for i in range(free.shape[0]):
            if wanted[i] <= 0.0 and now[i] > wanted[i]:
                step = min(step, now[i] / (now[i] - wanted[i]))
        solution[free] = now + step * (wanted - now)
        if step >= 1.0:
            return bool(np.isfinite(wanted).all())
        given_up = free[solution[free] <= TOLERANCE]
        solution[given_up] = 0.0
        is_free[given_up] = False
    return False


@compiled
def _block(products: Floats, rows: Integers) -> Floats:
    """Rows and columns of a matrix; lists of equal credit must not make it singular."""
    size = rows.shape[0]
    block = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            block[i, j] = products[rows[i], rows[j]]
        block[i, i] *= 1.0 + 1e-13
    return block
