"""DCG and DCG@k by bounds that are monotonic in bounds of ranks.

    loss = sum over items of  weight * (-1 / log2(1 + bound of its rank))

is at least minus DCG where weights are at least 0, and linear in weights of any sign.
Minus DCG@k is 0 beyond rank k, where that is below 0; so for an item of rank r > k the
bound of DCG@k adds 1 / log2(1 + k). Ranks are held, so that both have the same slopes.

References
----------
Agarwal et al. (SIGIR 2019) for the bound of DCG; Oosterhuis & de Rijke (SIGIR 2020),
section 4.2, for that of DCG@k.
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
from models.losses.rank_bound_kernel import DCG, RankBound


def compiled_dcg(
    cutoff: int, n_items: int, *, is_logistic: bool, is_cut: bool
) -> CompiledLoss:
    """For kernels; the cutoff counts where the metric is cut."""
    del n_items
    bound = RankBound(DCG, is_logistic, is_cut)
    k = checked_cutoff(cutoff)
    return CompiledLoss(RANK_BOUND, k, NO_PAIRS, bound, NO_WORTHS, 0)


def dcg_linear(scores: Floats, weights: Floats, where: Flags, cutoff: int) -> LossValue:
    """Minus DCG of all ranks, with a hinge for each item above.

    Arrays are as in `loss_value`.

    Parameters are those of `models.losses.loss_value.loss_value`.

    Examples
    --------
    The rank of the relevant item is at most 3, by the bound:

    >>> dcg_linear([1.0, 0.0], [0.0, 1.0], [True, True], 1).value
    -0.5
    """
    loss = compiled_dcg(cutoff, len(scores), is_logistic=False, is_cut=False)
    return loss_value(loss, scores, weights, where)


def dcg_logistic(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """Minus DCG of all ranks, with log2(1 + exp(difference)) for each item.

    Arrays are as in `loss_value`.
    """
    loss = compiled_dcg(cutoff, len(scores), is_logistic=True, is_cut=False)
    return loss_value(loss, scores, weights, where)


def dcg_at_k_linear(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """Minus DCG of the first ranks; slopes are those of `dcg_linear`.

    Arrays are as in `loss_value`.

    Examples
    --------
    Beyond the cutoff nothing is gained, and the bound is above 0:

    >>> dcg_at_k_linear([1.0, 0.0], [0.0, 1.0], [True, True], 1).value
    0.5
    """
    loss = compiled_dcg(cutoff, len(scores), is_logistic=False, is_cut=True)
    return loss_value(loss, scores, weights, where)


def dcg_at_k_logistic(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """Minus DCG of the first ranks; slopes are those of `dcg_logistic`.

    Arrays are as in `loss_value`.
    """
    loss = compiled_dcg(cutoff, len(scores), is_logistic=True, is_cut=True)
    return loss_value(loss, scores, weights, where)
