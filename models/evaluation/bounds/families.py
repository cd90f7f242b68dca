"""All bounds of a difference in one form: from sums of rows, at one confidence.

Of a comparison, rows add up to `SUMS`; what X can be is the most that any row allows.
A difference is above 0 with the confidence asked for where its lower bound is. What is
infinite says nothing.
"""

import math
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.bounds.any_time import (
    PLANNED,
    largest_excess,
    log_evidence,
    log_weights_of_rates,
    scale,
)
from models.evaluation.bounds.one_look import error_at_doubling, half_width
from models.evaluation.bounds.printed import half_width_by_click, half_width_by_item
from models.evaluation.differences import DifferenceSums
from models.kernels.compilation import compiled


class Bound(StrEnum):
    """Which bound is set, before the data.

    `any-time` may be looked at whenever one likes, `doubling-looks` once at each
    doubling of the lists, the others once. `one-look` and `doubling-looks` assume that
    lists are independent; `per-item` and `per-click` that clicks within a list are too.
    """

    ANY_TIME = "any-time"
    ONE_LOOK = "one-look"
    DOUBLING_LOOKS = "doubling-looks"
    PER_ITEM = "per-item"
    PER_CLICK = "per-click"


FAMILIES = list(Bound)
_ANY_TIME, _ONE_LOOK, _DOUBLING_LOOKS, _PER_ITEM, _PER_CLICK = range(len(FAMILIES))

SUMS = 12
(
    INTERACTIONS,
    ITEMS,
    CLICKS,
    TOTAL,
    SQUARES,
    CLICK_SQUARES,
    SCALED_TOTAL,
    SCALED_INTERACTIONS,
    SCALED_SQUARES,
    GAIN,
    LOSS,
    LARGEST,
) = range(SUMS)
"""Of several rows: what adds up, to `SCALED_SQUARES`, and the most of any row.

The scaled ones are A, B and C of `any_time`.
"""


class Confidence(NamedTuple):
    """How sure a bound has to be.

    Parameters
    ----------
    family
        Index of the bound among `FAMILIES`.
    error
        1 - epsilon.
    log_weights : [n_rates]
        Of the mixture at any time.
    """

    family: int
    error: float
    log_weights: Floats


def confidence(bound: Bound, epsilon: float, planned: float = PLANNED) -> Confidence:
    """What kernels take of a bound.

    Parameters
    ----------
    epsilon
        In [0, 1]: at 1 nothing is ever certain.
    planned
        Of `any_time.log_weights_of_rates`.

    Raises
    ------
    ValueError
    """
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(
            f"epsilon, the confidence of a bound, must lie in [0, 1]; got {epsilon}"
        )
    if not 0.0 < planned < math.inf:
        raise ValueError(
            "planned, the sum of squares at which a bound is narrowest, must be "
            f"positive and finite; got {planned}"
        )
    error = 1.0 - epsilon
    return Confidence(
        FAMILIES.index(bound), error, log_weights_of_rates(error, planned)
    )


@compiled
def add_row(into: Floats, sums: DifferenceSums, row: int) -> None:
    """Add a row to others.

    Parameters
    ----------
    into : [n_sums]
        See `SUMS`.
    """
    n, total, squares = sums.interactions[row], sums.totals[row], sums.squares[row]
    into[INTERACTIONS] += n
    into[ITEMS] += n * sums.lengths[row]
    into[CLICKS] += sums.clicks[row]
    into[TOTAL] += total
    into[SQUARES] += squares
    into[CLICK_SQUARES] += sums.click_squares[row]
    relative = scale(sums.gains[row], sums.losses[row])
    if relative > 0.0:
        into[SCALED_TOTAL] += total / relative
        into[SCALED_INTERACTIONS] += n / relative
        into[SCALED_SQUARES] += squares / (relative * relative)
    into[GAIN] = max(into[GAIN], sums.gains[row])
    into[LOSS] = max(into[LOSS], sums.losses[row])
    into[LARGEST] = max(into[LARGEST], sums.largest[row])


@compiled
def add_sums(into: Floats, other: Floats, sign: float) -> None:
    """Add what adds up of other rows, or take it away; the most stays the most.

    Parameters
    ----------
    into, other : [n_sums]
        See `SUMS`.
    sign
        1 or -1.
    """
    for k in range(GAIN):
        into[k] += sign * other[k]
    for k in range(GAIN, SUMS):
        into[k] = max(into[k], other[k])


