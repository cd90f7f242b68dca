"""Policies side by side before anybody sees them, with intervals.

Policies are valued by the same values of items, so what clicks got wrong of an item
they get wrong alike. So the differences, which are computed without each group like
all else, are known far better than the rewards.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, Flags, of_groups
from models.estimators.intervals import FEW_CLICKS
from models.estimators.intervention_aware import Floats
from models.estimators.jackknife import Jackknife, jackknife
from models.estimators.policy_reward import PolicyReward, RankWeights, policy_reward
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


class PolicyComparison(NamedTuple):
    """Of several policies.

    Parameters
    ----------
    names : [n_targets]
        Of the policies.
    points : [n_targets]
        Rewards and what they rest on, all groups together.
    rewards : [n_targets]
        The same with errors.
    differences : [n_targets]
        Rewards less that of the base, paired; 0 of the base itself.
    naive : [1]
        Clicks per list that the log has, of all ranks, under whoever logged.
    """

    names: tuple[str, ...]
    points: tuple[PolicyReward, ...]
    rewards: Jackknife
    differences: Jackknife
    naive: Jackknife


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
        `models.estimators.click_log.logged_placements`.
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


def compared(
    names: tuple[str, ...],
    base: str,
    points: tuple[PolicyReward, ...],
    found: Jackknife,
    is_told: Flags,
    clicked: npt.NDArray[np.float64 | np.int64],
) -> PolicyComparison:
    """The comparison of figures that were computed without each group.

    Where fewer than two groups have the clicks that a figure is from, groups hardly
    differ, and there is no interval: of no click it would be of no length.

    Parameters
    ----------
    found
        Rewards, differences and clicks per list, [2 n_targets + 1].
    is_told : [n_targets]
        Whether clicks add to the reward, whichever group is left out.
    clicked : [n_groups]
        Clicks of each group.
    """
    n = len(names)
    are_told = is_told & is_told[names.index(base)]
    is_clicked = np.array([np.count_nonzero(clicked) > 1])
    return PolicyComparison(
        names,
        points,
        found.of(slice(n)).only_where(is_told, FEW_CLICKS),
        found.of(slice(n, 2 * n)).only_where(are_told, FEW_CLICKS),
        found.of(slice(2 * n, None)).only_where(is_clicked, FEW_CLICKS),
    )
