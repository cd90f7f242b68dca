"""Losses over pairs of a query's items, slopes and curvatures by score, compiled.

    loss = sum over pairs with G_n > G_m, and n <= k or m <= k, of
           -w_nm (G_n - G_m) log2 sigma(s_n - s_m)
    w_nm = gaps(|n - m|) + |ranks(n) - ranks(m)|

n and m are the ranks that the scores give; as scores change, so do they, but the loss
of a step takes them as they are. G are estimated values: they may be negative, as only
differences count. An item whose value is not known keeps its rank, and is in no pair.

With ranks held a loss is convex in scores. The curvature of a score is the second
derivative of the loss by it: of a pair w (G_n - G_m) log2 sigma(s_n - s_m)

    |w (G_n - G_m)| sigma(s_n - s_m) sigma(s_m - s_n) / ln 2

for each of the two, which is at least 0.

Equal scores rank by row. Slopes take no exponential of the system, so that they have
the same bits on all machines; the loss itself takes the system's logarithms.

References
----------
Wang et al. (CIKM 2018) for LambdaRank and LambdaLoss as sums over pairs. Which losses
these are: `models.losses.lambda_rank` and `models.losses.lambda_loss`.
"""

import math
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled, inlined
from models.kernels.exponentials import fill_exponentials

LEAST_ODDS, LEAST_BASE = 1e-290, 1e-140
"""An exponential below the first has lost digits: who is above it is so by far. One
below the second is made 1, and those that follow with it."""

LOG_2 = math.log(2.0)

SHORT = 48
"""So many items are sorted in place; more of them are merged."""


class PairWeights(NamedTuple):
    """How much a pair counts, by the ranks of its two items.

    Parameters
    ----------
    gaps : [at least n_items]
        By how many ranks the two are apart; 0 of none.
    ranks : [at least n_items] or [0]
        By rank from 0, falling: differences count. Empty where only gaps do.
    """

    gaps: Floats
    ranks: Floats


NO_RANKS = np.zeros(0)
"""Of pairs that only count by how far they are apart."""


class Room(NamedTuple):
    """Where the kernel works: arrays of at least as many as a query has items.

    Parameters
    ----------
    order, ranks : [n]
        Rows by rank; ranks of kept items, from 0.
    scores, values, odds, slopes, curvatures : [n]
        Of kept items by rank, and exponentials of their scores.
    """

    order: Integers
    ranks: Integers
    scores: Floats
    values: Floats
    odds: Floats
    slopes: Floats
    curvatures: Floats


def room_for(n_items: int) -> Room:
    """Memory for queries of at most so many items."""
    order, ranks = np.empty((2, n_items), np.int64)
    return Room(order, ranks, *np.empty((5, n_items)))


@compiled
def fill_order(scores: Floats, order: Integers) -> None:
    """Fill `order` with rows by falling score; equal ones stay in their order.

    Parameters
    ----------
    scores : [n_items]
    order : [at least n_items]
    """
    n = scores.shape[0]
    if n > SHORT:
        order[:n] = np.argsort(-scores, kind="mergesort")
        return
    for row in range(n):
        place = row
        while place > 0 and scores[order[place - 1]] < scores[row]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = row


@compiled
def add_pair_loss(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    values: Floats,
    is_kept: Flags,
    cutoff: int,
    weights: PairWeights,
    room: Room,
    slopes: Floats,
    curvatures: Floats,
) -> float:
    """Add slopes and curvatures of a query's loss; gives the loss, at least 0.

    Parameters
    ----------
    scores, values, is_kept, slopes : [n_items]
        Scores are finite, and values where they are kept.
    curvatures : [n_items] or [0]
        None where they are not asked for.
    cutoff
        k: one of a pair is among so many ranks.
    """
    n = scores.shape[0]
    fill_order(scores, room.order)
    n_kept, n_top = 0, 0
    for rank in range(n):
        row = room.order[rank]
        if is_kept[row]:
            room.ranks[n_kept] = rank
            room.scores[n_kept] = scores[row]
            room.values[n_kept] = values[row]
            n_kept += 1
            if rank < cutoff:
                n_top = n_kept
    if n_kept < 2 or n_top == 0:
        return 0.0
    fill_exponentials(room.scores[:n_kept], room.scores[0], room.odds)
    room.slopes[:n_kept] = 0.0
    room.curvatures[:n_kept] = 0.0
    is_curved = curvatures.shape[0] > 0
    loss = _pairs(n_kept, n_top, weights, room, is_curved)
    for i in range(n_kept):
        row = room.order[room.ranks[i]]
        slopes[row] += room.slopes[i] / LOG_2
        if is_curved:
            curvatures[row] += room.curvatures[i] / LOG_2
    return loss / LOG_2


@compiled
def _pairs(
    n_kept: int, n_top: int, weights: PairWeights, room: Room, is_curved: bool
) -> float:
    """Slopes, curvatures and loss of all pairs, in units of natural logarithms."""
    loss = 0.0
    ranks, scores, values = room.ranks, room.scores, room.values
    odds, slopes, curvatures = room.odds, room.slopes, room.curvatures
    gaps, falling = weights.gaps, weights.ranks
    is_ranked = falling.shape[0] > 0
    for i in range(n_top):
        total = 0.0
        if odds[i] < LEAST_BASE:
            fill_exponentials(scores[i:n_kept], scores[i], odds[i:])
        for j in range(i + 1, n_kept):
            n, m = ranks[i], ranks[j]
            counts = gaps[m - n]
            counts = counts + (falling[n] - falling[m]) if is_ranked else counts
            weight = counts * (values[i] - values[j])
            if weight == 0.0:
                continue
            if weight > 0.0:
                share, other, surprise = _odds_of(i, j, scores, odds)
            else:
                share, other, surprise = _odds_of(j, i, scores, odds)
            loss += abs(weight) * surprise
            total -= weight * share
            slopes[j] += weight * share
            if is_curved:
                curvature = abs(weight) * share * other
                curvatures[i] += curvature
                curvatures[j] += curvature
        slopes[i] += total
    return loss


@inlined
def _odds_of(
    better: int, worse: int, scores: Floats, odds: Floats
) -> tuple[float, float, float]:
    """P(wrong order) of a pair, P(right order), and -log of the latter.

    `scores` and `odds` [n_kept] are by rank.
    """
    wrong, right = odds[worse], odds[better]
    if min(wrong, right) > LEAST_ODDS:
        both = wrong + right
        return wrong / both, right / both, math.log1p(wrong / right)
    # Further apart than any number tells from certain.
    gap = scores[better] - scores[worse]
    share = 1.0 if gap < 0.0 else 0.0
    return share, 1.0 - share, max(-gap, 0.0)
