"""Clicks over what propensities weigh the lists that showed the item."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    NEVER_SHOWN,
    NOT_SHOWN,
    ItemEstimates,
    divided,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums
from models.estimators.policy_weights import policy_weights


def self_normalised(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """The ratio of corrected clicks to corrected looks, both by policy.

        value = sum of (clicks - shown beta) / E[alpha] / sum of shown alpha / E[alpha]

    The sum below is n on average, and dividing by it rather than by n takes the luck
    out of how often the item was shown: values vary less. It is consistent only. As
    long as the item may not be shown at all there is no value then, and with 0 for it
    the mean is P(ever shown) R; where policies were chosen from clicks the ratio is
    biased as well.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    least
        To which E[alpha] is raised, in training only.

    References
    ----------
    Swaminathan & Joachims (NIPS 2015), "The Self-Normalized Estimator for
    Counterfactual Learning", section 4.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    weights = policy_weights(sums.impressions, sums.alpha, least)
    corrected = ((sums.clicked - sums.shown_beta) * weights.clicks).sum(axis=0)
    looks = (sums.shown_alpha * weights.clicks).sum(axis=0)
    looks = np.where(np.isnan(weights.exposure), np.nan, looks)
    is_possible = weights.shares.max(axis=0, initial=0.0) > 0.0
    values = divided(corrected, looks)
    reasons = reasons_of(sums, looks, NOT_SHOWN)
    by_looks = weights.clicks / np.where(looks > 0.0, looks, 1.0)
    return ItemEstimates(
        values,
        tuple(
            NEVER_SHOWN if why == NOT_SHOWN and not is_there else why
            for why, is_there in zip(reasons, is_possible.tolist(), strict=True)
        ),
        weights.exposure,
        unseen_share(sums),
        policy_click_weights(sums.clicked, by_looks),
        remarks_of(log, curve, asks_policies=True),
    )
