"""Losses that bound the rank of each item from above, and their slopes, compiled.

The rank of an item is at most

    sum over items d' of  h(s_d' - s_d),   h(x) = max(1 + x, 0) or log2(1 + exp(x))

with the item itself among them, as h(0) = 1. So a loss that rises with ranks is at most
that of the bound, for items of values of at least 0.

Estimated values may be below 0. DCG and Precision take them as they are: their losses
are linear in values, so that those without bias give a loss without bias. In the
average position the cost of an item would fall for ever with its score then; so its
rank is bounded from below, by the same sum from the other end of the list:

    rank of d >= n + 1 - sum over items d' of h(s_d - s_d')

An item whose value is not known keeps its rank: others count it as the scores of now
have it, above them or not, and it has no slope.

References
----------
Joachims et al. (WSDM 2017) for the hinge; Agarwal et al. (SIGIR 2019) for losses that
are monotonic in it; Oosterhuis & de Rijke (SIGIR 2020), section 4.2, for those of the
first ranks. Bounds from below are ours.
"""

import math
from typing import NamedTuple

from models.arrays import Flags, Floats
from models.kernels.compilation import compiled
from models.kernels.exponentials import fill_exponentials
from models.losses.pair_kernel import LOG_2, Room, fill_order

ARP, DCG, PRECISION = range(3)
"""What a rank costs: itself, -1 / log2(1 + rank), and -1 / (k - 1 + rank)."""


class RankBound(NamedTuple):
    """Which bound, of which metric.

    Parameters
    ----------
    metric
        One of `ARP`, `DCG` and `PRECISION`.
    is_logistic
        Whether h is logistic, else it is a hinge.
    is_cut
        Whether ranks beyond the cutoff count nothing in the metric.
    """

    metric: int
    is_logistic: bool
    is_cut: bool


@compiled
def cost_of_rank(metric: int, rank: float, cutoff: int) -> tuple[float, float]:
    """What an item of value 1 costs there, and how fast that rises with its rank.

    Parameters
    ----------
    rank
        At least 1, whole or not.
    """
    if metric == ARP:
        return rank, 1.0
    if metric == DCG:
        logarithm = math.log1p(rank)
        return -LOG_2 / logarithm, LOG_2 / ((1.0 + rank) * logarithm * logarithm)
    within = cutoff - 1.0 + rank
    return -1.0 / within, 1.0 / (within * within)


@compiled
def add_bound_loss(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    values: Floats,
    is_kept: Flags,
    cutoff: int,
    bound: RankBound,
    room: Room,
    slopes: Floats,
    curvatures: Floats,
) -> float:
    """Add slopes and curvatures of a query's loss; gives the loss.

    Parameters
    ----------
    scores, values, is_kept, slopes : [n_items]
        Scores are finite, and values where they are kept.
    curvatures : [n_items] or [0]
        Of ARP by the logistic function alone, whose cost rises evenly with ranks; none
        where they are not asked for.
    cutoff
        k of a metric of the first ranks.
    """
    n, loss = scores.shape[0], 0.0
    n_unknown = _hold_ranks(scores, is_kept, room)
    for row in range(n):
        value = values[row] if is_kept[row] else 0.0
        if value == 0.0:
            continue
        is_upwards = bound.metric == ARP and value < 0.0
        steps = _steps(scores, row, is_upwards, is_kept, bound.is_logistic, room)
        place = room.values[row] + steps
        if is_upwards:
            place = n + 1.0 - (n_unknown - room.values[row]) - steps
        cost, rise = cost_of_rank(bound.metric, place, cutoff)
        loss += value * cost
        if bound.is_cut and room.ranks[row] > cutoff:
            # Beyond the cutoff the metric is 0, which the bound must not fall below.
            loss -= value * cost_of_rank(bound.metric, float(cutoff), cutoff)[0]
        _add_slopes(row, value * rise, is_kept, room, slopes)
        if curvatures.shape[0] > 0:
            _add_curvatures(row, abs(value) * rise, is_kept, room, curvatures)
    return loss


@compiled
def _hold_ranks(scores: Floats, is_kept: Flags, room: Room) -> int:
    """Fill ranks of rows from 1, and as `values` how many unknown items are above.

    Gives how many are unknown. `scores`, `is_kept` [n_items].
    """
    fill_order(scores, room.order)
    n_unknown = 0
    for place in range(scores.shape[0]):
        row = room.order[place]
        room.ranks[row] = place + 1
        room.values[row] = n_unknown
        if not is_kept[row]:
            n_unknown += 1
    return n_unknown


@compiled
def _steps(
    scores: Floats,
    row: int,
    is_upwards: bool,
    is_kept: Flags,
    is_logistic: bool,
    room: Room,
) -> float:
    """Sum of h over known items, counted from the end of the list if upwards.

    Fills `slopes` with those of h. `scores`, `is_kept` [n_items].
    """
    n = scores.shape[0]
    sign = -1.0 if is_upwards else 1.0
    for other in range(n):
        room.scores[other] = sign * (scores[other] - scores[row])
    if is_logistic:
        return _logistic_steps(n, is_kept, room)
    return _hinge_steps(n, is_kept, room)


@compiled
def _add_slopes(
    row: int, share: float, is_kept: Flags, room: Room, slopes: Floats
) -> None:
    """Add what the bound of one row's rank says; `is_kept`, `slopes` [n_items]."""
    for other in range(slopes.shape[0]):
        if is_kept[other] and other != row:
            slopes[other] += share * room.slopes[other]
            slopes[row] -= share * room.slopes[other]


@compiled
def _add_curvatures(
    row: int, share: float, is_kept: Flags, room: Room, curvatures: Floats
) -> None:
    """Add those of the bound of one row's rank; `is_kept`, `curvatures` [n_items].

    `odds` of the room are exp(-|difference|) of scores.
    """
    for other in range(curvatures.shape[0]):
        if is_kept[other] and other != row:
            odds = room.odds[other]
            curvature = share * odds / ((1.0 + odds) * (1.0 + odds) * LOG_2)
            curvatures[other] += curvature
            curvatures[row] += curvature


@compiled
def _hinge_steps(n: int, is_kept: Flags, room: Room) -> float:
    """With a hinge; `is_kept` [n]."""
    total = 0.0
    for other in range(n):
        reach = 1.0 + room.scores[other]
        room.slopes[other] = 1.0 if reach > 0.0 else 0.0
        if is_kept[other] and reach > 0.0:
            total += reach
    return total


@compiled
def _logistic_steps(n: int, is_kept: Flags, room: Room) -> float:
    """With the logistic function; `is_kept` [n]."""
    total = 0.0
    for other in range(n):
        room.slopes[other] = -abs(room.scores[other])
    fill_exponentials(room.slopes[:n], 0.0, room.odds)
    for other in range(n):
        gap, odds = room.scores[other], room.odds[other]
        share = (1.0 if gap > 0.0 else odds) / (1.0 + odds)
        room.slopes[other] = share / LOG_2
        if is_kept[other]:
            total += (max(gap, 0.0) + math.log1p(odds)) / LOG_2
    return total
