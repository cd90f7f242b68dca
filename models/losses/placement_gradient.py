"""Expected worth of Plackett-Luce lists with its exact gradient, compiled.

    worth = sum over items and ranks of  value(item) worths[rank] P(item at rank)

Plackett-Luce is a race of exponential clocks. At each time, items arrive one after
another in a recursion that counts how many did: A[c] is the probability of c arrivals,
and B[c] the sum over items that arrive just now, of their value times the density,
with c others arrived before. So the density of the worth at that time is the sum of
worths[c] B[c]; and the recursion run backwards gives its derivatives by what each item
put in, all of them for the price of two recursions. Nothing is divided, so nothing
cancels. The derivatives by values, on the way, are the expected weights of the items'
ranks. The integral over time is that of `models.plackett_luce.placement`.

References
----------
Oosterhuis (SIGIR 2021) for the gradient, there from sampled lists; Takahasi & Mori
(Publ. RIMS 9, 1974) for the nodes of the integral.
"""

import math

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import fill_exponentials
from models.losses.pair_kernel import fill_order

LARGEST_STEP, STEP_TIMES_ROOT, BEND, WIDEST_GAP = 0.24, 0.68, 1.5, 32.0
"""As in `models.plackett_luce.placement`."""

FIRST_NODE = -2.4
"""Before this node less than 1e-16 items have arrived."""

NOT_YET, LONG_AGO = -39.0, 3.65
"""Logarithms of rate times time outside of which an item has surely not arrived, or
has: 1e-17 both."""

NOBODY_LEFT = 1e-14
"""Integration ends where fewer arrivals than ranks are less likely than this."""


@compiled
def add_expected_worth(
    scores: Floats, values: Floats, worths: Floats, order: Integers, slopes: Floats
) -> float:
    """Add the gradient of the expected worth by scores; gives the worth.

    Parameters
    ----------
    scores, values, slopes : [n]
        Scores are finite.
    worths : [k]
        Of the first k <= n ranks, k at least 1.
    order : [at least n]
        Scratch.
    """
    return _integrated(scores, values, worths, order, slopes, np.zeros(scores.shape[0]))


@compiled
def fill_weights(
    scores: Floats, worths: Floats, order: Integers, weights: Floats
) -> None:
    """Fill `weights` [n] with the expected worth of each item's rank.

    Others are as in `add_expected_worth`.
    """
    n = scores.shape[0]
    weights[:] = 0.0
    if n:
        _integrated(scores, np.zeros(n), worths, order, np.zeros(n), weights)


@compiled
def _integrated(
    scores: Floats,
    values: Floats,
    worths: Floats,
    order: Integers,
    slopes: Floats,
    weights: Floats,
) -> float:
    """As `add_expected_worth`; derivatives by values are added to `weights` [n]."""
    n, k = scores.shape[0], worths.shape[0]
    fill_order(scores, order)
    logs, known, gradient = np.empty(n), np.empty(n), np.zeros(n)
    placed = np.zeros(n)
    for i in range(n):
        known[i] = values[order[i]]
        # Who is behind a wider gap comes first as rarely as never.
        gap = min(scores[order[i - 1]] - scores[order[i]], WIDEST_GAP) if i else 0.0
        logs[i] = logs[i - 1] - gap if i else 0.0
    passed, silent = np.empty(n), np.empty(n)
    fill_exponentials(logs, 0.0, passed)
    shift = math.log(passed.sum())
    step = min(LARGEST_STEP, STEP_TIMES_ROOT / math.sqrt(k))
    counts, marked = np.empty((n + 1, k)), np.empty((n + 1, k))
    worth, node, begin, end = 0.0, 0, 0, 0
    while True:
        v = FIRST_NODE + node * step
        node += 1
        bend = math.exp(-BEND * v)
        log_time, weight = v - bend - shift, step * (1.0 + BEND * bend)
        while begin < n and logs[begin] + log_time > LONG_AGO:
            begin += 1
        while end < n and logs[end] + log_time >= NOT_YET:
            end += 1
        if begin >= k:
            break
        if end <= begin:
            continue
        racing = slice(begin, end)
        fill_exponentials(logs[racing] + log_time, LONG_AGO, passed[racing])
        passed[racing] *= math.exp(LONG_AGO)
        fill_exponentials(-passed[racing], 0.0, silent[racing])
        worth += weight * _forwards(
            passed[racing], silent[racing], known[racing], worths[begin:],
            counts, marked,
        )  # fmt: skip
        _backwards(
            passed[racing], silent[racing], known[racing], worths[begin:],
            counts, marked, weight, gradient[racing], placed[racing],
        )  # fmt: skip
        if counts[end - begin, : k - begin].sum() < NOBODY_LEFT:
            break
    _add_in_rows(gradient, order, slopes)
    _add_in_rows(placed, order, weights)
    return worth


@compiled
def _add_in_rows(by_rank: Floats, order: Integers, into: Floats) -> None:
    for i in range(by_rank.shape[0]):
        into[order[i]] += by_rank[i]


@compiled
def _forwards(
    passed: Floats,
    silent: Floats,
    values: Floats,
    worths: Floats,
    counts: Floats,
    marked: Floats,
) -> float:
    """The density of the worth; fills counts and marked counts before each item."""
    n, k = passed.shape[0], worths.shape[0]
    counts[0, :k] = 0.0
    marked[0, :k] = 0.0
    counts[0, 0] = 1.0
    for i in range(n):
        stays, comes = silent[i], 1.0 - silent[i]
        now = passed[i] * silent[i] * values[i]
        for c in range(k):
            counts[i + 1, c] = stays * counts[i, c]
            marked[i + 1, c] = stays * marked[i, c] + now * counts[i, c]
        for c in range(1, k):
            counts[i + 1, c] += comes * counts[i, c - 1]
            marked[i + 1, c] += comes * marked[i, c - 1]
    density = 0.0
    for c in range(k):
        density += worths[c] * marked[n, c]
    return density


@compiled
def _backwards(  # noqa: PLR0913  a kernel takes plain arrays
    passed: Floats,
    silent: Floats,
    values: Floats,
    worths: Floats,
    counts: Floats,
    marked: Floats,
    weight: float,
    gradient: Floats,
    placed: Floats,
) -> None:
    """Add derivatives of the density by scores, and by values, times the weight."""
    k = worths.shape[0]
    by_marked, by_counts = worths.copy(), np.zeros(k)
    for i in range(passed.shape[0] - 1, -1, -1):
        stays, comes = silent[i], 1.0 - silent[i]
        density = passed[i] * silent[i]
        by_arrival, by_density = 0.0, 0.0
        for c in range(k):
            by_arrival -= by_marked[c] * marked[i, c] + by_counts[c] * counts[i, c]
            by_density += by_marked[c] * counts[i, c]
        for c in range(1, k):
            by_arrival += by_marked[c] * marked[i, c - 1]
            by_arrival += by_counts[c] * counts[i, c - 1]
        # Both the chance to have arrived and its density move with the score.
        own = by_arrival + values[i] * by_density * (1.0 - passed[i])
        gradient[i] += weight * density * own
        placed[i] += weight * density * by_density
        now = density * values[i]
        for c in range(k - 1):
            by_counts[c] = (
                stays * by_counts[c] + comes * by_counts[c + 1] + now * by_marked[c]
            )
            by_marked[c] = stays * by_marked[c] + comes * by_marked[c + 1]
        last = k - 1
        by_counts[last] = stays * by_counts[last] + now * by_marked[last]
        by_marked[last] = stays * by_marked[last]
