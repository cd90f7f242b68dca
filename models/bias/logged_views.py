"""Counts that curves of bias are fitted on: what was shown where, and clicked.

Shapes: `n_rows` rows, which may repeat; ranks are 1-based.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers


class Views(NamedTuple):
    """How often items were shown and clicked at ranks.

    Parameters
    ----------
    queries : [n_rows]
        Any number for each query, or for whatever else is drawn as a whole by a
        bootstrap.
    policies : [n_rows]
        Any number for each policy that logged, one intervention.
    items : [n_rows]
        Any number for each relevance: a document of a query; or a class of them, which
        may be of several queries.
    ranks : [n_rows]
        1-based.
    shown, clicked : [n_rows]
        Lists on which the item was there, and was clicked there.
    """

    queries: Integers
    policies: Integers
    items: Integers
    ranks: Integers
    shown: Integers
    clicked: Integers

    def drawn(self, times: Integers) -> "Views":
        """Each query as often as it was drawn, as so many queries.

        Parameters
        ----------
        times : [n_queries]
            By query, sorted by number.

        Examples
        --------
        >>> one = np.array([7])
        >>> Views(one, one, one, one, one, one).drawn(np.array([2])).queries.tolist()
        [0, 1]
        """
        _, numbers = np.unique(self.queries, return_inverse=True)
        often = times[numbers]
        rows = np.repeat(np.arange(len(numbers)), often)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(often) - often, often)
        first = np.cumsum(times) - times
        drawn = Views(*(column[rows] for column in self))
        return drawn._replace(queries=first[numbers[rows]] + nth)


class Cells(NamedTuple):
    """Counts of each item at each rank where it was shown, sorted, from 0.

    Parameters
    ----------
    items, rows : [n_cells]
        Numbers of items, and ranks from 0.
    shown, clicked : [n_cells]
    names : [n_items]
        What the views call the items.
    """

    items: Integers
    rows: Integers
    shown: Floats
    clicked: Floats
    names: Integers

    def at(self, is_kept: npt.NDArray[np.bool_]) -> "Cells":
        """Some cells, and the items that they have; `is_kept` [n_cells]."""
        kept, items = np.unique(self.items[is_kept], return_inverse=True)
        return Cells(
            items.astype(np.int64), self.rows[is_kept], self.shown[is_kept],
            self.clicked[is_kept], self.names[kept],
        )  # fmt: skip


def cells_of(views: Views, n_ranks: int) -> Cells:
    """All rows of the same item and rank as one.

    Raises
    ------
    ValueError
        Where counts are negative, more was clicked than shown or a rank is out of
        range.
    """
    check_views(views, n_ranks)
    names, numbers = np.unique(views.items, return_inverse=True)
    keys, places = np.unique(numbers * n_ranks + views.ranks - 1, return_inverse=True)
    sums = [
        np.bincount(places, column, len(keys)).astype(np.float64)
        for column in (views.shown, views.clicked)
    ]
    cells = Cells(keys // n_ranks, keys % n_ranks, sums[0], sums[1], names)
    return cells.at(cells.shown > 0)


def check_views(views: Views, n_ranks: int) -> None:
    """Refuse what cannot have been counted; see `cells_of`."""
    lengths = {len(column) for column in views}
    if len(lengths) > 1:
        raise ValueError(
            f"columns of views must be of one length; got {sorted(lengths)}"
        )
    ranks = views.ranks
    if len(ranks) and not 1 <= ranks.min() <= ranks.max() <= n_ranks:
        raise ValueError(
            f"ranks must lie in 1..{n_ranks}; got {ranks.min()}..{ranks.max()}: leave "
            "out rows of other ranks"
        )
    wrong = np.flatnonzero((views.clicked < 0) | (views.clicked > views.shown))
    if len(wrong):
        raise ValueError(
            "clicked must lie in 0..shown for every row; got "
            f"{views.clicked[wrong[0]]} of {views.shown[wrong[0]]} in row {wrong[0]}"
        )
