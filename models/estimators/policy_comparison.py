"""Policies side by side before anybody sees them, with intervals.

Policies are valued by the same values of items, so what clicks got wrong of an item
they get wrong alike. So the differences, which are computed without each group like
all else, are known far better than the rewards.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags
from models.estimators.intervals import FEW_CLICKS
from models.estimators.jackknife import Jackknife
from models.estimators.policy_reward import PolicyReward


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
