"""Estimators that correct clicks by what their policy alone expects of the item.

    value = sum over policies of  n / n_all * (clicks - correction) / n / average

over the policies that could show the item, with n its lists under a policy, n_all
under all of these, and the average of its exposure. Lists of policies that could not
show it say nothing of it and are left out, which changes no expectation where policies
were fixed before the clicks.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, LogSums, log_sums
from models.estimators.item_estimates import (
    NEVER_SHOWN,
    NOT_SHOWN,
    ItemEstimates,
    divided,
    examination,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)


class PolicyWeights(NamedTuple):
    """Weights of clicks, and shares of policies.

    Parameters
    ----------
    clicks : [n_policies, n_items]
        1 / (average exposure * n_all); 0 for policies that are left out.
    shares : [n_policies, n_items]
        n / n_all; 0 for policies that are left out.
    exposure : [n_items]
        Of all policies; NaN where that of one is not known.
    """

    clicks: Floats
    shares: Floats
    exposure: Floats


def policy_weights(
    impressions: Floats, exposure: Floats, least: float
) -> PolicyWeights:
    """Weights where the averages of exposures are raised to `least`.

    Parameters
    ----------
    impressions, exposure : [n_policies, n_items]
        Lists, and what is expected of them together; NaN where that is not known.
    least
        0 but in training, and then policies that could not show the item are not left
        out: they count as if it had not been clicked.
    """
    has_lists = impressions > 0.0
    average = np.nan_to_num(exposure) / np.where(has_lists, impressions, 1.0)
    raised = np.maximum(average, least)
    is_used = has_lists & (raised > 0.0)
    lists = np.where(is_used, impressions, 0.0)
    n_all = np.where(is_used.any(axis=0), lists.sum(axis=0), 1.0)
    weights = np.where(is_used, 1.0 / np.where(is_used, raised, 1.0), 0.0) / n_all
    return PolicyWeights(weights, lists / n_all, exposure.sum(axis=0))


def policy_aware(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of each policy over its average examination of the item, then their mean.

        value = sum over policies of  n / n_all * (clicks / n) / E[theta]

    A list that does not show an item makes others that do weigh more, so selection
    does no harm; trust bias does.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
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
    sums = log_sums(log, impressions, curve).by_policy()
    expected = sums.alpha + sums.beta
    weights = policy_weights(sums.impressions, expected, least)
    return _by_policy(log, curve, sums, sums.clicked, weights)


def intervention_oblivious(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of each policy less E[beta], over E[alpha], then their mean.

        value = sum over policies of  n / n_all * (clicks / n - E[beta]) / E[alpha]

    Exact too where policies were chosen from the clicks of earlier ones, as long as
    each could show the item: given all that was before, each term has the right mean. A
    policy that rarely shows the item makes its clicks weigh much, whatever other
    policies did.

    As in `policy_aware`; `least` is what E[alpha] is raised to, and E[beta] is not.

    References
    ----------
    Oosterhuis & de Rijke (WSDM 2021), section 4; Oosterhuis (PhD thesis, 2020), section
    10.5 and its theorem.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    corrected = sums.clicked - sums.beta
    weights = policy_weights(sums.impressions, sums.alpha, least)
    return _by_policy(log, curve, sums, corrected, weights)


def self_normalised(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """The ratio of corrected clicks to corrected looks, both by policy.

        value = sum of (clicks - shown beta) / E[alpha] / sum of shown alpha / E[alpha]

    The sum below is n on average, and dividing by it rather than by n takes the luck
    out of how often the item was shown: values vary less. It is consistent only. As
    long as the item may not be shown at all there is no value then, and with 0 for it
    the mean is P(ever shown) R; where policies were chosen from clicks the ratio is
    biased as well.

    As in `policy_aware`; `least` is what E[alpha] is raised to.

    References
    ----------
    Swaminathan & Joachims (NIPS 2015), "The Self-Normalized Estimator for
    Counterfactual Learning", section 4.
    """
    sums = log_sums(log, impressions, curve).by_policy()
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


def _by_policy(
    log: ClickLog,
    curve: BiasCurve,
    sums: LogSums,
    corrected: Floats,
    weights: PolicyWeights,
) -> ItemEstimates:
    values = (corrected * weights.clicks).sum(axis=0)
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
