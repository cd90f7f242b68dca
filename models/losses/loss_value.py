"""The value of a loss of one query with its slopes, checked."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats
from models.losses.compiled_loss import (
    EXACT_ITEMS,
    EXPECTED_WORTH,
    CompiledLoss,
    add_query_loss,
    is_convex,
)
from models.losses.pair_kernel import PairWeights, room_for
from models.losses.rank_bound_kernel import ARP, RankBound

NO_PAIRS = PairWeights(np.zeros(1), np.zeros(1))
NO_BOUND = RankBound(ARP, False, False)
NO_WORTHS = np.zeros(1)
NO_PARENTS = np.zeros(0)
"""Of losses that compare with no other policy, or with that of the scores."""

NO_CURVATURES = np.zeros(0)
"""In the place of those that nobody asks for."""

NEVER_DRAWN = np.random.Generator(np.random.PCG64(0))
"""Kernels take a generator also where they draw nothing from it."""


class LossValue(NamedTuple):
    """Of one query.

    Parameters
    ----------
    value
        Less is better.
    gradient : [n_items]
        Its derivatives by the scores, at fixed ranks where the loss holds them.
    curvature : [n_items] or [0]
        Its second derivatives by each score, at the same ranks, at least 0; none of
        losses of which they may be below 0, or are 0 wherever there are any.
    """

    value: float
    gradient: Floats
    curvature: Floats


def loss_value(
    loss: CompiledLoss,
    scores: npt.ArrayLike,
    weights: npt.ArrayLike,
    where: npt.ArrayLike,
    rng: np.random.Generator | None = None,
    parents: npt.ArrayLike = NO_PARENTS,
) -> LossValue:
    """The loss of one query.

    Parameters
    ----------
    scores : [n_items]
        Finite. Equal ones rank by row.
    weights : [n_items]
        Values of items: clicks over propensities, or gains of labels. Finite where
        they are known; 0 and below are values like others.
    where : [n_items]
        Whether the value is known. An item without one keeps its rank.
    rng
        Needed where lists are drawn.
    parents : [n_items] or [0]
        Expected weight of each item's rank under the parent's policy, finite and at
        least 0, where the loss compares with it; of none: the policy of the scores.

    Raises
    ------
    ValueError
        Where shapes differ, a score or a known value is not finite, or lists are to be
        drawn and there is no generator; or where weights of the parent are not of the
        same items, not finite or below 0.
    """
    scored = np.ascontiguousarray(scores, np.float64)
    values = np.ascontiguousarray(weights, np.float64)
    is_kept = np.ascontiguousarray(where, np.bool_)
    n = _checked(scored, values, is_kept)
    before = np.ascontiguousarray(parents, np.float64)
    _check_parents(before, n)
    if loss.family == EXPECTED_WORTH and n > EXACT_ITEMS and rng is None:
        raise ValueError(
            f"lists of more than {EXACT_ITEMS} items must be drawn; got {n} items and "
            "no generator: pass rng"
        )
    slopes = np.zeros(n)
    curvatures = np.zeros(n) if is_convex(loss) else NO_CURVATURES
    if not n:
        return LossValue(0.0, slopes, curvatures)
    value = add_query_loss(
        loss, scored, values, is_kept, room_for(n), slopes, curvatures,
        rng or NEVER_DRAWN, before,
    )  # fmt: skip
    return LossValue(float(value), slopes, curvatures)


def checked_cutoff(cutoff: int) -> int:
    """The same number of ranks.

    Raises
    ------
    ValueError
        Where it is below 1, or no whole number.
    """
    if cutoff < 1 or not float(cutoff).is_integer():
        raise ValueError(
            f"the cutoff of a loss must be a whole number, at least 1; got {cutoff}"
        )
    return int(cutoff)


def _check_parents(parents: Floats, n_items: int) -> None:
    if parents.size and parents.shape != (n_items,):
        raise ValueError(
            "weights of the parent must be of the same items as scores; got shape "
            f"{parents.shape} for {n_items} items"
        )
    is_wrong = ~(np.isfinite(parents) & (parents >= 0.0))
    if is_wrong.any():
        raise ValueError(
            "weights of the parent must be finite and at least 0; got "
            f"{parents[is_wrong][0]} in row {int(is_wrong.argmax())}"
        )


def _checked(scores: Floats, values: Floats, is_kept: Flags) -> int:
    if scores.ndim != 1 or not scores.shape == values.shape == is_kept.shape:
        raise ValueError(
            "scores, weights and where must be of the same items; got shapes "
            f"{scores.shape}, {values.shape} and {is_kept.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError(
            "scores of a loss must be finite; got "
            f"{scores[~np.isfinite(scores)][0]}: lower the learning rate"
        )
    is_wrong = is_kept & ~np.isfinite(values)
    if is_wrong.any():
        raise ValueError(
            f"weights of a loss must be finite; got {values[is_wrong][0]} in row "
            f"{int(is_wrong.argmax())}: leave the item out of `where`, or clip its "
            "propensity"
        )
    return len(scores)
