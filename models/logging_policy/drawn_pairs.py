"""The pairs' part of a second moment from drawn lists, with derivatives, compiled.

As in `models.logging_policy.exact_pairs`, for lists of any length. What a list is worth
is a sum over its ranks: each item adds twice its part times the parts above it. So the
gradient by scores is that of `models.logging_policy.list_slopes`. What follows a rank
is told from its mean over the other lists, which changes no expectation and makes it
vary less.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import fill_exponentials
from models.logging_policy.list_slopes import add_list_slopes, fill_left
from models.plackett_luce.list_sampler import BLOCK, sample_list

WIDEST_SPREAD = 700.0
"""Scores further apart have no mass that a float can hold."""


@compiled
def add_drawn_pairs(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    weights: Floats,
    examination: Floats,
    n_lists: int,
    slopes: Floats,
    by_weight: Floats,
    rng: np.random.Generator,
) -> float:
    """Add unbiased derivatives by scores and by weights; gives the pairs' part.

    Parameters
    ----------
    scores, weights, slopes, by_weight : [n]
        Scores lie within `WIDEST_SPREAD`; weights are a, any numbers.
    examination : [k]
        P(looked at | rank), k <= n.
    n_lists
        At least 2.
    """
    n, k = scores.shape[0], examination.shape[0]
    lists = np.empty((n_lists, k), np.int64)
    masses, blocks = np.empty(n), np.empty((n + BLOCK - 1) // BLOCK)
    for i in range(n_lists):
        sample_list(scores, masses, blocks, lists[i], rng)
    return add_pairs_of(scores, weights, examination, lists, slopes, by_weight)


@compiled
def add_pairs_of(
    scores: Floats,
    weights: Floats,
    examination: Floats,
    lists: Integers,
    slopes: Floats,
    by_weight: Floats,
) -> float:
    """The same, of lists that were drawn by these scores.

    Parameters
    ----------
    scores, weights, slopes, by_weight : [n]
    examination : [k]
    lists : [n_lists, k]
        Two at least.
    """
    n_lists, k = lists.shape
    # Of each list what the ranks below each rank add, then of all.
    below, means = np.zeros((n_lists, k)), np.zeros(k)
    pairs = 0.0
    for i in range(n_lists):
        above = 0.0
        for x in range(k):
            part = examination[x] * weights[lists[i, x]]
            below[i, :x] += 2.0 * part * above
            pairs += 2.0 * part * above
            above += part
        means += below[i]
        for x in range(k):
            d = lists[i, x]
            rest = above - examination[x] * weights[d]
            by_weight[d] += 2.0 * examination[x] * rest / n_lists
    masses = np.empty(scores.shape[0])
    fill_exponentials(scores, scores.max(), masses)
    gradient = np.zeros(scores.shape[0])
    left, mean_weights, adds = np.empty(k), np.empty(k), np.empty(k)
    for i in range(n_lists):
        rows, above = lists[i], 0.0
        for x in range(k):
            adds[x] = 2.0 * examination[x] * above
            above += examination[x] * weights[rows[x]]
        fill_left(masses, weights, rows, left, mean_weights)
        follows = below[i] - (means - below[i]) / (n_lists - 1)
        add_list_slopes(
            masses, weights, adds, follows, rows, left, mean_weights, gradient
        )
    slopes += gradient / n_lists
    return float(pairs / n_lists)
