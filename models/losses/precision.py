"""Precision@k by a bound that is monotonic in bounds of ranks.

The metric is 1 / k for each relevant item of the first k ranks. A step has no slope, so
its bound takes 1 / (k - 1 + rank), which is at most that within k, and adds its value
at k beyond, as DCG@k does:

    loss = sum over items of
           weight * (-1 / (k - 1 + bound of its rank) + [rank > k] / (2 k - 1))

is at least minus the metric where weights are at least 0, and linear in weights of any
sign. What a rank costs rises most at the top, and ever less.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), section 4.2, for monotonic bounds of metrics of the
first ranks; the function for Precision@k is ours.
"""

from models.arrays import Flags, Floats
from models.losses.compiled_loss import RANK_BOUND, CompiledLoss
from models.losses.loss_value import (
    NO_PAIRS,
    NO_WORTHS,
    LossValue,
    checked_cutoff,
    loss_value,
)
from models.losses.rank_bound_kernel import PRECISION, RankBound


def compiled_precision(cutoff: int, n_items: int, *, is_logistic: bool) -> CompiledLoss:
    """For kernels."""
    del n_items
    bound = RankBound(PRECISION, is_logistic, True)
    k = checked_cutoff(cutoff)
    return CompiledLoss(RANK_BOUND, k, NO_PAIRS, bound, NO_WORTHS, 0)


def precision_at_k_linear(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """Minus Precision@k, with a hinge for each item above.

    Arrays are as in `loss_value`.

    Parameters are those of `models.losses.loss_value.loss_value`.

    Examples
    --------
    >>> precision_at_k_linear([2.0, 0.0], [1.0, 0.0], [True, True], 2).value
    -0.5
    """
    loss = compiled_precision(cutoff, len(scores), is_logistic=False)
    return loss_value(loss, scores, weights, where)


def precision_at_k_logistic(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """Minus Precision@k, with log2(1 + exp(difference)) for each item.

    Arrays are as in `loss_value`.
    """
    loss = compiled_precision(cutoff, len(scores), is_logistic=True)
    return loss_value(loss, scores, weights, where)
