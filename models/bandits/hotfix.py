"""Hotfix: shuffle the first items of a list, and rank them by inferred preferences.

The first n items of what is served are shuffled uniformly: all that there are where
hotfix is *complete*. A clicked item is preferred to each unclicked one above the
last click. An item's score is how often it was preferred, less how often another was:
statistics keep both as `plus` and `minus`. Items below the first n stay where they are.
Lists that are shown while it learns are shuffled: what it has learned is not shown.

References
----------
Zoghi, Tunys, Li, Jose, Chen, Chin & de Rijke (SIGIR 2016); Oosterhuis (PhD thesis,
2020), chapter 8, and its published code, where the item after the last click does not
count as passed over.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled


@compiled
def take_preferences(
    plus: Integers, minus: Integers, shown: Integers, clicked: Integers
) -> None:
    """Add a list to both sums.

    Parameters
    ----------
    plus, minus : [n_items]
        How often an item was preferred to another, and another to it.
    shown, clicked : [n_ranks]
        Items in displayed order, and 1 where there was a click.
    """
    last = len(shown)
    while last > 0 and not clicked[last - 1]:
        last -= 1
    n_clicked = int(clicked[:last].sum())
    for rank in range(last):
        if clicked[rank]:
            plus[shown[rank]] += last - n_clicked
        else:
            minus[shown[rank]] += n_clicked


def hotfix_scores(
    served: Integers, n_top: int, plus: Integers, minus: Integers
) -> Floats:
    """Scores by which items are ranked, [n_items]; equal ones are tied.

    Parameters
    ----------
    served : [n_items]
        Items in the order in which they were served before.
    n_top
        Those of them that were shuffled.
    plus, minus : [n_items]
        See `take_preferences`.

    Examples
    --------
    >>> plus, minus = np.array([0, 2, 0, 0]), np.array([1, 0, 1, 0])
    >>> hotfix_scores(np.array([2, 0, 1, 3]), 3, plus, minus)
    array([-1.,  2., -1., -2.])
    """
    top, below = served[:n_top], served[n_top:]
    scores = (plus - minus).astype(np.float64)
    least = scores[top].min(initial=0.0)
    scores[below] = least - np.arange(1.0, len(below) + 1.0)
    return scores
