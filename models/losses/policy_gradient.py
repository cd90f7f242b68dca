"""Minus the expected metric of Plackett-Luce lists, of which slopes are exact.

    loss = - sum over items and ranks of  weight * worths[rank] * P(item at rank)

What the policy is worth itself, and no bound of it. Worths are those of DCG@k, or any
others: those of alpha + beta of a click model count clicks on relevant items. They are
exact for lists of up to `models.losses.compiled_loss.EXACT_ITEMS` items; longer ones
are drawn from the policy, with the mean of slopes of PL-Rank-3, which are unbiased.

An item whose value is not known is in the lists and gains nothing, so that it has
slopes too.

References
----------
Oosterhuis (SIGIR 2021) and (SIGIR 2022), PL-Rank-3, for slopes from drawn lists;
Oosterhuis & de Rijke (WSDM 2021), section 5, for worths of alpha + beta.
"""

import numpy as np

from models.arrays import Flags, Floats
from models.losses.compiled_loss import EXPECTED_WORTH, CompiledLoss
from models.losses.discounts import discounts
from models.losses.loss_value import (
    NO_BOUND,
    NO_PAIRS,
    LossValue,
    checked_cutoff,
    loss_value,
)

N_SAMPLES = 100
"""Lists that are drawn of a query with more than `EXACT_ITEMS` items."""


def compiled_policy_gradient(
    cutoff: int,
    n_items: int,
    *,
    worths: Floats | None = None,
    n_samples: int = N_SAMPLES,
) -> CompiledLoss:
    """For kernels.

    Parameters
    ----------
    worths : [n_ranks]
        What a relevant item is worth by rank, of which the first `cutoff` count; those
        of DCG if not given.

    Raises
    ------
    ValueError
        Where worths are not finite, or there are no ranks or no samples.
    """
    del n_items
    k = checked_cutoff(cutoff)
    by_rank = discounts(k) if worths is None else np.array(worths, np.float64)[:k]
    if by_rank.ndim != 1 or not by_rank.size or not np.isfinite(by_rank).all():
        raise ValueError(
            f"worths of ranks must be finite, of at least one rank; got {worths}"
        )
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples}")
    return CompiledLoss(EXPECTED_WORTH, k, NO_PAIRS, NO_BOUND, by_rank, n_samples)


def policy_gradient(  # noqa: PLR0913  what all losses take, and what this one needs
    scores: Floats,
    weights: Floats,
    where: Flags,
    cutoff: int,
    *,
    worths: Floats | None = None,
    n_samples: int = N_SAMPLES,
    rng: np.random.Generator | None = None,
) -> LossValue:
    """Minus the expected worth; see `models.losses.loss_value.loss_value`.

    Arrays are as in `loss_value`.

    Parameters
    ----------
    worths : [n_ranks]
        See `compiled_policy_gradient`.
    n_samples
        Lists that are drawn where there are more than `EXACT_ITEMS` items.
    rng
        Needed there, and never used else.

    Examples
    --------
    Either item may be first:

    >>> found = policy_gradient([0.0, 0.0], [0.0, 1.0], [True, True], 1)
    >>> round(found.value, 9), found.gradient.round(9).tolist()
    (-0.5, [0.25, -0.25])
    """
    loss = compiled_policy_gradient(
        cutoff, len(scores), worths=worths, n_samples=n_samples
    )
    return loss_value(loss, scores, weights, where, rng)
