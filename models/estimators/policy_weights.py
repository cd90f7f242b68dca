"""What a click weighs where each policy is corrected for by itself.

    value = sum over policies of  n / n_all * (clicks - correction) / n / average

over the policies that could show the item, with n its lists under a policy, n_all
under all of these, and the average of its exposure. Lists of policies that could not
show it say nothing of it and are left out, which changes no expectation where policies
were fixed before the clicks.
"""

from typing import NamedTuple

import numpy as np

from models.estimators.intervention_aware import Floats


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
