"""Clicks over the examination of the rank at which they were: inverse propensities."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    AS_IRRELEVANT,
    ItemEstimates,
    click_weights,
    examination,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums


def oblivious(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks, each over the examination of its rank, over lists.

        value = sum over ranks of  clicks / theta  / n

    The policy need not be known. An item that a list does not show counts as seen
    and not clicked, so the mean is P(shown) R: biased by selection, and by trust.

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
    Joachims, Swaminathan & Schnabel (WSDM 2017); Oosterhuis (PhD thesis, 2020), section
    7.2.3, the policy-oblivious estimator and its condition.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    theta = np.maximum(examination(curve), least)
    lists, shown = sums.impressions.sum(axis=0), sums.shown.sum(axis=0)
    is_clicked = (log.ranks <= curve.n_ranks) & (log.clicked > 0)
    items, rows = log.items[is_clicked], log.ranks[is_clicked] - 1
    clicked = log.clicked[is_clicked].astype(np.float64)
    weights = 1.0 / (theta[rows] * lists[items])
    clicks = click_weights(items, clicked, weights, len(lists))
    return ItemEstimates(
        np.where(lists > 0.0, clicks.total, np.nan),
        reasons_of(sums, shown, AS_IRRELEVANT),
        sums.shown_alpha.sum(axis=0) + sums.shown_beta.sum(axis=0),
        unseen_share(sums),
        clicks,
        remarks_of(log, curve),
    )
