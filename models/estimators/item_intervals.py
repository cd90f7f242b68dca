"""Values of items by any estimator, and how far they may be off, by groups left out."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from models.arrays import Flags, Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, of_groups
from models.estimators.intervals import (
    FEW,
    FEW_CLICKS,
    FEW_GROUPS,
    Intervals,
    few_click_ends,
    spread_without_each,
)
from models.estimators.item_estimates import ItemEstimates
from models.estimators.registry import Estimator

CONFIDENCE = 0.95
"""Of each interval."""


class PointsOfItems(NamedTuple):
    """Of each item.

    Parameters
    ----------
    values : [n_items]
        NaN where there is none.
    support : [n_items]
        See `models.estimators.item_estimates.ItemEstimates`.
    intervals
        Without numbers where there are none.
    impressions, clicked : [n_items]
        Lists that could have shown it, and clicks at ranks that the curve has.
    """

    values: Floats
    support: Floats
    intervals: Intervals
    impressions: Floats
    clicked: Floats


def points_of_items(  # noqa: PLR0913  all that intervals depend on
    estimator: Estimator,
    log: ClickLog,
    impressions: Floats,
    curve: BiasCurve,
    groups: tuple[int, ...],
    *,
    has_intervals: bool = True,
    few: float = FEW,
) -> tuple[PointsOfItems, float]:
    """Values with intervals as those of `jackknife_intervals`, of any estimator.

    The estimate is made again without each group; see `models.estimators.intervals`.

    Of fewer than `few` clicks of one weight, `effective_clicks`, the ends are those of
    `few_click_ends`, of clicks that weigh what the estimator has them weigh. What it
    adds to them or takes off, such as trust, is taken as known, and they vary at least
    as groups say.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    groups
        Whose lists values are made of.
    has_intervals
        Whether there may be any: else nothing is made again.
    few
        Clicks of one weight below which ends are those of few clicks.

    Returns
    -------
    The points, and how many clicks of one weight vary as little as all of them.
    """
    wanted = np.isin(np.arange(len(impressions)), groups)
    kept, lists = of_groups(log, impressions, wanted)
    found = estimator(kept, lists, curve)
    by_group = lists.sum(axis=1)
    is_known = kept.ranks <= curve.n_ranks
    clicked = np.zeros(by_group.shape)
    places = kept.groups[is_known], kept.items[is_known]
    np.add.at(clicked, places, kept.clicked[is_known])
    has_item = by_group > 0.0
    without = np.full(by_group.shape, np.nan)
    if has_intervals:
        for group in np.flatnonzero(has_item.any(axis=1)).tolist():
            rest = wanted & (np.arange(len(impressions)) != group)
            without[group] = estimator(*of_groups(log, impressions, rest), curve).values
    is_few = found.effective_clicks < few
    reasons = _reasons(has_item, clicked, without, found.values, is_few)
    n_groups = has_item.sum(axis=0)
    degrees = np.maximum(n_groups - 1.0, 0.0)
    quantile = stdtrit(np.maximum(degrees, 1.0), 0.5 + 0.5 * CONFIDENCE)
    is_there = np.array([not reason for reason in reasons], np.bool_)
    spread = spread_without_each(without, has_item)
    half = np.where(is_there, quantile * spread, np.nan)
    values, n_lists = found.values, by_group.sum(axis=0)
    low, high = values - half, values + half
    if has_intervals and (is_few & is_there).any():
        # A click weighs most where it could have been and was shown.
        everywhere = estimator(kept._replace(clicked=kept.shown), lists, curve)
        own = np.flatnonzero(is_few & is_there & (everywhere.clicks.largest > 0.0))
        heaviest = everywhere.clicks.largest[own]
        low[own], high[own] = _of_few(found, half, own, heaviest)
    intervals = Intervals(low, high, degrees, reasons)
    total = float((n_lists * found.clicks.total).sum())
    squares = float((n_lists**2 * found.clicks.squares).sum())
    points = PointsOfItems(
        values, found.support, intervals, n_lists, clicked.sum(axis=0)
    )
    return points, total**2 / squares if squares else 0.0


def _of_few(
    found: ItemEstimates, half: Floats, items: npt.NDArray[np.intp], heaviest: Floats
) -> tuple[Floats, Floats]:
    """Ends of items of few clicks; `half` [n_items] of the interval that groups say."""
    total, squares = found.clicks.total[items], found.clicks.squares[items]
    said = (half[items] / float(ndtri(0.5 - 0.5 * CONFIDENCE))) ** 2
    ends = few_click_ends(
        total, np.maximum(squares, said), heaviest, confidence=CONFIDENCE
    )
    low, high = (end + found.values[items] - total for end in ends)
    return low, high


def _reasons(
    has_item: Flags, clicked: Floats, without: Floats, values: Floats, is_few: Flags
) -> tuple[str, ...]:
    """Why items have no interval; see `models.estimators.intervals`."""
    is_told = np.isfinite(values) & np.isfinite(np.where(has_item, without, 0.0)).all(
        axis=0
    )
    reasons = np.where(is_told, "", FEW_GROUPS)
    is_of_one = ((clicked > 0.0).sum(axis=0) < 2) & ~is_few
    reasons = np.where(is_of_one, FEW_CLICKS, reasons)
    return tuple(np.where(has_item.sum(axis=0) < 2, FEW_GROUPS, reasons).tolist())
