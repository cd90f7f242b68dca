"""The pairs' part of a second moment over all lists, with derivatives, compiled.

    pairs = E[sum over two ranks of a list of  theta theta' a(item) a(item')]

where lists are Plackett-Luce, and a pair counts both ways round. Which item comes next
depends on the set of those before it, not on their order. So sets are enough: of each,
its chance, and what its items add up to on average when it is reached. What a next item
adds is twice its own part times that sum. The recursion run backwards gives derivatives
by scores and by a. Nothing is drawn; the price is 2^n sets of n items.
"""

import numpy as np

from models.arrays import Floats
from models.kernels.compilation import compiled

MOST_ITEMS = 8
"""Sets of more items take longer than lists that are drawn."""


@compiled
def add_exact_pairs(
    scores: Floats,
    weights: Floats,
    examination: Floats,
    slopes: Floats,
    by_weight: Floats,
) -> float:
    """Add derivatives by scores and by weights; gives the pairs' part.

    Parameters
    ----------
    scores, weights, slopes, by_weight : [n]
        Scores are finite; weights are a, any numbers.
    examination : [k]
        P(looked at | rank), k <= n.
    """
    n, k = scores.shape[0], examination.shape[0]
    n_sets = 1 << n
    chances, sums = np.zeros(n_sets), np.zeros(n_sets)
    by_chance, by_sum = np.zeros(n_sets), np.zeros(n_sets)
    sizes, nexts = np.zeros(n_sets, np.int64), np.zeros((n_sets, n))
    chances[0] = 1.0
    pairs = 0.0
    for members in range(n_sets):
        if members:
            sizes[members] = sizes[members >> 1] + (members & 1)
        if sizes[members] >= k or chances[members] <= 0.0:
            continue
        _fill_next(scores, members, nexts[members])
        theta = examination[sizes[members]]
        for d in range(n):
            if members >> d & 1:
                continue
            chance, then = nexts[members, d], members | 1 << d
            part = theta * weights[d]
            chances[then] += chance * chances[members]
            sums[then] += chance * (sums[members] + part * chances[members])
            pairs += 2.0 * chance * part * sums[members]
    for members in range(n_sets - 1, -1, -1):
        if sizes[members] < k and chances[members] > 0.0:
            theta = examination[sizes[members]]
            _go_back(
                nexts[members], weights, theta, members,
                (chances, sums, by_chance, by_sum), slopes, by_weight,
            )  # fmt: skip
    return pairs


@compiled
def _fill_next(scores: Floats, members: int, nexts: Floats) -> None:
    """Chances of the next item, of those that are not members, [n]."""
    n = scores.shape[0]
    top, total = -np.inf, 0.0
    for d in range(n):
        if not members >> d & 1:
            top = max(top, scores[d])
    for d in range(n):
        if not members >> d & 1:
            nexts[d] = np.exp(scores[d] - top)
            total += nexts[d]
    for d in range(n):
        nexts[d] /= total


@compiled
def _go_back(  # noqa: PLR0913  a kernel takes plain arrays
    nexts: Floats,
    weights: Floats,
    theta: float,
    members: int,
    sets: tuple[Floats, Floats, Floats, Floats],
    slopes: Floats,
    by_weight: Floats,
) -> None:
    """Hand derivatives of all sets with one item more on to their members."""
    chances, sums, by_chance, by_sum = sets
    n, own_chance, own_sum = nexts.shape[0], chances[members], sums[members]
    by_next, mean = np.zeros(n), 0.0
    for d in range(n):
        if members >> d & 1:
            continue
        then, part = members | 1 << d, theta * weights[d]
        by_next[d] = (
            by_chance[then] * own_chance
            + by_sum[then] * (own_sum + part * own_chance)
            + 2.0 * part * own_sum
        )
        mean += nexts[d] * by_next[d]
        by_chance[members] += nexts[d] * (by_chance[then] + by_sum[then] * part)
        by_sum[members] += nexts[d] * (by_sum[then] + 2.0 * part)
        by_weight[d] += nexts[d] * theta * (by_sum[then] * own_chance + 2.0 * own_sum)
    for d in range(n):
        slopes[d] += nexts[d] * (by_next[d] - mean)
