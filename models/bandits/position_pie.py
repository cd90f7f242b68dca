"""PIE for the position-based model: the best list by estimates, but for its last slot.

An item has the estimate S / sum over ranks of kappa_l N_l. The L best are shown by
falling estimate. At rank L one of the others is tried instead, with chance 1/2, if
there are any whose index (`models.bandits.kl_index`) reaches the estimate of the L-th:
each as likely as another. Items with equal estimates are tied, and drawn uniformly. An
item that is tied with the L-th and not drawn is among those that may be tried, so how
many there are does not depend on the draw, and all chances are known exactly.

References
----------
Lagree, Vernade & Cappe (NIPS 2016), PBM-PIE, algorithm 2; Oosterhuis (PhD thesis,
2020), chapter 8, where all items are shown, which leaves nothing to try.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.bandits.kl_index import budget, reaches
from models.decisions.tied_orders import order_with_ties
from models.kernels.compilation import compiled

SHARE = 0.5
"""How often the last slot tries what may be better."""


class PiePolicy(NamedTuple):
    """How lists are drawn until the next look at clicks.

    Parameters
    ----------
    order : [n_items]
        Items by falling estimate.
    firsts : [n_items]
        The place, from 0, at which the block of ties of each place begins.
    is_tried : [n_items]
        By place, whether the last slot may try the item, where it is beyond the list.
    n_tried
        How many of those are beyond the list, whichever are drawn.
    share
        How often one of them is tried; 0 where there is none.
    n_ranks
        Length of lists, L.
    """

    order: Integers
    firsts: Integers
    is_tried: Flags
    n_tried: int
    share: float
    n_ranks: int


@compiled
def estimates(clicks: Integers, shows: Integers, examination: Floats) -> Floats:
    """S / sum of kappa N of each item, [n_items]; 0 for what nobody could examine.

    Parameters
    ----------
    clicks, shows : [n_items, n_ranks]
        S and N.
    examination : [n_ranks]
        kappa.
    """
    found = np.zeros(len(shows))
    for item in range(len(shows)):
        examined = 0.0
        for rank in range(len(examination)):
            examined += examination[rank] * shows[item, rank]
        if examined > 0.0:
            found[item] = clicks[item].sum() / examined
    return found


@compiled
def pie_policy(
    clicks: Integers,
    shows: Integers,
    examination: Floats,
    n_lists: int,
    share: float = SHARE,
) -> PiePolicy:
    """The policy after so many lists.

    Parameters
    ----------
    clicks, shows : [n_items, n_ranks]
        How often each item was clicked and shown at each rank.
    examination : [n_ranks]
        Chance that a rank is examined, above 0; lists are as long, or shorter where
        there are fewer items.
    n_lists
        t, lists that were counted.
    share
        How often the last slot tries an item; 0 leaves it to the L-th best.
    """
    n_items, n_ranks = len(shows), min(len(examination), len(shows))
    values = estimates(clicks, shows, examination)
    whole = np.array([0, n_items])
    order, firsts = order_with_ties(-values, whole)
    is_tried = np.zeros(n_items, np.bool_)
    last = order[n_ranks - 1]
    most, n_tried = budget(n_lists), 0
    for place in range(n_items):
        item = order[place]
        is_tied = firsts[place] == firsts[n_ranks - 1]
        is_tried[place] = is_tied or (
            place >= n_ranks
            and reaches(clicks[item], shows[item], examination, most, values[last])
        )
        n_tried += place >= n_ranks and is_tried[place]
    own = share if n_tried > 0 else 0.0
    return PiePolicy(order, firsts, is_tried, n_tried, own, n_ranks)


def placements(policy: PiePolicy) -> Floats:
    """P(item at rank), exactly. [n_items, n_ranks].

    Examples
    --------
    >>> nothing = np.zeros((3, 2), np.int64)
    >>> placements(pie_policy(nothing, nothing, np.array([1.0, 0.5]), 0)).round(3)
    array([[0.333, 0.333],
           [0.333, 0.333],
           [0.333, 0.333]])
    """
    n_items, n_ranks = len(policy.order), policy.n_ranks
    same = policy.firsts[:, None] == policy.firsts
    found = np.zeros((n_items, n_ranks))
    by_place = (same / same.sum(axis=1))[:, :n_ranks]
    if policy.n_tried:
        # Of those that are tied with the L-th, some are in the list already.
        beyond = 1.0 - by_place.sum(axis=1)
        tried = policy.is_tried * beyond / policy.n_tried
        by_place[:, -1] += policy.share * (tried - by_place[:, -1])
    found[policy.order] = by_place
    return found


@compiled
def shuffle_ties(
    order: Integers, firsts: Integers, n_ranks: int, rng: np.random.Generator
) -> None:
    """Shuffle blocks of ties, in place; what a place beyond the list has is any of its.

    Parameters
    ----------
    order, firsts : [n_items]
        Items, and the place at which the block of each begins.
    n_ranks
        Places that are shown.
    """
    end = 0
    for place in range(n_ranks):
        while end < len(firsts) and firsts[end] <= firsts[place]:
            end += 1
        other = place + int(rng.random() * (end - place))
        order[place], order[other] = order[other], order[place]


@compiled
def draw_list(policy: PiePolicy, rng: np.random.Generator) -> Integers:
    """One list, [n_ranks], by the chances of `placements`."""
    n_ranks = policy.n_ranks
    order = policy.order.copy()
    shuffle_ties(order, policy.firsts, n_ranks, rng)
    shown = order[:n_ranks]
    if policy.n_tried > 0 and rng.random() < policy.share:
        left = int(rng.random() * policy.n_tried)
        for place in range(n_ranks, len(order)):
            if policy.is_tried[place]:
                if left == 0:
                    shown[-1] = order[place]
                left -= 1
    return shown
