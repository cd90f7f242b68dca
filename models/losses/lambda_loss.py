"""LambdaLoss of DCG, of DCG@k, and its truncation.

    loss = sum over pairs with G_n > G_m of
           -delta_nm (G_n - G_m) log2 sigma(s_n - s_m)
    delta_nm = |D(|n - m|) - D(|n - m| + 1)|

with ranks n and m held. D are the discounts of DCG; those of DCG@k are 0 beyond rank k.
The truncated loss has the discounts of all ranks, and only pairs of which one is among
the first k. G are estimated values: only differences count.

For values of at least 0 the losses of DCG and DCG@k bound what is lost to a list
without discounts, up to what pairs have in common:

    sum of G_n (1 - D_n)  <=  loss + sum over all pairs of delta_nm min(G_n, G_m)

The truncation is a heuristic. `models.losses.discounts` has delta.

References
----------
Wang et al. (CIKM 2018) for LambdaLoss and its truncation; Oosterhuis & de Rijke (SIGIR
2020), "Policy-Aware Unbiased Learning to Rank for Top-k Rankings", and the chapter of
that name in Oosterhuis (PhD thesis, 2020), for the counterfactual loss, where a value
stands for clicks over propensities, and for discounts that are 0 beyond a rank.
"""

from models.arrays import Flags, Floats
from models.losses.compiled_loss import PAIRS, CompiledLoss
from models.losses.discounts import pair_discounts
from models.losses.loss_value import (
    NO_BOUND,
    NO_WORTHS,
    LossValue,
    checked_cutoff,
    loss_value,
)
from models.losses.pair_kernel import NO_RANKS, PairWeights


def truncated_pairs(n_items: int) -> PairWeights:
    """Weights of pairs by the discounts of all ranks, for lists of so many items."""
    return PairWeights(pair_discounts(n_items), NO_RANKS)


def compiled_lambda_loss(cutoff: int, n_items: int) -> CompiledLoss:
    """For kernels; all ranks count, whatever the cutoff."""
    checked_cutoff(cutoff)
    n = max(n_items, 1)
    return CompiledLoss(PAIRS, n, truncated_pairs(n), NO_BOUND, NO_WORTHS, 0)


def compiled_lambda_loss_at_k(cutoff: int, n_items: int) -> CompiledLoss:
    """For kernels. Pairs of all ranks count, by how far they are apart."""
    gaps = pair_discounts(n_items, checked_cutoff(cutoff))
    pairs = PairWeights(gaps, NO_RANKS)
    return CompiledLoss(PAIRS, max(n_items, 1), pairs, NO_BOUND, NO_WORTHS, 0)


def compiled_truncated_lambda(cutoff: int, n_items: int) -> CompiledLoss:
    """For kernels."""
    k = checked_cutoff(cutoff)
    return CompiledLoss(PAIRS, k, truncated_pairs(n_items), NO_BOUND, NO_WORTHS, 0)


def lambda_loss(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """LambdaLoss of DCG, whatever the cutoff.

    Arrays are as in `loss_value`.

    Parameters are those of `models.losses.loss_value.loss_value`.
    """
    return loss_value(compiled_lambda_loss(cutoff, len(scores)), scores, weights, where)


def lambda_loss_at_k(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """LambdaLoss of DCG@k.

    Arrays are as in `loss_value`.

    Parameters are those of `models.losses.loss_value.loss_value`.

    Examples
    --------
    >>> lambda_loss_at_k([0.0, 0.0], [0.0, 1.0], [True, True], 1).value
    1.0
    """
    loss = compiled_lambda_loss_at_k(cutoff, len(scores))
    return loss_value(loss, scores, weights, where)


def truncated_lambda(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """LambdaLoss of DCG, of pairs with one among the first ranks.

    Arrays are as in `loss_value`.

    Parameters are those of `models.losses.loss_value.loss_value`.

    Examples
    --------
    The better item is below the other one, and both score alike:

    >>> found = truncated_lambda([0.0, 0.0], [0.0, 1.0], [True, True], 1)
    >>> round(found.value, 4), found.gradient.round(4).tolist()
    (0.3691, [0.2662, -0.2662])
    """
    loss = compiled_truncated_lambda(cutoff, len(scores))
    return loss_value(loss, scores, weights, where)
