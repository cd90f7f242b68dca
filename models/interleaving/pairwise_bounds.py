"""How much pairwise preference can prefer at most, known before a list is drawn.

Intervals that hold at any time are as wide as these bounds make them, so the bound of
few rankers is made of each two: only pairs of documents that the two order
differently can prefer one of them, and rankers that are worth comparing agree on
most. For many rankers one bound of all is cheaper.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import where_different
from models.interleaving.pairwise_weights import (
    choice_sizes,
    first_ranks,
    order_of,
    weight_of_ranks,
)
from models.interleaving.rankings import lengths_of, ranks_of, size_of
from models.kernels.compilation import compiled

FEW_RANKERS = 4
"""Up to so many each two have a bound of their own."""


@compiled
def largest_preferences(rankings: Integers, length: int, largest: float) -> Floats:
    """No list of this length and no clicks prefer one of two rankers by more.

    Parameters
    ----------
    rankings : [n_rankers, depth]
    largest
        Weight above which pairs of documents are left out.

    Returns
    -------
    [n_rankers, n_rankers]
    """
    n_rankers = rankings.shape[0]
    if n_rankers > FEW_RANKERS:
        return largest_preference(rankings, length, largest) * where_different(rankings)
    first = first_ranks(rankings, size_of(rankings))
    # Both of a pair must come at the later first rank or below.
    documents = np.flatnonzero(first < length)
    ranks = ranks_of(rankings, documents)
    weights = _weights(first[documents], choice_sizes(first, length), largest)
    lengths = lengths_of(rankings)
    bounds = np.zeros((n_rankers, n_rankers))
    for n in range(n_rankers):
        for m in range(n_rankers):
            if n != m and lengths[n] > 0 and lengths[m] > 0:
                gain = _largest_gain(weights, ranks[n], ranks[m], length)
                bounds[n, m] = max(bounds[n, m], gain)
                bounds[m, n] = max(bounds[m, n], gain)
    return bounds


@compiled
def _weights(first: Integers, sizes: Integers, largest: float) -> Floats:
    """Of each two documents, by their first ranks. [n_documents, n_documents]."""
    n_documents = first.shape[0]
    weights = np.zeros((n_documents, n_documents))
    for a in range(n_documents):
        for b in range(a):
            weights[a, b] = weight_of_ranks(first[a], first[b], sizes, largest)
            weights[b, a] = weights[a, b]
    return weights


@compiled
def _largest_gain(
    weights: Floats, own: Integers, other: Integers, length: int
) -> float:
    """The most that clicks can speak for the ranks `own` over the ranks `other`.

    c clicked documents meet length - c others, each pair once. So with c clicks no
    more is possible than the c documents with the largest sums of the length - c
    pairs that gain most.
    """
    if length < 2:
        return 0.0
    n_documents = own.shape[0]
    sums = np.zeros((n_documents, length))
    n_winners = 0
    for a in range(n_documents):
        n_gains = 0
        for b in range(n_documents):
            wins = order_of(own[a], own[b]) - order_of(other[a], other[b])
            n_gains += _keep(wins * weights[a, b], sums[n_winners], n_gains)
        if n_gains > 0:
            n_winners += 1
            sums[n_winners - 1] = np.cumsum(sums[n_winners - 1])
    bound = 0.0
    for n_clicks in range(1, min(n_winners + 1, length)):
        gains = np.sort(sums[:n_winners, length - n_clicks])
        bound = max(bound, gains[n_winners - n_clicks :].sum())
    return bound


@compiled
def _keep(gain: float, heaviest: Floats, n_gains: int) -> bool:
    """Put a gain among the heaviest, which fall from the second; the first is 0."""
    last = heaviest.shape[0] - 1
    if gain <= 0.0 or gain <= heaviest[last]:
        return False
    place = min(n_gains + 1, last)
    while place > 1 and heaviest[place - 1] < gain:
        heaviest[place] = heaviest[place - 1]
        place -= 1
    heaviest[place] = gain
    return True


@compiled
def largest_preference(rankings: Integers, length: int, largest: float) -> float:
    """No list of this length and no clicks prefer one ranker to another by more.

    c clicked documents meet length - c others, each pair once, with a difference of
    at most twice its weight; the weight depends on the first ranks only. So with c
    clicks no more is possible than the c documents with the largest sums of their
    length - c heaviest pairs. `rankings` [n_rankers, depth].
    """
    first = first_ranks(rankings, size_of(rankings))
    sizes = choice_sizes(first, length)
    n_new = np.zeros(length, np.int64)  # documents by first rank, from 1
    for rank in first:
        if rank < length:  # both of a pair must come at the later rank or below
            n_new[rank] += 1
    heaviest = np.zeros((length, length + 1))
    for rank in range(1, length):
        if n_new[rank] > 0:
            _fill_heaviest(rank, n_new, sizes, largest, heaviest[rank])
    bound = 0.0
    for n_clicks in range(1, length):
        sums = heaviest[:, length - n_clicks].copy()
        total, left = 0.0, n_clicks
        while left > 0:
            best = np.argmax(sums)
            if sums[best] <= 0.0:
                break
            n_taken = min(left, n_new[best])
            total += n_taken * sums[best]
            sums[best] = 0.0
            left -= n_taken
        bound = max(bound, 2.0 * total)
    return bound


@compiled
def _fill_heaviest(
    rank: int, n_new: Integers, sizes: Integers, largest: float, sums: Floats
) -> None:
    """Sums of the 1, 2, .. heaviest pairs of a document with this first rank.

    The further away the other's first rank is, the heavier the pair.
    """
    low, high, n = 1, n_new.shape[0] - 1, 0
    while low <= high and n < sums.shape[0] - 1:
        below = weight_of_ranks(low, rank, sizes, largest)
        above = weight_of_ranks(rank, high, sizes, largest)
        if low < rank and (high <= rank or below >= above):
            other, weight = low, below
            low += 1
        else:
            other, weight = high, above
            high -= 1
        for _ in range(n_new[other] - (other == rank)):
            if n < sums.shape[0] - 1 and weight > 0.0:  # 0: too heavy to count
                sums[n + 1] = sums[n] + weight
                n += 1
    for rest in range(n + 1, sums.shape[0]):
        sums[rest] = sums[n]
