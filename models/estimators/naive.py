"""Clicks per list, as if every click told relevance and nothing else did."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    ItemEstimates,
    click_weights,
    divided,
    reasons_of,
    summed,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums


def naive(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of all ranks over lists that have the item among their candidates.

        value = clicks / n

    Its mean is E[alpha] R + E[beta]: relevance only where every list shows the item at
    a rank where looking is sure. Support is the number of lists.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    curve
        Says which lists could show the item; clicks are not corrected by it.
    least
        Raises nothing: no click weighs more than another.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 7.2.3, the naive estimator.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    lists = np.maximum(sums.impressions.sum(axis=0), least)
    clicked = log.clicked.astype(np.float64)
    # Items of no list that is left have rows, without clicks.
    weights = 1.0 / np.where(lists > 0.0, lists, 1.0)[log.items]
    clicks = click_weights(log.items, clicked, weights, len(lists))
    total = summed(log.items, clicked, len(lists))
    return ItemEstimates(
        divided(total, lists),
        reasons_of(sums),
        lists,
        unseen_share(sums),
        clicks,
        (),
    )
