"""Orders of items in which some are tied, and what chance gives each of them.

Those that are tied are shuffled uniformly, so that each of a block of n has every one
of its n ranks with probability 1 / n: its expected weight is the mean of the block's.
Items of several candidate sets stand one set after another; `starts` [n_sets + 1] says
where each begins.

References
----------
Oosterhuis & de Rijke (WWW 2021); Oosterhuis (PhD thesis, 2020), section 8.4.2, the
policies pi_g and pi_q, which draw uniformly from all orders that their scores allow.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled


class TiedOrders(NamedTuple):
    """The order of each set; a *place* is a 0-based rank of a set.

    Parameters
    ----------
    starts : [n_sets + 1]
        Where sets begin.
    items : [n_places]
        Number within its set of the item at each place, the best one first; those of
        a block rise.
    firsts : [n_places]
        The place at which the block of each begins.
    """

    starts: Integers
    items: Integers
    firsts: Integers

    def of_set(self, number: int) -> tuple[list[int], list[int]]:
        """The items of a set in their order, and the sizes of its blocks."""
        own = slice(int(self.starts[number]), int(self.starts[number + 1]))
        items, firsts = self.items[own], self.firsts[own]
        begins = np.flatnonzero(firsts == np.arange(len(firsts)))
        return items.tolist(), np.diff(begins, append=len(firsts)).tolist()


def tied_orders(scores: Floats, starts: Integers) -> TiedOrders:
    """Items by falling score; equal scores are tied.

    Parameters
    ----------
    scores : [n_places]
        Of items, set after set. NaN for what nothing is known of: it comes last, tied.
    starts : [n_sets + 1]
        Where sets begin.

    Examples
    --------
    >>> tied_orders(np.array([0.0, 2.0, 0.0]), np.array([0, 3])).of_set(0)
    ([1, 0, 2], [1, 2])
    """
    falling = np.where(np.isnan(scores), np.inf, -scores)
    return TiedOrders(starts, *order_with_ties(falling, starts))


@compiled
def order_with_ties(falling: Floats, starts: Integers) -> tuple[Integers, Integers]:
    """Items and firsts of `TiedOrders`, by rising numbers.

    Parameters
    ----------
    falling : [n_places]
        Of items, set after set; equal ones are tied, and what has most comes last.
    starts : [n_sets + 1]
        Where sets begin.
    """
    items = np.empty(len(falling), np.int64)
    firsts = np.empty(len(falling), np.int64)
    for number in range(len(starts) - 1):
        start, end = starts[number], starts[number + 1]
        own = falling[start:end]
        order = np.argsort(own, kind="mergesort")
        first = 0
        for place in range(end - start):
            if own[order[place]] != own[order[first]]:
                first = place
            items[start + place] = order[place]
            firsts[start + place] = first
    return items, firsts


def expected_weights(orders: TiedOrders, weights: Floats) -> Floats:
    """The weight that each item has on average, [n_places], set after set.

    Parameters
    ----------
    weights : [n_ranks]
        lambda by rank; ranks beyond have none.

    Examples
    --------
    >>> orders = tied_orders(np.array([0.0, 2.0, 0.0]), np.array([0, 3]))
    >>> expected_weights(orders, np.array([1.0, 0.6]))
    array([0.3, 1. , 0.3])
    """
    return _expected(orders, weights)


@compiled
def _expected(orders: TiedOrders, weights: Floats) -> Floats:
    starts, items, firsts = orders.starts, orders.items, orders.firsts
    found = np.empty(len(items))
    for number in range(len(starts) - 1):
        start, n = starts[number], starts[number + 1] - starts[number]
        place = 0
        while place < n:
            end, total = place, 0.0
            while end < n and firsts[start + end] == place:
                if end < len(weights):
                    total += weights[end]
                end += 1
            for own in range(place, end):
                found[start + items[start + own]] = total / (end - place)
            place = end
    return found
