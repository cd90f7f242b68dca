"""All lists that a Plackett-Luce policy draws, and all clicks on them, one by one."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.logging_policy.compared_query import ComparedQuery


class List(NamedTuple):
    """Items in order, its chance, and the gradient of its logarithm by scores."""

    rows: Integers
    chance: float
    slopes: Floats


def lists_of(scores: Floats, k: int) -> Iterator[List]:
    """Every list of k items; `scores` [n]."""
    for rows in itertools.permutations(range(len(scores)), k):
        log_chance, slopes = 0.0, np.zeros(len(scores))
        left = list(range(len(scores)))
        for d in rows:
            top = scores[left].max()
            masses = np.exp(scores[left] - top)
            log_chance += scores[d] - top - np.log(masses.sum())
            slopes[d] += 1.0
            slopes[left] -= masses / masses.sum()
            left.remove(d)
        yield List(np.array(rows, np.int64), float(np.exp(log_chance)), slopes)


def clicks_of(rows: Integers, query: ComparedQuery) -> Iterator[tuple[Flags, float]]:
    """Every pattern of clicks on a list, and its chance."""
    chances = query.examination * query.relevance[rows]
    for clicked in itertools.product((False, True), repeat=len(rows)):
        clicks = np.array(clicked)
        yield clicks, float(np.prod(np.where(clicks, chances, 1.0 - chances)))


def propensities_of(scores: Floats, examination: Floats) -> Floats:
    """P(looked at) of each item, [n]."""
    found = np.zeros(len(scores))
    for each in lists_of(scores, len(examination)):
        found[each.rows] += each.chance * examination
    return found


def mean_square(scores: Floats, query: ComparedQuery, difference: float = 0.0) -> float:
    """E[(x - difference)^2] of a list's estimate x."""
    ratios = query.differences / propensities_of(scores, query.examination)
    total = 0.0
    for each in lists_of(scores, len(query.examination)):
        for clicks, chance in clicks_of(each.rows, query):
            x = float(ratios[each.rows[clicks]].sum())
            total += each.chance * chance * (x - difference) ** 2
    return total
