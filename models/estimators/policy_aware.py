"""Clicks over the examination that their policy expects of the item."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    ItemEstimates,
    examination,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums
from models.estimators.policy_weights import policy_weights


def policy_aware(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of each policy over its average examination of the item, then their mean.

        value = sum over policies of  n / n_all * (clicks / n) / E[theta]

    A list that does not show an item makes others that do weigh more, so selection
    does no harm; trust bias does.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    curve
        theta is alpha + beta; see `models.estimators.item_estimates.examination`.
    least
        To which E[theta] is raised, in training only.

    References
    ----------
    Oosterhuis & de Rijke (SIGIR 2020), "Policy-Aware Unbiased Learning to Rank for
    Top-k Rankings", section 4; Oosterhuis (PhD thesis, 2020), section 7.3.
    """
    examination(curve)
    sums = place_sums(log, impressions, curve).by_policy()
    expected = sums.alpha + sums.beta
    weights = policy_weights(sums.impressions, expected, least)
    values = (sums.clicked * weights.clicks).sum(axis=0)
    has_value = weights.shares.any(axis=0) & ~np.isnan(weights.exposure)
    is_there = np.where(np.isnan(weights.exposure), np.nan, has_value)
    return ItemEstimates(
        np.where(has_value, values, np.nan),
        reasons_of(sums, is_there),
        weights.exposure,
        unseen_share(sums),
        policy_click_weights(sums.clicked, weights.clicks),
        remarks_of(log, curve, asks_policies=True),
    )
