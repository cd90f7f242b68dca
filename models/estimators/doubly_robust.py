"""A regression's guess of relevance, corrected by what clicks say against it.

    value = r + sum over policies of
            n / n_all * (clicks - shown beta - shown alpha r) / n / E[alpha]

Clicks are compared with what r says of the ranks at which the item was; propensities
weigh the difference. Exact where propensities are right and r was not made of the same
clicks, and exact where r is right, whatever propensities are: so it is doubly robust.
A good r makes it vary less than the clicks alone, as the luck of how often an item was
shown is taken out.

References
----------
Oosterhuis (TOIS 2023), "Doubly Robust Estimation for Correcting Position Bias in Click
Feedback for Unbiased Learning to Rank", section 4.
"""

import numpy as np

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, LogSums, log_sums
from models.estimators.item_estimates import (
    OF_REGRESSION,
    ItemEstimates,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)
from models.estimators.policy_corrected import policy_weights


def doubly_robust(
    log: ClickLog,
    impressions: Floats,
    curve: BiasCurve,
    *,
    regression: Floats | None = None,
    least: float = 0.0,
) -> ItemEstimates:
    """The regression's relevance, and the corrected error of it by policy.

    Items that no policy could show have the value of the regression, and the reason
    says so.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    regression : [n_items] or [n_groups, n_items]
        Relevance of each item, fixed before the clicks; or for clicks of each group,
        from those of others, as `models.estimators.doubly_robust` gives it: that of
        each item without it. Fixed, it is exact where policies were chosen from clicks
        too, as `intervention_oblivious` is; made of other groups only where they were
        not. Made of the same clicks it is biased.
    least
        To which E[alpha] is raised, in training only.

    Raises
    ------
    ValueError
        Where the regression has another shape or is no number.
    """
    by_group = log_sums(log, impressions, curve)
    if regression is None:
        regression = item_regression(log, impressions, curve)
    guess = _by_group(regression, by_group)[:, None, :]
    sums = by_group.by_policy()
    weights = policy_weights(sums.impressions, sums.alpha, least)
    expected = by_group.shown_beta + by_group.shown_alpha * guess
    against = (by_group.clicked - expected).sum(axis=0)
    values = _guessed(by_group, guess, weights.shares)
    values = values + (against * weights.clicks).sum(axis=0)
    has_lists = sums.impressions.sum(axis=0) > 0.0
    is_known = has_lists & ~np.isnan(weights.exposure)
    has_value = np.where(weights.shares.any(axis=0), 1.0, 0.0)
    is_there = np.where(np.isnan(weights.exposure), np.nan, has_value)
    return ItemEstimates(
        np.where(is_known, values, np.nan),
        reasons_of(sums, is_there, OF_REGRESSION),
        weights.exposure,
        unseen_share(sums),
        policy_click_weights(sums.clicked, weights.clicks),
        remarks_of(log, curve, asks_policies=True),
    )


def _guessed(sums: LogSums, guess: Floats, shares: Floats) -> Floats:
    """What the regression says, [n_items]: of each policy where its looks are.

    Groups differ in it, and each counts as much as it adds to what propensities divide
    by. Policies that could not show the item count by their lists, if all are such.
    """
    looks = sums.alpha.sum(axis=0)
    is_possible = looks > 0.0
    by = np.where(is_possible, sums.alpha, sums.impressions)
    total = by.sum(axis=0)
    mean = (by * guess).sum(axis=0) / np.where(total > 0.0, total, 1.0)
    lists = sums.impressions.sum(axis=0)
    of_all = lists / np.maximum(lists.sum(axis=0), 1.0)
    found: Floats = (mean * np.where(shares.any(axis=0), shares, of_all)).sum(axis=0)
    return found


def _by_group(regression: Floats, sums: LogSums) -> Floats:
    n_groups, _, n_items = sums.impressions.shape
    if regression.shape not in {(n_items,), (n_groups, n_items)}:
        raise ValueError(
            f"the regression must be of {n_items} items, or of {n_groups} groups and "
            f"these; got shape {regression.shape}"
        )
    if not np.isfinite(regression).all():
        raise ValueError(
            "the regression must say a number of each item; got others: give items "
            "that it does not know the mean of those that it does"
        )
    return np.broadcast_to(regression, (n_groups, n_items))


PRIOR = 1.0
"""Sure looks of mean relevance that each item is given besides its own."""


def item_regression(log: ClickLog, impressions: Floats, curve: BiasCurve) -> Floats:
    """Relevance of each item where it was shown, by the other groups.

        (clicks - shown beta + PRIOR mean) / (shown alpha + PRIOR)

    with the mean of all items over the same groups; within [0, 1], and 0 where the
    others were shown nothing. What is fitted on the same clicks that it is to correct
    is biased; a group holds whole sessions, so what others clicked is independent of
    it where policies were fixed.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.

    Returns
    -------
    [n_groups, n_items]
    """
    sums = log_sums(log, impressions, curve)
    own = (sums.clicked - sums.shown_beta).sum(axis=1), sums.shown_alpha.sum(axis=1)
    corrected, looks = (table.sum(axis=0) - table for table in own)
    all_looks = looks.sum(axis=1, keepdims=True)
    all_corrected = corrected.sum(axis=1, keepdims=True)
    mean = all_corrected / np.where(all_looks > 0.0, all_looks, 1.0)
    found: Floats = (corrected + PRIOR * mean) / (looks + PRIOR)
    return np.clip(found, 0.0, 1.0)
