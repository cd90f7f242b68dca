"""The floor of lists that are served: what matters comes first often enough.

A service has no placements. So it raises the shares of items that rankers differ in to
`least`, P(comes first), by which they are looked at with at least that times P(looked
at | rank 1); the others keep their ratios. A training that does not know it optimises
lists that nobody is shown: so it descends through this.
"""

import math

import numpy as np

from models.arrays import Flags, Floats
from models.kernels.compilation import compiled

SMALLEST = float(np.finfo(np.float32).tiny)
"""Share whose logarithm is still finite as it is logged."""


@compiled
def raise_shares(
    scores: Floats, differences: Floats, least: float, is_raised: Flags
) -> None:
    """Make scores those that are served: logarithms of shares, in place.

    The same as `rankstream.ranking.logging_policy.floored`, but for its rounding.

    Parameters
    ----------
    scores, differences : [n]
    least
        In (0, 1 / number of items with a difference].
    is_raised : [n]
        Is filled: whose share was raised.
    """
    matters = differences != 0.0
    shares = np.exp(scores - scores.max())
    is_raised[:] = False
    while not is_raised.all():
        total = shares[~is_raised].sum()
        shares *= (1.0 - least * is_raised.sum()) / total
        is_below = matters & ~is_raised & (shares < least)
        if not is_below.any():
            break
        is_raised |= is_below
    shares = np.where(is_raised, least, shares)
    scores[:] = np.log(np.maximum(shares, SMALLEST))


@compiled
def lead_through(slopes: Floats, served: Floats, is_raised: Flags) -> None:
    """Make a gradient by served scores one by the scores before, in place.

    Of raised items only what would raise them further is kept: below the floor their
    own scores change nothing, and would never come up again.

    Parameters
    ----------
    slopes, served : [n]
        Of what is to be lowered.
    is_raised : [n]
    """
    rest, of_rest = 0.0, 0.0
    for d in range(slopes.shape[0]):
        if not is_raised[d]:
            rest += math.exp(served[d])
            of_rest += slopes[d]
    for d in range(slopes.shape[0]):
        if is_raised[d]:
            slopes[d] = min(slopes[d], 0.0)
        else:
            slopes[d] -= math.exp(served[d]) / rest * of_rest
