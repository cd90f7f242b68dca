"""What each action of a context earns: lists of one item as a contextual bandit.

The candidate set of a query is the context, the item shown the action a, and a click
the reward r. Of a list that policy p logged,

    X = r 1[shown = a] / p(a)

has the mean reward of a as its mean, wherever p may show a. Sums of X and X^2 are those
of r / p and (r / p)^2, by action, group and logging policy.

References
----------
Oosterhuis (PhD thesis, 2020), section 8.8, GENSPEC for contextual bandits; Horvitz &
Thompson (1952).
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.decisions.click_sums import ClickSums, LoggingPolicies
from models.evaluation.differences import DifferenceSums


class ActionSums(NamedTuple):
    """Sums of X of each action; actions are the items of all sets, set by set.

    Parameters
    ----------
    sums
        Rows of policies that could show the action.
    starts : [n_actions + 1]
        Where the rows of each begin.
    unsupported : [n_actions]
        Lists of one item of its context that could not show it.
    longer : [n_sets]
        Lists of several items, which are no actions and are left out.
    """

    sums: DifferenceSums
    starts: Integers
    unsupported: Integers
    longer: Integers

    def by_action(self, column: Floats | Integers) -> Floats:
        """A column of the sums, added up. [n_actions].

        Parameters
        ----------
        column : [n_rows]
        """
        n_actions = len(self.unsupported)
        owners = np.repeat(np.arange(n_actions), np.diff(self.starts))
        return np.bincount(owners, column, n_actions).astype(np.float64)


def action_sums(
    policies: LoggingPolicies, sums: ClickSums, set_starts: Integers
) -> ActionSums:
    """Add up r / p and its square.

    Parameters
    ----------
    policies
        With the chance of each item at the first rank as its propensity, and lengths
        that tell a list of one item from longer ones.
    sums
        Lists and clicks; pairs are not asked for, as one item has none.
    set_starts : [n_sets + 1]
        Where the items of sets begin.
    """
    is_one = policies.lengths[sums.policies] == 1
    set_of = policies.sets[sums.policies]
    longer = np.bincount(
        set_of[~is_one], sums.interactions[~is_one], len(set_starts) - 1
    )
    # A place is an item of a row: an action that a policy might have shown a group.
    first = policies.starts[sums.policies]
    n_items = np.where(is_one, policies.starts[sums.policies + 1] - first, 0)
    ends = np.cumsum(n_items)
    row = np.repeat(np.arange(len(n_items)), n_items)
    item = np.arange(len(row)) - (ends - n_items)[row]
    counts = np.zeros(len(row), np.int64)
    counted = sums.clicks[is_one[sums.clicks[:, 0]]]
    counts[(ends - n_items)[counted[:, 0]] + counted[:, 1]] = counted[:, 2]

    action = set_starts[set_of[row]] + item
    chance = policies.propensities[first[row] + item]
    lists = sums.interactions[row]
    could = chance > 0.0
    unsupported = np.bincount(action[~could], lists[~could], set_starts[-1])

    kept = np.flatnonzero(could)
    kept = kept[np.argsort(action[kept], kind="stable")]
    weights, n_clicks = 1.0 / chance[kept], counts[kept]
    squares = n_clicks * weights**2
    return ActionSums(
        DifferenceSums(
            groups=sums.groups[row[kept]],
            interactions=lists[kept],
            lengths=np.ones(len(kept), np.int64),
            clicks=n_clicks,
            gains=weights,
            losses=np.zeros(len(kept)),
            largest=weights,
            totals=n_clicks * weights,
            squares=squares,
            click_squares=squares,
        ),
        np.searchsorted(action[kept], np.arange(set_starts[-1] + 1)),
        unsupported.astype(np.int64),
        longer.astype(np.int64),
    )
