"""The intervention-aware estimator under the signature of all estimators."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats, estimates, item_sums
from models.estimators.item_estimates import (
    ItemEstimates,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums, places_of


def intervention_aware(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of all policies less their E[beta], over their E[alpha].

    The estimate of `models.estimators.intervention_aware`, which says what it is
    unbiased for: policies that were fixed before the clicks.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    least
        To which the average of alpha is raised, in training only.

    References
    ----------
    Oosterhuis & de Rijke (WSDM 2021), section 5; Oosterhuis (PhD thesis, 2020), section
    10.6 and its theorem.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    found = estimates(item_sums(places_of(log), impressions.sum(axis=1), curve))
    alpha = sums.alpha.sum(axis=0)
    raised = np.maximum(alpha, least * found.impressions)
    is_there = raised > 0.0
    by = np.where(is_there, raised, 1.0)
    unclipped = np.where(alpha > 0.0, found.values, 0.0)
    weights = np.broadcast_to(is_there / by, sums.clicked.shape)
    return ItemEstimates(
        np.where(is_there, unclipped * (alpha / by), np.nan),
        reasons_of(sums, raised),
        alpha,
        unseen_share(sums),
        policy_click_weights(sums.clicked, weights),
        remarks_of(log, curve),
    )
