"""Bounds from a mean and a variance, for a number of lists that was set beforehand.

Of n independent values, not necessarily alike, in an interval of this extent,

    7 extent L / (3 (n - 1)) + sqrt(2 L V / n),    L = ln(2 / (1 - epsilon)),

with V their sample variance, is less than their mean is above the mean that is
expected with probability at most 1 - epsilon. That is one side; both together take
half of it each. The X of lists lie in an interval of extent M+ + M-: the larger of
both, or the sum of the k largest |w| where both are of different items, is too little.

References
----------
Maurer & Pontil (COLT 2009), theorem 11; Thomas, Theocharous & Ghavamzadeh (AAAI 2015).
"""

import math

from models.kernels.compilation import compiled


@compiled
def half_width(
    n: float, total: float, squares: float, extent: float, error: float
) -> float:
    """How far the mean of values may be from what is expected, on one side.

    Parameters
    ----------
    n
        How many values came.
    total, squares
        Their sum and that of their squares.
    extent
        Of an interval in which they surely lie.
    error
        1 - epsilon, in [0, 1].

    Returns
    -------
    float
        In the unit of the values; infinite for fewer than two, and for no error.
    """
    if n < 2.0 or error <= 0.0:
        return math.inf
    log = math.log(2.0 / error)
    variance = max(squares - total * total / n, 0.0) / (n - 1.0)
    return 7.0 * extent * log / (3.0 * (n - 1.0)) + math.sqrt(2.0 * log * variance / n)


@compiled
def error_at_doubling(n: float, error: float) -> float:
    """What a look may err that is taken when the number of lists has doubled.

    Look j is that at 2^j lists and spends 1 / (j (j + 1)) of the error, so that all
    looks together spend it. One look is taken at each number of doublings.

    Parameters
    ----------
    n
        Lists.
    error
        Of all looks together.

    Returns
    -------
    float
        0 before the first look, at 2 lists.
    """
    if n < 2.0:
        return 0.0
    look = math.floor(math.log2(n))
    return error / (look * (look + 1))
