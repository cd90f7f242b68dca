"""Expected worth of which each item counts up to a ratio to another policy, compiled.

References
----------
Gupta, Oosterhuis & de Rijke (CIKM 2024), section 4.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.losses.placement_gradient import add_expected_worth, fill_weights


@compiled
def add_proximal_cost(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    costs: Floats,
    parents: Floats,
    worths: Floats,
    ratio: float,
    order: Integers,
    slopes: Floats,
) -> float:
    """Add the gradient of the clipped expected cost by scores; gives the cost.

    Weights are compared as products, so that a parent that never shows an item is no
    division by 0. At the edge itself the slope is that of what is not clipped.

    Parameters
    ----------
    scores, slopes : [n]
        Scores are finite.
    costs : [n]
        Minus the values of items.
    parents : [n] or [0]
        Expected weights under the parent, at least 0; of no items: those of `scores`.
    worths : [k]
        Of the first k <= n ranks, at least 0.
    ratio
        c, above 1.
    order : [at least n]
        Scratch.
    """
    n = scores.shape[0]
    weights, moving, fixed = np.empty(n), np.empty(n), 0.0
    fill_weights(scores, worths, order, weights)
    for i in range(n):
        parent = parents[i] if parents.shape[0] else weights[i]
        if costs[i] <= 0.0:
            edge = ratio * parent
            is_beyond = weights[i] > edge
        else:
            edge = parent / ratio
            is_beyond = weights[i] < edge
        moving[i] = 0.0 if is_beyond else costs[i]
        if is_beyond:
            fixed += costs[i] * edge
    return fixed + add_expected_worth(scores, moving, worths, order, slopes)
