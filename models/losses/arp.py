"""The average relevant position, by a linear or a logistic bound of ranks.

    ARP = sum over items of  weight * rank

of which rankings with less are better; not divided by the sum of weights. What stands
for the rank is at least it (`models.losses.rank_bound_kernel`), so that each loss is at
least ARP, for weights above and below 0.

References
----------
Joachims, Swaminathan & Schnabel (WSDM 2017) for the linear bound; Oosterhuis & de Rijke
(SIGIR 2020), section 4.2, for both with weights of items.
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
from models.losses.rank_bound_kernel import ARP, RankBound


def compiled_arp(cutoff: int, n_items: int, *, is_logistic: bool) -> CompiledLoss:
    """For kernels; all ranks count, whatever the cutoff."""
    del n_items
    bound = RankBound(ARP, is_logistic, False)
    k = checked_cutoff(cutoff)
    return CompiledLoss(RANK_BOUND, k, NO_PAIRS, bound, NO_WORTHS, 0)


def arp_linear(scores: Floats, weights: Floats, where: Flags, cutoff: int) -> LossValue:
    """ARP with a hinge for each item above; see `models.losses.loss_value.loss_value`.

    Arrays are as in `loss_value`.

    All ranks count, whatever the cutoff.

    Examples
    --------
    The relevant item is second, by half a point:

    >>> found = arp_linear([0.5, 0.0], [0.0, 1.0], [True, True], 1)
    >>> found.value, found.gradient.tolist()
    (2.5, [1.0, -1.0])
    """
    loss = compiled_arp(cutoff, len(scores), is_logistic=False)
    return loss_value(loss, scores, weights, where)


def arp_logistic(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> LossValue:
    """ARP with log2(1 + exp(difference)) for each item; else as `arp_linear`.

    Arrays are as in `loss_value`.

    Examples
    --------
    >>> arp_logistic([0.0, 0.0], [0.0, 1.0], [True, True], 1).value
    2.0
    """
    loss = compiled_arp(cutoff, len(scores), is_logistic=True)
    return loss_value(loss, scores, weights, where)
