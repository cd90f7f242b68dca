"""Any loss of a query in compiled code: what a pass over many queries calls.

A loss is a few numbers and tables, which `models.losses.registry.compiled_loss` makes
of its name, its cutoff and the longest query. All losses fall as rankings get better.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.kernels.compilation import compiled
from models.losses.pair_kernel import PairWeights, Room, add_pair_loss
from models.losses.placement_gradient import add_expected_worth
from models.losses.proximal_kernel import add_proximal_cost
from models.losses.rank_bound_kernel import ARP, RankBound, add_bound_loss
from models.plackett_luce.list_gradient import add_list_gradient
from models.plackett_luce.list_sampler import BLOCK, sample_list

PAIRS, RANK_BOUND, EXPECTED_WORTH, PROXIMAL = range(4)
"""Families of losses."""

EXACT_ITEMS = 256
"""Expected worth of lists up to so many items is exact, of longer ones sampled."""


class CompiledLoss(NamedTuple):
    """A loss as kernels take it.

    Parameters
    ----------
    family
        One of `PAIRS`, `RANK_BOUND`, `EXPECTED_WORTH` and `PROXIMAL`.
    cutoff
        Ranks that count, at least 1.
    pairs
        Weights of pairs, for lists of at most so many items.
    bound
        Which bound of ranks.
    worths : [cutoff]
        Of ranks, where the worth of lists is expected.
    n_samples
        Lists that are drawn of a query with more than `EXACT_ITEMS` items.
    ratio
        Up to which multiple of the parent's weight an item's counts, where `PROXIMAL`.
    """

    family: int
    cutoff: int
    pairs: PairWeights
    bound: RankBound
    worths: Floats
    n_samples: int
    ratio: float = 1.0


def is_convex(loss: CompiledLoss) -> bool:
    """Whether it is convex in scores as ranks are held: curvatures are at least 0.

    A hinge has no curvature that says how far to go, and what rises ever less with the
    rank of an item, as DCG does, may be curved either way.
    """
    bound = loss.bound
    return loss.family == PAIRS or (
        loss.family == RANK_BOUND and bound.metric == ARP and bound.is_logistic
    )


@compiled
def add_query_loss(  # noqa: PLR0913  a kernel takes plain arrays
    loss: CompiledLoss,
    scores: Floats,
    values: Floats,
    is_kept: Flags,
    room: Room,
    slopes: Floats,
    curvatures: Floats,
    rng: np.random.Generator,
    parents: Floats,
) -> float:
    """Add slopes and curvatures of a query's loss by its scores; gives the loss.

    Parameters
    ----------
    scores, values, is_kept, slopes : [n_items]
        Scores are finite, and values where they are kept.
    room
        Of at least as many items.
    curvatures : [n_items] or [0]
        Second derivatives; none where they are not asked for, and only of a loss that
        `is_convex`.
    rng
        Lists are drawn from it where `loss` draws any.
    parents : [n_items] or [0]
        Expected weights of ranks under the parent's policy, where `PROXIMAL`.
    """
    if loss.family == PAIRS:
        return add_pair_loss(
            scores, values, is_kept, loss.cutoff, loss.pairs, room, slopes, curvatures
        )
    if loss.family == RANK_BOUND:
        return add_bound_loss(
            scores, values, is_kept, loss.cutoff, loss.bound, room, slopes, curvatures
        )
    n = scores.shape[0]
    is_told = False
    for row in range(n):
        # What is not known gains nothing.
        room.values[row] = -values[row] if is_kept[row] else 0.0
        is_told = is_told or room.values[row] != 0.0
    if not is_told:
        return 0.0
    costs, worths = room.values[:n], loss.worths[:n]
    if loss.family == PROXIMAL:
        return add_proximal_cost(
            scores, costs, parents, worths, loss.ratio, room.order, slopes
        )
    if n <= EXACT_ITEMS:
        return add_expected_worth(scores, costs, worths, room.order, slopes)
    return _add_sampled_worth(scores, costs, worths, loss.n_samples, slopes, rng)


@compiled
def _add_sampled_worth(
    scores: Floats,
    values: Floats,
    worths: Floats,
    n_samples: int,
    slopes: Floats,
    rng: np.random.Generator,
) -> float:
    """As `add_expected_worth`, the mean of drawn lists."""
    n, total = scores.shape[0], 0.0
    masses, gradient = np.empty(n), np.zeros(n)
    blocks = np.empty((n + BLOCK - 1) // BLOCK)
    rows = np.empty(worths.shape[0], np.int64)
    for _ in range(n_samples):
        sample_list(scores, masses, blocks, rows, rng)
        add_list_gradient(scores, values, worths, rows, gradient)
        for rank in range(rows.shape[0]):
            total += worths[rank] * values[rows[rank]]
    for row in range(n):
        slopes[row] += gradient[row] / n_samples
    return total / n_samples
