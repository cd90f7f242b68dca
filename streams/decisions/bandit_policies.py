"""How a bandit shows the candidates of a query until its next look at clicks.

Each policy is that of `models.bandits`, of the sums of the bandit's own lists. It is
told as an order with ties, and of PIE also as what the last rank tries, so that rankers
draw lists with exactly known chances.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.bandits.cascade_ucb import upper_indices
from models.bandits.hotfix import hotfix_scores
from models.bandits.position_pie import estimates, pie_policy
from models.decisions.tied_orders import TiedOrders, tied_orders
from rankstream.wire.decision_shards import Slot
from streams.decisions.bandit_sums import BanditSums
from streams.decisions.declared_policies import SureRanking


class BanditList(NamedTuple):
    """How the candidates of a set are shown.

    Parameters
    ----------
    order : [n_items]
        Numbers of items, best first.
    blocks : [n_blocks]
        Sizes of the blocks of tied items, in that order.
    slot
        What the last rank tries; None where it tries nothing.
    values : [n_items]
        What speaks for each item, by number: an estimated chance of a click where it is
        examined (PIE), the upper index of that (cascade), or how often it was preferred
        to others less how often others to it (hotfix).
    """

    order: list[int]
    blocks: list[int]
    slot: Slot | None
    values: Floats


SetPolicy = Callable[[BanditSums, int], BanditList | None]
"""Of the set of a number; None where nothing can be decided."""


def pie_list(examination: Floats) -> SetPolicy:
    """PIE of position-based users.

    Parameters
    ----------
    examination : [n_ranks]
        Chance that a rank is examined, above 0; lists are as long.
    """

    def of_set(sums: BanditSums, number: int) -> BanditList:
        clicks, shows = sums.by_rank(number, len(examination))
        policy = pie_policy(clicks, shows, examination, int(sums.lists[number]))
        slot, at = None, policy.n_ranks - 1
        if policy.n_tried:
            behind = np.arange(len(policy.order)) > at
            behind &= policy.firsts != policy.firsts[at]
            tried = policy.order[behind & policy.is_tried]
            slot = Slot(policy.n_ranks, policy.share, tried.tolist())
        whole = np.array([0, len(shows)])
        order = TiedOrders(whole, policy.order, policy.firsts).of_set(0)
        return BanditList(*order, slot, estimates(clicks, shows, examination))

    return of_set


def cascade_list(sums: BanditSums, number: int) -> BanditList:
    """KL-UCB of users who stop at their first click."""
    values = upper_indices(sums.first_clicks(number), int(sums.lists[number]))
    order = tied_orders(values, np.array([0, len(values)])).of_set(0)
    return BanditList(*order, None, values)


def hotfix_list(top: int, served: SureRanking | None) -> SetPolicy:
    """Hotfix: the first items of what the model serves are shuffled.

    Parameters
    ----------
    top
        How many; 0 for all. What the model ties with the last of them is shuffled too.
    served
        What the model shows of all sets; None where all items are shuffled.
    """

    def of_set(sums: BanditSums, number: int) -> BanditList | None:
        n_items = len(sums.sets.items[number])
        order, blocks = [*range(n_items)], [n_items]
        if served is not None and top < n_items:
            if np.isnan(served.weights[sums.sets.starts[number]]):
                return None
            order, apart = served.orders.of_set(number)
            ends = np.cumsum(apart)
            first = int(np.searchsorted(ends, top)) + 1
            blocks = [int(ends[first - 1]), *apart[first:]]
        values = hotfix_scores(np.array(order), blocks[0], *sums.preferred(number))
        return BanditList(order, blocks, None, values)

    return of_set
