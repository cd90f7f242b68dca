"""Regressions of relevance for each group's clicks, from those of all other groups.

What is fitted on the same clicks that it is to correct is biased. A group holds whole
sessions, so what others clicked is independent of it where policies were fixed.
"""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import Floats
from models.estimators.logged_places import LoggedPlaces, check_places, place_sums

PRIOR = 1.0
"""Sure looks of mean relevance that each item is given besides its own."""


def item_regression(log: LoggedPlaces, impressions: Floats, curve: BiasCurve) -> Floats:
    """Relevance of each item where it was shown, by the other groups.

        (clicks - shown beta + PRIOR mean) / (shown alpha + PRIOR)

    with the mean of all items over the same groups; within [0, 1], and 0 where the
    others were shown nothing.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.

    Returns
    -------
    [n_groups, n_items]
    """
    sums = place_sums(log, impressions, curve)
    own = (sums.clicked - sums.shown_beta).sum(axis=1), sums.shown_alpha.sum(axis=1)
    corrected, looks = (table.sum(axis=0) - table for table in own)
    all_looks = looks.sum(axis=1, keepdims=True)
    all_corrected = corrected.sum(axis=1, keepdims=True)
    mean = all_corrected / np.where(all_looks > 0.0, all_looks, 1.0)
    found: Floats = (corrected + PRIOR * mean) / (looks + PRIOR)
    return np.clip(found, 0.0, 1.0)


def rank_regression(log: LoggedPlaces, impressions: Floats, curve: BiasCurve) -> Floats:
    """Relevance of each item by the ranks at which policies put it.

    What stands at a rank has on average the relevance (clicks - shown beta) / (shown
    alpha), by the other groups; an item has the mean of its ranks, weighted by its
    expected alpha there. So items that nobody was shown have one. Within [0, 1]; 0
    where ranks say nothing.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.

    Returns
    -------
    [n_groups, n_items]
    """
    check_places(log, impressions)
    n_groups, _, n_items = impressions.shape
    is_known = (log.ranks <= curve.n_ranks) & ~np.isnan(log.expected)
    rows, n_ranks = log.ranks[is_known] - 1, curve.n_ranks
    places = log.groups[is_known] * n_ranks + rows
    shown, clicked = (
        np.bincount(places, column[is_known], n_groups * n_ranks).reshape(n_groups, -1)
        for column in (log.shown, log.clicked)
    )
    corrected, looks = clicked - shown * curve.beta, shown * curve.alpha
    corrected, looks = (table.sum(axis=0) - table for table in (corrected, looks))
    by_rank = corrected / np.where(looks > 0.0, looks, 1.0)
    cells = log.items[is_known] * n_ranks + rows
    expected = np.bincount(cells, log.expected[is_known], n_items * n_ranks)
    seen = expected.reshape(n_items, n_ranks) * curve.alpha
    total = seen.sum(axis=1)
    found: Floats = (by_rank @ seen.T) / np.where(total > 0.0, total, 1.0)
    return np.clip(found, 0.0, 1.0)
