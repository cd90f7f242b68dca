"""Gradient of the expected utility of Plackett-Luce lists, from sampled ones.

The utility of a ranking is the sum of rank weights times relevance over its first k
places. Its gradient in the scores is estimated from sampled rankings in
O(n log n + samples * (n + k)), with the sums of PL-Rank-3.

References
----------
Oosterhuis (SIGIR 2021), PL-Rank; Oosterhuis (SIGIR 2022), PL-Rank-3.
"""

import math

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import largest_of, log_sum, rest_log
from models.plackett_luce.list_sampler import BLOCK, sample_list


def score_gradient(
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    *,
    n_samples: int,
    rng: np.random.Generator,
) -> Floats:
    """Estimated gradient of the expected utility in the scores.

    Parameters
    ----------
    scores, relevance : [n]
    weights : [k]
        Of the first k <= n ranks.

    Returns
    -------
    [n]
    """
    gradient = np.zeros(len(scores))
    add_sampled_gradients(scores, relevance, weights, n_samples, gradient, rng)
    return gradient / n_samples


@compiled
def add_sampled_gradients(
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    n_samples: int,
    gradient: Floats,
    rng: np.random.Generator,
) -> None:
    """Add what sampled lists say of the gradient.

    Parameters
    ----------
    scores, relevance, gradient : [n]
    weights : [k]
        Of the first k <= n ranks.
    """
    n = scores.shape[0]
    masses = np.empty(n)
    blocks = np.empty((n + BLOCK - 1) // BLOCK)
    rows = np.empty(weights.shape[0], np.int64)
    for _ in range(n_samples):
        sample_list(scores, masses, blocks, rows, rng)
        add_list_gradient(scores, relevance, weights, rows, gradient)


@compiled
def add_list_gradient(
    scores: Floats, relevance: Floats, weights: Floats, rows: Integers, gradient: Floats
) -> None:
    """Add what one sampled top k says of the gradient.

    With S_x the mass that is left before place x, and U_x the utility from place x
    on, a document d that stands at place r, or below all k, gets

        U_(r+1) + sum over x = 1 .. min(r, k) of
                  exp(score of d) / S_x * (weight_x * relevance of d - U_x)

    Both sums over x are carried from place to place, measured by the mass there, so
    that no factor is above 1.

    Parameters
    ----------
    scores, relevance, gradient : [n]
    weights, rows : [k]
        Of the first k <= n ranks, and the documents there.
    """
    n, k = scores.shape[0], rows.shape[0]
    is_placed = np.zeros(n, np.bool_)
    is_placed[rows] = True
    # Only differences matter, and logs of sums round them away far from 0.
    relative = scores - largest_of(scores)
    logs = left_logs(relative, rows, is_placed)
    after = np.zeros(k + 1)
    for x in range(k - 1, -1, -1):
        after[x] = after[x + 1] + weights[x] * relevance[rows[x]]
    direct, given_up = 0.0, 0.0
    for x in range(k):
        if x > 0:
            shrink = math.exp(logs[x] - logs[x - 1])
            direct *= shrink
            given_up *= shrink
        direct += weights[x]
        given_up += after[x]
        d = rows[x]
        size = math.exp(relative[d] - logs[x])
        gradient[d] += after[x + 1] + size * (relevance[d] * direct - given_up)
    for d in range(n):
        if not is_placed[d]:
            size = math.exp(relative[d] - logs[k - 1])
            gradient[d] += size * (relevance[d] * direct - given_up)


@compiled
def left_logs(scores: Floats, rows: Integers, is_placed: Flags) -> Floats:
    """Log of the mass that is left before each place, summed from the bottom up.

    Parameters
    ----------
    scores, is_placed : [n]
    rows : [k]
        The placed documents, from the top.
    """
    k = rows.shape[0]
    below = rest_log(scores, is_placed)
    logs = np.empty(k)
    for x in range(k - 1, -1, -1):
        below = log_sum(below, scores[rows[x]])
        logs[x] = below
    return logs
