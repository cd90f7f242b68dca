"""KL-UCB for users who read from the top and stop at the first click.

A list is told by its first click: the items down to it were seen, those below were not,
and without a click all were. T is how often an item was seen, S how often it was that
click. Shown are the L items of the largest index

    max{q: T kl(S / T, q) <= log t + 3 log log t}

after t lists; items of equal index are tied, and drawn uniformly.

References
----------
Kveton, Szepesvari, Wen & Ashkan (ICML 2015), CascadeKL-UCB, algorithm 1.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.bandits.kl_index import budget, upper_index
from models.kernels.compilation import compiled

SEEN = np.ones(1)
"""What is seen is examined, wherever it stood."""


class FirstClicks(NamedTuple):
    """What lists told of items.

    Parameters
    ----------
    clicks, seen : [n_items]
        S and T.
    """

    clicks: Integers
    seen: Integers


@compiled
def take_first_click(sums: FirstClicks, shown: Integers, clicked: Integers) -> None:
    """Add a list.

    Parameters
    ----------
    shown, clicked : [n_ranks]
        Items in displayed order, and 1 where there was a click.
    """
    for rank in range(len(shown)):
        sums.seen[shown[rank]] += 1
        if clicked[rank]:
            sums.clicks[shown[rank]] += 1
            return


@compiled
def upper_indices(sums: FirstClicks, n_lists: int) -> Floats:
    """The index of each item after so many lists, [n_items]."""
    most, n_items = budget(n_lists), len(sums.seen)
    found = np.empty(n_items)
    for item in range(n_items):
        own = slice(item, item + 1)
        found[item] = upper_index(sums.clicks[own], sums.seen[own], SEEN, most)
    return found