@compiled
def lower_bound(totals: Floats, sure: Confidence) -> float:
    """A lower bound on the mean of X per list.

    Parameters
    ----------
    totals : [n_sums]
        Of the rows of a comparison.
    sure
        See `confidence`.
    """
    n, total, error = totals[INTERACTIONS], totals[TOTAL], sure.error
    if n <= 0.0:
        return -math.inf
    if sure.family == _ANY_TIME:
        return _lower_bound_at_any_time(totals, sure)
    of_click = totals[LARGEST]
    if totals[GAIN] > 0.0 and totals[LOSS] > 0.0:
        of_click *= 2.0
    if sure.family == _PER_ITEM:
        width = half_width_by_item(
            n, totals[ITEMS], total, totals[CLICK_SQUARES], of_click, error
        )
    elif sure.family == _PER_CLICK:
        width = half_width_by_click(
            n, totals[CLICKS], total, totals[CLICK_SQUARES], of_click, error
        )
    else:
        if sure.family == _DOUBLING_LOOKS:
            error = error_at_doubling(n, error)
        extent = totals[GAIN] + totals[LOSS]
        width = half_width(n, total, totals[SQUARES], extent, error)
    return float(total / n - width)


@compiled
def _lower_bound_at_any_time(totals: Floats, sure: Confidence) -> float:
    """The same, where the mixture passes."""
    if totals[SCALED_INTERACTIONS] <= 0.0:
        return 0.0  # the policies do not differ
    excess = largest_excess(totals[SCALED_SQUARES], sure.log_weights, sure.error)
    return float((totals[SCALED_TOTAL] - excess) / totals[SCALED_INTERACTIONS])


@compiled
def is_above_zero(totals: Floats, sure: Confidence) -> bool:
    """Whether the lower bound is above 0.

    Parameters
    ----------
    totals : [n_sums]
        Of the rows of a comparison.
    sure
        See `confidence`.
    """
    if totals[CLICKS] <= 0.0 or sure.error <= 0.0:
        return False
    if sure.family == _ANY_TIME:
        # Nothing speaks for a difference of 0 or less, however little is asked for.
        if totals[SCALED_TOTAL] <= 0.0:
            return False
        # One look at the mixture instead of the search for where it passes.
        value, _ = log_evidence(
            totals[SCALED_TOTAL], totals[SCALED_SQUARES], sure.log_weights
        )
        return value > -math.log(sure.error)
    return lower_bound(totals, sure) > 0.0


@compiled
def _lower_bounds(sums: DifferenceSums, starts: Integers, sure: Confidence) -> Floats:
    """Of all comparisons. [n_comparisons]."""
    found = np.empty(starts.shape[0] - 1)
    for i in range(found.shape[0]):
        totals = np.zeros(SUMS)
        for row in range(starts[i], starts[i + 1]):
            add_row(totals, sums, row)
        found[i] = lower_bound(totals, sure)
    return found


def lower_bounds(sums: DifferenceSums, starts: Integers, sure: Confidence) -> Floats:
    """Lower bounds on the mean of X per list. [n_comparisons].

    Parameters
    ----------
    starts : [n_comparisons + 1]
        Where the rows of each comparison begin.
    sure
        See `confidence`.

    Returns
    -------
    [n_comparisons]
        Minus infinity where nothing can be said, as of no list.
    """
    return np.asarray(_lower_bounds(sums, starts.astype(np.int64), sure))


def intervals(sums: DifferenceSums, starts: Integers, sure: Confidence) -> Floats:
    """Lower and upper bounds, of which each errs as if it were alone.

    Parameters
    ----------
    starts : [n_comparisons + 1]
        Where the rows of each comparison begin.
    sure
        See `confidence`.

    Returns
    -------
    [n_comparisons, 2]
        Infinite where nothing can be said.
    """
    low = lower_bounds(sums, starts, sure)
    high = -lower_bounds(mirrored(sums), starts, sure)
    return np.stack([low, high], axis=1)


def mirrored(sums: DifferenceSums) -> DifferenceSums:
    """The same lists, with the policies compared the other way round."""
    return sums._replace(gains=sums.losses, losses=sums.gains, totals=-sums.totals)
