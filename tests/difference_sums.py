"""Sums of differences of policies, made of plain arrays of clicks."""

from collections.abc import Sequence

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.evaluation.differences import DifferenceSums


def largest_sum(weights: Floats, length: int) -> float:
    """The most that weights of clicked items of one list can add up to."""
    return float(np.sort(np.maximum(weights, 0.0))[::-1][:length].sum())


def sum_differences(
    clicks: Flags, groups: Integers, weights: Floats, length: int
) -> DifferenceSums:
    """The sums of lists of one logging policy, a row for each group that came.

    Parameters
    ----------
    clicks : [n_lists, n_items]
        Whether an item was clicked.
    groups : [n_lists]
        Group of the session of each list.
    weights : [n_items]
        w, the difference of both policies' weights over the propensity.
    length
        Items that a list shows, K.
    """
    came, row_of = np.unique(groups, return_inverse=True)
    values = clicks @ weights

    def summed(of_list: Floats) -> Floats:
        return np.asarray(np.bincount(row_of, of_list, n), np.float64)

    n = len(came)
    return DifferenceSums(
        groups=came.astype(np.int64),
        interactions=np.bincount(row_of, minlength=n).astype(np.int64),
        lengths=np.full(n, length, np.int64),
        clicks=summed(clicks.sum(axis=1)).astype(np.int64),
        gains=np.full(n, largest_sum(weights, length)),
        losses=np.full(n, largest_sum(-weights, length)),
        largest=np.full(n, np.abs(weights).max(initial=0.0)),
        totals=summed(values),
        squares=summed(values**2),
        click_squares=summed(clicks @ weights**2),
    )


def stacked(several: Sequence[DifferenceSums]) -> tuple[DifferenceSums, Integers]:
    """Rows of several comparisons in one record, and where those of each begin.

    Returns
    -------
    tuple
        The record, and `starts` [n_comparisons + 1].
    """
    starts = np.zeros(len(several) + 1, np.int64)
    starts[1:] = np.cumsum([len(each.groups) for each in several])
    joined = [np.concatenate(columns) for columns in zip(*several, strict=True)]
    return DifferenceSums(*joined), starts
