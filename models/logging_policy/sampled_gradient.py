"""The gradient of a logging policy's variance from drawn lists and clicks, compiled.

Of drawn lists R with drawn clicks c, whose error is e = Delta - sum of lambda / rho,

    mean of  e^2 d log P(R)  +  2 e sum over clicks of lambda / rho^2 rho-grad

where rho-grad is the gradient of a propensity, estimated from lists too. That of the
list's own clicks is left out of it, or else both would be correlated, and the gradient
biased by a part of 1 / lists. Propensities are exact.

References
----------
Oosterhuis & de Rijke (ICTIR 2020), equation 27. The software of that paper scales both
parts differently; this is the formula.
"""

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import fill_exponentials
from models.logging_policy.list_slopes import add_list_slopes, fill_left
from models.plackett_luce.list_sampler import BLOCK, sample_list


@compiled
def add_sampled_gradient(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    relevance: Floats,
    differences: Floats,
    examination: Floats,
    difference: float,
    propensities: Floats,
    n_lists: int,
    slopes: Floats,
    rng: np.random.Generator,
) -> None:
    """Add an unbiased gradient of E[(difference - x)^2] by scores.

    Parameters
    ----------
    scores, relevance, differences, propensities, slopes : [n]
        See `models.logging_policy.second_moment`; propensities are those of the
        policy, above 0 where a click tells anything.
    examination : [k]
    difference
        Of clicks per list; any number: the expectation is that of E[x^2].
    n_lists
        At least 2.
    """
    n, k = scores.shape[0], examination.shape[0]
    masses, blocks = np.empty(n), np.empty((n + BLOCK - 1) // BLOCK)
    lists, clicks = np.empty((n_lists, k), np.int64), np.zeros((n_lists, k), np.bool_)
    for i in range(n_lists):
        sample_list(scores, masses, blocks, lists[i], rng)
        for x in range(k):
            chance = examination[x] * relevance[lists[i, x]]
            clicks[i, x] = rng.random() < chance
    add_gradient_of(
        scores, differences, examination, difference, propensities, lists, clicks,
        slopes,
    )  # fmt: skip


@compiled
def add_gradient_of(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    differences: Floats,
    examination: Floats,
    difference: float,
    propensities: Floats,
    lists: Integers,
    clicks: Flags,
    slopes: Floats,
) -> None:
    """The same of lists and clicks that were drawn.

    Parameters
    ----------
    scores, differences, propensities, slopes : [n]
    examination : [k]
    lists, clicks : [n_lists, k]
        Two at least.
    """
    n_lists, k = lists.shape
    n = scores.shape[0]
    errors, by_list, total = np.empty(n_lists), np.zeros((n_lists, k)), np.zeros(n)
    for i in range(n_lists):
        errors[i] = difference
        for x in range(k):
            ratio = differences[lists[i, x]] / propensities[lists[i, x]]
            errors[i] -= ratio if clicks[i, x] else 0.0
        for place in np.flatnonzero(clicks[i]):
            d = lists[i, place]
            ratio = differences[d] / propensities[d] ** 2
            by_list[i, place] = 2.0 * errors[i] * ratio
            total[d] += by_list[i, place]
    masses, gradient = np.empty(n), np.zeros(n)
    fill_exponentials(scores, scores.max(), masses)
    left, means, follows = np.empty(k), np.empty(k), np.empty(k)
    for i in range(n_lists):
        by_propensity = total.copy()
        for x in range(k):
            by_propensity[lists[i, x]] -= by_list[i, x]
        by_propensity /= n_lists - 1.0
        fill_left(masses, by_propensity, lists[i], left, means)
        # A rank changes all propensities below it, and how often the list comes.
        later = 0.0
        for x in range(k - 1, -1, -1):
            follows[x] = later + errors[i] ** 2
            later += examination[x] * means[x]
        add_list_slopes(
            masses, by_propensity, examination, follows, lists[i], left, means,
            gradient,
        )  # fmt: skip
    slopes += gradient / n_lists
