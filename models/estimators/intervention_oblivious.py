"""Clicks corrected by what their policy alone expects of the item."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    ItemEstimates,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums
from models.estimators.policy_weights import policy_weights


def intervention_oblivious(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of each policy less E[beta], over E[alpha], then their mean.

        value = sum over policies of  n / n_all * (clicks / n - E[beta]) / E[alpha]

    Exact too where policies were chosen from the clicks of earlier ones, as long as
    each could show the item: given all that was before, each term has the right mean. A
    policy that rarely shows the item makes its clicks weigh much, whatever other
    policies did.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    least
        To which E[alpha] is raised, in training only; E[beta] is not.

    References
    ----------
    Oosterhuis & de Rijke (WSDM 2021), section 4; Oosterhuis (PhD thesis, 2020), section
    10.5 and its theorem.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    weights = policy_weights(sums.impressions, sums.alpha, least)
    values = ((sums.clicked - sums.beta) * weights.clicks).sum(axis=0)
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
