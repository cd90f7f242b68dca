"""P(item at rank) of lists whose logging policy follows from the list alone.

Numbers of policies are those of events; `tests/streams/statistics/test_reader.py`
compares the two tables.
"""

import numpy as np

from models.arrays import Floats
from models.counts.fixed_point import Int64

UNKNOWN, PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE, LOGGED, MULTILEAVE = range(6)

WITH_ROW = (PLACKETT_LUCE, LOGGED)
"""Policies whose placements are stored, as an exposure row."""

WITHOUT_EXPOSURE = (UNKNOWN, MULTILEAVE)
"""Policies whose placements nobody knows."""


def deterministic_matrix(shown: Int64, n_items: int) -> Floats:
    """P(item at rank), [n_items, n_shown]: 1 where `shown` [n_shown] stands."""
    matrix = np.zeros((n_items, len(shown)))
    matrix[shown, np.arange(len(shown))] = 1.0
    return matrix


def tail_shuffle_matrix(first: Int64, n_items: int) -> Floats:
    """P(item at rank): the first ranks fixed, one rank uniform over the rest.

    [n_items, n_ranks], of the items `first` [n_ranks - 1].
    """
    n_ranks = len(first) + 1
    matrix = np.zeros((n_items, n_ranks))
    matrix[:, -1] = 1.0 / (n_items - len(first))
    matrix[first] = 0.0
    matrix[first, np.arange(n_ranks - 1)] = 1.0
    return matrix
