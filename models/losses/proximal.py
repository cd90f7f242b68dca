"""Minus the expected metric, of which no item counts beyond a ratio to the parent's.

With w(d) the expected weight of item d's rank under the Plackett-Luce policy of the
scores, w_parent(d) under the policy that training goes on from, and x their ratio:

    loss = - sum over items of  value * w_parent * ( min(x, c)      value >= 0
                                                   ( max(x, 1 / c)  value < 0

So nothing is gained by showing an item c times as much as the parent did, or by hiding
a bad one more than c times, and slopes end there. Nothing keeps an item of value 0, or
one that others push down, from falling further: that some c is safe is all that the
theorem says, not which. A bound that holds is `models.training.largest_loss`.

References
----------
Gupta, Oosterhuis & de Rijke (CIKM 2024): "Proximal Ranking Policy Optimization for
Practical Safety in Counterfactual Learning to Rank", section 4. Exact slopes are those
of `models.losses.placement_gradient`.
"""

import numpy as np

from models.arrays import Flags, Floats
from models.losses.compiled_loss import PROXIMAL, CompiledLoss
from models.losses.loss_value import (
    NO_BOUND,
    NO_PAIRS,
    NO_PARENTS,
    LossValue,
    loss_value,
)
from models.losses.placement_gradient import fill_weights
from models.losses.policy_gradient import compiled_policy_gradient

RATIO = 1.25
"""c where none is given."""


def compiled_proximal(
    cutoff: int,
    n_items: int,
    *,
    worths: Floats | None = None,
    ratio: float = RATIO,
) -> CompiledLoss:
    """For kernels.

    Parameters
    ----------
    worths : [n_ranks]
        As `models.losses.policy_gradient.compiled_policy_gradient`, at least 0.
    ratio
        c, above 1: up to which multiple of the parent's weight an item's counts.

    Raises
    ------
    ValueError
        Where worths are not finite or below 0, there are no ranks, or the ratio is not
        finite and above 1.
    """
    plain = compiled_policy_gradient(cutoff, n_items, worths=worths)
    if plain.worths.min() < 0.0:
        raise ValueError(
            "worths of ranks must be at least 0, as weights are compared by their "
            f"ratio; got {plain.worths.min()}"
        )
    if not 1.0 < ratio < np.inf:
        raise ValueError(f"ratio must be finite and above 1; got {ratio}")
    return CompiledLoss(
        PROXIMAL, plain.cutoff, NO_PAIRS, NO_BOUND, plain.worths, 0, float(ratio)
    )


def proximal(  # noqa: PLR0913  what all losses take, and what this one needs
    scores: Floats,
    weights: Floats,
    where: Flags,
    cutoff: int,
    *,
    parents: Floats | None = None,
    worths: Floats | None = None,
    ratio: float = RATIO,
) -> LossValue:
    """Minus the clipped expected worth; see `models.losses.loss_value.loss_value`.

    Arrays are as in `loss_value`.

    Parameters
    ----------
    parents : [n_items]
        Expected weight of each item's rank under the parent, as `rank_weights` gives;
        where none are given the parent is the policy of `scores`, as before any step.
    worths : [n_ranks]
        As those of `compiled_proximal`.
    ratio
        As that.

    Examples
    --------
    The parent shows each item first in half of its lists; more than 0.625 is not worth
    more:

    >>> halves = [0.5, 0.5]
    >>> found = proximal([3.0, 0.0], [1.0, 0.0], [True, True], 1, parents=halves)
    >>> round(found.value, 9), found.gradient.round(9).tolist()
    (-0.625, [0.0, 0.0])
    """
    loss = compiled_proximal(cutoff, len(scores), worths=worths, ratio=ratio)
    given = NO_PARENTS if parents is None else parents
    return loss_value(loss, scores, weights, where, parents=given)


def rank_weights(scores: Floats, worths: Floats) -> Floats:
    """Expected worth of each item's rank under the policy of scores, [n_items].

    Parameters
    ----------
    scores : [n_items]
        Finite.
    worths : [n_ranks]
        Of ranks; those beyond are worth nothing.

    Examples
    --------
    >>> rank_weights(np.zeros(4), np.array([1.0, 0.5])).round(9).tolist()
    [0.375, 0.375, 0.375, 0.375]
    """
    scored = np.ascontiguousarray(scores, np.float64)
    by_rank = np.ascontiguousarray(worths, np.float64)[: len(scored)]
    found, order = np.empty(len(scored)), np.empty(len(scored), np.int64)
    fill_weights(scored, by_rank, order, found)
    return found
