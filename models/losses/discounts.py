"""Discounts of DCG by rank, and how they fall from rank to rank.

LambdaLoss weighs a pair of items that are d ranks apart by

    delta(d) = |D(d) - D(d + 1)|,   D(r) = 1 / log2(1 + r)

so that the deltas of ranks 1 to r - 1 add up to D(1) - D(r).

References
----------
Wang et al. (CIKM 2018), section 5; Oosterhuis (PhD thesis, 2020), chapter 7, for
discounts that are 0 beyond a rank.
"""

import numpy as np

from models.arrays import Floats


def discounts(n: int, cutoff: int | None = None) -> Floats:
    """1 / log2(1 + rank) of ranks 1 to n, [n]; 0 beyond the cutoff if there is one.

    Examples
    --------
    >>> discounts(3).round(3).tolist()
    [1.0, 0.631, 0.5]
    >>> discounts(3, 2).round(3).tolist()
    [1.0, 0.631, 0.0]
    """
    falling = np.asarray(1.0 / np.log2(np.arange(2.0, n + 2.0)))
    if cutoff is not None:
        falling[cutoff:] = 0.0
    return falling


def pair_discounts(n_items: int, cutoff: int | None = None) -> Floats:
    """Delta by how many ranks two items are apart, [max(n_items, 1)]; 0 of none.

    Examples
    --------
    >>> pair_discounts(3, 1).tolist()
    [0.0, 1.0, 0.0]
    """
    falling = discounts(max(n_items, 1), cutoff)
    return np.concatenate([[0.0], falling[:-1] - falling[1:]])
