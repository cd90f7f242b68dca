"""Evidence of a difference between two policies, as sums over the lists that came.

Let lambda_j(d) be the weight of item d under policy j, and rho(d) how often the policy
that logged a list lets item d be examined. Of a list with clicks c,

    X = sum over d of c(d) w(d),    w(d) = (lambda_1(d) - lambda_2(d)) / rho(d),

has the difference of both policies' rewards as its mean. The rho must be that of the
list's own policy: were lists of several pooled, then what was decided after some of
them would make pooled propensities, and so the difference, biased.

References
----------
Oosterhuis (thesis, 2020), chapter 8, sections 8.3.2 and 8.7.3; Oosterhuis & de Rijke
(WWW 2021).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers


class DifferenceSums(NamedTuple):
    """Sums of X. A row is a group of sessions under one logging policy.

    Rows of one comparison stand together; where there are several comparisons,
    `starts` [n_comparisons + 1] tells where the rows of each begin.

    Parameters
    ----------
    groups : [n_rows]
        Group of sessions.
    interactions : [n_rows]
        Lists.
    lengths : [n_rows]
        Items that a list shows, K.
    clicks : [n_rows]
    gains : [n_rows]
        M+, the most that X can be: the sum of the K largest w that are above 0.
    losses : [n_rows]
        M-, the most that -X can be, at least 0.
    largest : [n_rows]
        Largest |w| of an item that can be shown.
    totals, squares : [n_rows]
        Sums of X and of X^2.
    click_squares : [n_rows]
        Sum over clicks of w^2.
    """

    groups: Integers
    interactions: Integers
    lengths: Integers
    clicks: Integers
    gains: Floats
    losses: Floats
    largest: Floats
    totals: Floats
    squares: Floats
    click_squares: Floats


def largest_sum(weights: Floats, length: int) -> float:
    """The most that weights of clicked items of one list can add up to.

    Parameters
    ----------
    weights : [n_items]
        Of all items that can be shown.
    length
        Items that a list shows, K.

    Examples
    --------
    >>> largest_sum(np.array([2.0, -5.0, 1.0, 3.0]), 2)
    5.0
    >>> largest_sum(-np.array([2.0, -5.0, 1.0, 3.0]), 2)
    5.0
    """
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
        return np.asarray(np.bincount(row_of, of_list, len(came)), np.float64)

    return _rows_alike(came.astype(np.int64), weights, length)._replace(
        interactions=np.bincount(row_of, minlength=len(came)).astype(np.int64),
        clicks=summed(clicks.sum(axis=1)).astype(np.int64),
        totals=summed(values),
        squares=summed(values**2),
        click_squares=summed(clicks @ weights**2),
    )


def _rows_alike(groups: Integers, weights: Floats, length: int) -> DifferenceSums:
    """Rows without lists, of these weights."""
    n_rows = len(groups)
    none, nothing = np.zeros(n_rows, np.int64), np.zeros(n_rows)
    return DifferenceSums(
        groups=groups,
        interactions=none,
        lengths=np.full(n_rows, length, np.int64),
        clicks=none,
        gains=np.full(n_rows, largest_sum(weights, length)),
        losses=np.full(n_rows, largest_sum(-weights, length)),
        largest=np.full(n_rows, np.abs(weights).max(initial=0.0)),
        totals=nothing,
        squares=nothing,
        click_squares=nothing,
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
