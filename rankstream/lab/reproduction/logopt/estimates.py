"""Mean and mean square of one list's estimate, query by query, without any clicks.

An estimate is x, the sum of weights of clicked items. Given the query and what is
logged, both are expectations over lists and clicks: exact for lists of rankers and for
short ones of a policy, of drawn lists for pairs of clicks on long ones.
"""

import math
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.logging_policy.drawn_pairs import add_drawn_pairs
from models.logging_policy.exact_pairs import MOST_ITEMS, add_exact_pairs
from models.losses.placement_gradient import fill_weights

N_LISTS = 40
"""Drawn of a query with more than `MOST_ITEMS` items: an error of one query in many."""


class Moments(NamedTuple):
    """Mean and mean square of x over queries, each as likely."""

    mean: float
    square: float

    @property
    def variance(self) -> float:
        """Of x; queries differ, too."""
        return self.square - self.mean**2

    def squared_error(self, truth: float) -> float:
        """Mean squared error of one x."""
        return self.square - 2.0 * truth * self.mean + truth**2


class Errors(NamedTuple):
    """Of an estimate by many queries, in the normal limit."""

    binary: float
    absolute: float


def errors_of(mean: float, variance: float, truth: float) -> Errors:
    """P(wrong sign) and mean absolute error of a normal estimate.

    Parameters
    ----------
    variance
        Of the estimate, not of one x; above 0.
    truth
        Not 0.

    Examples
    --------
    >>> errors_of(0.0, 1.0, 0.5).binary
    0.5
    """
    deviation, bias = math.sqrt(variance), mean - truth
    wrong = 0.5 * math.erfc(math.copysign(1.0, truth) * mean / deviation / 2.0**0.5)
    spread = math.exp(-0.5 * bias**2 / variance) * deviation * math.sqrt(2.0 / math.pi)
    folded = bias * math.erf(bias / deviation / 2.0**0.5)
    return Errors(wrong, spread + folded)


def of_lists(
    looked: Floats, relevance: Floats, weights: Floats, offsets: Integers
) -> Moments:
    """Where one of several lists is shown, each as likely.

    Parameters
    ----------
    looked : [n_lists, n_items]
        P(looked at) in each.
    relevance : [n_items]
        P(click | looked at).
    offsets : [n_queries + 1]
        Of items.
    weights : [n_lists, n_items] or [n_items]
        What a click is worth.
    """
    chances = looked * relevance
    by_query = np.add.reduceat(chances * weights, offsets[:-1], axis=1)
    within = np.add.reduceat(
        chances * (1.0 - chances) * weights**2, offsets[:-1], axis=1
    )
    return Moments(float(by_query.mean()), float((by_query**2 + within).mean()))


def of_policy(
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    offsets: Integers,
    examination: Floats,
    *,
    rng: np.random.Generator,
) -> Moments:
    """Where lists are drawn by Plackett-Luce.

    Parameters
    ----------
    scores, relevance, weights : [n_items]
        Log scores, P(click | looked at), and what a click is worth.
    offsets : [n_queries + 1]
        Of items.
    examination : [n_ranks]
        P(looked at | rank).
    """
    mean, square = _sums(scores, relevance, weights, offsets, examination, N_LISTS, rng)
    n_queries = len(offsets) - 1
    return Moments(mean / n_queries, square / n_queries)


@compiled
def _sums(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    offsets: Integers,
    examination: Floats,
    n_lists: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    mean, square = 0.0, 0.0
    for query in range(offsets.shape[0] - 1):
        begin, end = offsets[query], offsets[query + 1]
        n = end - begin
        looked, parts = np.empty(n), relevance[begin:end] * weights[begin:end]
        if not parts.any():
            continue
        theta, own = examination[:n], scores[begin:end]
        fill_weights(own, theta, np.empty(n, np.int64), looked)
        for d in range(n):
            mean += looked[d] * parts[d]
            square += looked[d] * parts[d] * weights[begin + d]
        slopes, by_weight = np.zeros(n), np.zeros(n)
        if n <= MOST_ITEMS:
            square += add_exact_pairs(own, parts, theta, slopes, by_weight)
        else:
            square += add_drawn_pairs(
                own, parts, theta, n_lists, slopes, by_weight, rng
            )
    return mean, square


@compiled
def fill_propensities(
    scores: Floats, offsets: Integers, examination: Floats, looked: Floats
) -> None:
    """Fill P(looked at) under a policy.

    Parameters
    ----------
    scores, looked : [n_items]
    offsets : [n_queries + 1]
        Of items.
    examination : [n_ranks]
    """
    for query in range(offsets.shape[0] - 1):
        begin, end = offsets[query], offsets[query + 1]
        order = np.empty(end - begin, np.int64)
        fill_weights(
            scores[begin:end], examination[: end - begin], order, looked[begin:end]
        )
