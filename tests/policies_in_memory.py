"""Policies compared by a log that fits into memory, by the definition.

What commands do of a log query by query is held to it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.estimators import click_log
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, of_groups
from models.estimators.item_estimates import ItemEstimates
from models.estimators.jackknife import jackknife
from models.estimators.policy_comparison import PolicyComparison, compared
from models.estimators.policy_reward import PolicyReward, RankWeights, reward_sums
from models.estimators.registry import Estimator


class Valuation(NamedTuple):
    """How policies are valued.

    Parameters
    ----------
    estimator
        Of the values of items.
    curve_of
        The curve, given which groups to use, [n_groups]: one that is known whatever
        these are, or one that is fitted to them, so that errors have that of the fit.
    weights_of
        What ranks are worth, given the curve.
    shares : [n_items]
        Share of the lists that are of the item's query.
    """

    estimator: Estimator
    curve_of: Callable[[Flags], BiasCurve]
    weights_of: Callable[[BiasCurve], RankWeights]
    shares: Floats


def policy_reward(
    found: ItemEstimates, placements: Floats, weights: RankWeights, shares: Floats
) -> PolicyReward:
    """The reward of a policy that has its items at ranks with these probabilities."""
    return reward_sums(found, shares[:, None] * placements, weights).per_list(1.0)


def compare_policies(
    log: ClickLog,
    impressions: Floats,
    lists: Floats,
    targets: Mapping[str, Floats],
    valuation: Valuation,
    *,
    base: str,
) -> PolicyComparison:
    """Rewards of policies, and what each is worth more than one of them.

    Intervals are of 95 %, from groups left out one at a time. They hold for policies
    that were fixed before the clicks, or chosen from those of other groups; see
    `models.estimators.adaptivity`.

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    lists : [n_groups]
        Lists of each group, of all queries.
    targets
        Name -> P(item at rank), [n_items, n_ranks]. What logged is a policy too: see
        `logged_placements`.
    base
        The name of the policy that others are compared with.

    Raises
    ------
    ValueError
        Where the base is no target, or nothing was logged.
    """
    if base not in targets:
        raise ValueError(f"base must be one of {', '.join(targets)}; got {base!r}")
    names = tuple(targets)
    clicked = np.bincount(log.groups, log.clicked, len(lists))

    def points(is_kept: Flags) -> tuple[PolicyReward, ...]:
        curve = valuation.curve_of(is_kept)
        kept = of_groups(log, impressions, is_kept)
        found = valuation.estimator(*kept, curve)
        weights = valuation.weights_of(curve)
        return tuple(
            policy_reward(found, targets[name], weights, valuation.shares)
            for name in names
        )

    told: list[list[bool]] = []

    def figures(is_kept: Flags) -> Floats:
        found = points(is_kept)
        told.append([point.effective_clicks > 0.0 for point in found])
        rewards = np.array([point.value for point in found])
        naive = clicked[is_kept].sum() / lists[is_kept].sum()
        return np.array([*rewards, *(rewards - rewards[names.index(base)]), naive])

    has_lists = lists > 0.0
    found = jackknife(figures, has_lists)
    is_told = np.asarray(np.array(told).all(axis=0))
    return compared(names, base, points(has_lists), found, is_told, clicked)


def without_unknown(
    log: ClickLog, impressions: Floats
) -> tuple[ClickLog, Floats, Floats]:
    """Leave out what a group was shown by a policy where a list of it is unknown.

    Whole groups of a policy, so that nothing depends on what lists showed. Rows of one
    query at a time lose no more than they must.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.

    Returns
    -------
    log, impressions
        What is left.
    left_out : [n_items]
        Impressions that are not.
    """
    is_unknown = click_log._unknown(log, impressions)
    kept = np.where(is_unknown[:, :, None], 0.0, impressions)
    left_out = (impressions - kept).sum(axis=(0, 1))
    return (
        click_log._of_rows(log, ~is_unknown[log.groups, log.policies]),
        kept,
        left_out,
    )


def logged_placements(log: ClickLog, impressions: Floats, n_ranks: int) -> Floats:
    """P(item at rank) of all policies that logged, mixed as they did.

    [n_items, n_ranks]; 0 for items in no list, NaN where lists are unknown.
    `impressions` [n_groups, n_policies, n_items].
    """
    n_items = impressions.shape[2]
    is_known = log.ranks <= n_ranks
    cells = log.items[is_known] * n_ranks + log.ranks[is_known] - 1
    expected = np.bincount(cells, log.expected[is_known], n_items * n_ranks)
    lists = impressions.sum(axis=(0, 1))
    is_unknown = np.any(
        click_log._unknown_of_items(log, impressions), axis=(0, 1), keepdims=True
    )
    matrix = expected.reshape(n_items, n_ranks) / np.maximum(lists, 1.0)[:, None]
    return np.where(is_unknown.reshape(-1, 1), np.nan, matrix)
