"""Clicks corrected for trust at the rank at which the item was."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.item_estimates import (
    AS_IRRELEVANT,
    ItemEstimates,
    click_weights,
    reasons_of,
    remarks_of,
    summed,
    unseen_share,
)
from models.estimators.logged_places import LoggedPlaces, place_sums


def affine(
    log: LoggedPlaces, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks less beta, over alpha, of the ranks at which the item was, over lists.

        value = sum over ranks of  (clicks - shown beta) / alpha  / n

    The policy need not be known. An item that a list does not show counts as not
    relevant, so the mean is P(shown) R: biased by selection.

    Parameters
    ----------
    log
        See `models.estimators.logged_places`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    least
        To which alpha is raised, in training only; beta is not.

    References
    ----------
    Vardasbi, Oosterhuis & de Rijke (CIKM 2020), "When Inverse Propensity Scoring does
    not Work", section 4; Oosterhuis (PhD thesis, 2020), section 10.3.
    """
    sums = place_sums(log, impressions, curve).by_policy()
    lists, shown = sums.impressions.sum(axis=0), sums.shown.sum(axis=0)
    is_shown = (log.ranks <= curve.n_ranks) & (log.shown > 0)
    items, rows = log.items[is_shown], log.ranks[is_shown] - 1
    clicked = log.clicked[is_shown].astype(np.float64)
    weights = 1.0 / (np.maximum(curve.alpha[rows], least) * lists[items])
    by_trust = log.shown[is_shown] * curve.beta[rows]
    total = summed(items, (clicked - by_trust) * weights, len(lists))
    return ItemEstimates(
        np.where(lists > 0.0, total, np.nan),
        reasons_of(sums, shown, AS_IRRELEVANT),
        sums.shown_alpha.sum(axis=0),
        unseen_share(sums),
        click_weights(items, clicked, weights, len(lists)),
        remarks_of(log, curve),
    )
