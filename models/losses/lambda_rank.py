"""LambdaRank: each pair counts by what swapping it would change in DCG@k.

    loss = sum over pairs with G_n > G_m of
           -|D_n - D_m| (G_n - G_m) log2 sigma(s_n - s_m)

with D the discounts of DCG, 0 beyond rank k. Ranks n and m are held. The loss is at
least what DCG@k would gain if the known items were put in the order of their values,
at the ranks that they have together: for discounts that step down once and values of 0
and 1 the gain is the smaller count of misplaced items, above and below the step, and
the loss at least their product; all others are sums of such ones.

References
----------
Burges (MSR-TR-2010-82) for LambdaRank; Wang et al. (CIKM 2018), section 4, for the loss
that it takes a step down of. The bound is ours.
"""

import numpy as np

from models.arrays import Flags, Floats
from models.losses.compiled_loss import PAIRS, CompiledLoss
from models.losses.discounts import discounts
from models.losses.loss_value import (
    NO_BOUND,
    NO_WORTHS,
    LossValue,
    checked_cutoff,
    loss_value,
)
from models.losses.pair_kernel import PairWeights


def compiled_lambda_rank(cutoff: int, n_items: int) -> CompiledLoss:
    """For kernels."""
    k, n = checked_cutoff(cutoff), max(n_items, 1)
    pairs = PairWeights(np.zeros(n), discounts(n, k))
    # Of two items beyond the cutoff no swap changes anything.
    return CompiledLoss(PAIRS, k, pairs, NO_BOUND, NO_WORTHS, 0)


def lambda_rank(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """LambdaRank of DCG@k; see `models.losses.loss_value.loss_value`.

    Arrays are as in `loss_value`.

    Examples
    --------
    The better item is below the other one, and both score alike:

    >>> found = lambda_rank([0.0, 0.0], [0.0, 1.0], [True, True], 1)
    >>> round(found.value, 4), found.gradient.round(4).tolist()
    (1.0, [0.7213, -0.7213])
    """
    return loss_value(compiled_lambda_rank(cutoff, len(scores)), scores, weights, where)
