"""Clicks corrected for bias at displayed ranks, over the looks that these got."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    NOT_SHOWN,
    ItemEstimates,
    click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums


def affine_shown(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks less beta of the ranks at which the item was, over alpha of these.

        value = (clicks - sum of shown beta) / sum of shown alpha

    The policy need not be known. Given what lists showed, clicks have the mean
    shown alpha R + shown beta, so lists that leave the item out say nothing of it, and
    add nothing. It is what `intervention_aware` gives where each list was sure: its
    sums, with what was shown in the place of what was expected.

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
    Vardasbi, Oosterhuis & de Rijke (CIKM 2020), section 4, for the correction;
    Oosterhuis & de Rijke (WSDM 2021), section 5, for one ratio of all lists.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    shown, clicked, alpha, beta = (
        table.sum(axis=0)
        for table in (sums.shown, sums.clicked, sums.shown_alpha, sums.shown_beta)
    )
    is_there = alpha > 0.0
    by = np.where(is_there, np.maximum(alpha, least * shown), 1.0)
    is_known = log.ranks <= curve.n_ranks
    items = log.items[is_known]
    clicks = log.clicked[is_known].astype(np.float64)
    return ItemEstimates(
        np.where(is_there, (clicked - beta) / by, np.nan),
        reasons_of(sums, alpha, NOT_SHOWN),
        alpha,
        unseen_share(sums),
        click_weights(items, clicks, 1.0 / by[items], len(by)),
        remarks_of(log, curve),
    )
