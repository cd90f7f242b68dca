"""Inverse propensities of what was shown, and of nothing else."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    NOT_SHOWN,
    ItemEstimates,
    click_weights,
    examination,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums


def rerank(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks, each over the examination of its rank, over lists that showed the item.

        value = sum over ranks of  clicks / theta  / n_shown

    Unbiased for the relevance of what was shown, given that it was, without trust bias.
    Of all else it says nothing: a reward that leaves items without a value out, as one
    that ranks the shown items again does, is P(ever shown) R of each item, and too
    little.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    curve
        theta is alpha + beta; see `models.estimators.item_estimates.examination`.
    least
        To which theta is raised, in training only.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 7.5, the rerank baseline.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    theta = np.maximum(examination(curve), least)
    shown = sums.shown.sum(axis=0)
    is_clicked = (log.ranks <= curve.n_ranks) & (log.clicked > 0)
    items, rows = log.items[is_clicked], log.ranks[is_clicked] - 1
    clicked = log.clicked[is_clicked].astype(np.float64)
    weights = 1.0 / (theta[rows] * shown[items])
    clicks = click_weights(items, clicked, weights, len(shown))
    return ItemEstimates(
        np.where(shown > 0.0, clicks.total, np.nan),
        reasons_of(sums, shown, NOT_SHOWN),
        sums.shown_alpha.sum(axis=0) + sums.shown_beta.sum(axis=0),
        unseen_share(sums),
        clicks,
        remarks_of(log, curve),
    )
