"""Lists that add, at each place, the best remaining document of some ranker."""

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.rankings import best_left, size_of
from models.kernels.compilation import compiled


def allowed_lists(
    rankings: Integers, length: int, limit: int, rng: np.random.Generator
) -> Integers:
    """All lists where there are at most `limit`, else that many draws, without repeats.

    `rankings` [n_rankers, depth].

    Returns
    -------
    [n_lists, length]
        Or shorter, where there are fewer documents.
    """
    lists = all_lists(rankings, length, limit)
    if not len(lists):
        lists = sampled_lists(rankings, length, limit, rng)
    return np.unique(lists, axis=0)


@compiled
def all_lists(rankings: Integers, length: int, limit: int) -> Integers:
    """Every allowed list [n_lists, k], or none where there are more than `limit`.

    `rankings` [n_rankers, depth].
    """
    lists = np.empty((limit, length), np.int64)
    choices = np.empty(rankings.shape[0], np.int64)
    n_lists = 1
    for place in range(length):
        for row in range(n_lists):
            n_choices = _choices(rankings, lists[row, :place], choices)
            if n_choices == 0:
                return lists[:n_lists, :place]
            if n_lists + n_choices - 1 > limit:
                return lists[:0]
            lists[row, place] = choices[0]
            for document in choices[1:n_choices]:
                lists[n_lists, :place] = lists[row, :place]
                lists[n_lists, place] = document
                n_lists += 1
    return lists[:n_lists]


@compiled
def _choices(rankings: Integers, placed: Integers, choices: Integers) -> int:
    """Write every ranker's best remaining document, each once; how many there are."""
    n_choices = 0
    for ranker in range(rankings.shape[0]):
        best = best_left(rankings, ranker, placed)
        is_new = best >= 0
        for other in choices[:n_choices]:
            is_new &= other != best
        if is_new:
            choices[n_choices] = best
            n_choices += 1
    return n_choices


@compiled
def sampled_lists(
    rankings: Integers, length: int, n_lists: int, rng: np.random.Generator
) -> Integers:
    """Lists [n_lists, k] whose places each come from a ranker drawn uniformly.

    `rankings` [n_rankers, depth].
    """
    n_rankers = rankings.shape[0]
    is_there = np.zeros(size_of(rankings), np.bool_)
    for document in rankings.ravel():
        if document >= 0:
            is_there[document] = True
    n_places = min(length, is_there.sum())
    lists = np.empty((n_lists, n_places), np.int64)
    for row in range(n_lists):
        for place in range(n_places):
            best = -1
            while best < 0:
                ranker = int(rng.random() * n_rankers)
                best = best_left(rankings, ranker, lists[row, :place])
            lists[row, place] = best
    return lists


@compiled
def prefix_credits(lists: Integers, credit: Floats) -> Floats:
    """What clicks on all of a prefix would give to each ranker, centred.

    Parameters
    ----------
    lists : [n_lists, k]
    credit : [n_rankers, n_documents]

    Returns
    -------
    [n_lists, k, n_rankers]
        Above the mean over rankers.
    """
    n_lists, k = lists.shape
    n_rankers = credit.shape[0]
    sums = np.zeros((n_lists, k, n_rankers))
    for row in range(n_lists):
        for place in range(k):
            mean = credit[:, lists[row, place]].mean()
            for ranker in range(n_rankers):
                gain = credit[ranker, lists[row, place]] - mean
                above = sums[row, place - 1, ranker] if place > 0 else 0.0
                sums[row, place, ranker] = above + gain
    return sums
