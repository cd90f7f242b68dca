"""All that can come of a few impressions: rankings, observations, relevance, clicks."""

from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np


class Users(NamedTuple):
    """Of a query: who looks where, and who clicks on what they looked at."""

    examination: tuple[float, ...]
    if_relevant: tuple[float, ...]
    if_not: tuple[float, ...]
    relevance: tuple[float, ...]

    def curve(self):
        """The two curves, as the terms of the two cases say."""
        looked, sure, noise = map(np.array, self[:3])
        return looked * (sure - noise), looked * noise


class Outcome(NamedTuple):
    """What one impression may come to: items by rank, and which were clicked."""

    shown: tuple[int, ...]
    clicks: tuple[bool, ...]
    probability: float


def plackett_luce(strengths, n_ranks):
    """P(list), by drawing without replacement; `strengths` by item, 0 for never."""
    lists = {}
    n_items = sum(strength > 0 for strength in strengths.values())
    for shown in permutations(strengths, min(n_ranks, n_items)):
        probability, left = 1.0, sum(strengths.values())
        for item in shown:
            probability *= strengths[item] / left
            left -= strengths[item]
        if probability:
            lists[shown] = probability
    return lists


def placement(policy, n_items, n_ranks):
    """P(item at rank), summed over all lists."""
    matrix = np.zeros((n_items, n_ranks))
    for shown, probability in policy.items():
        for row, item in enumerate(shown):
            matrix[item, row] += probability
    return matrix


def outcomes(policy, users):
    """Every list with every way of looking, being relevant and clicking."""
    found: dict[tuple[Any, Any], float] = {}
    for shown, probability in policy.items():
        for marks in product(product((True, False), repeat=3), repeat=len(shown)):
            chance, clicks = probability, []
            for row, (item, mark) in enumerate(zip(shown, marks, strict=True)):
                chance *= _chance(users, row, item, *mark)
                clicks.append(mark[2])
            if chance:
                place = shown, tuple(clicks)
                found[place] = found.get(place, 0.0) + chance
    return [Outcome(*place, chance) for place, chance in found.items()]


def _chance(users, row, item, is_looked_at, is_relevant, is_clicked):
    looked, relevant = users.examination[row], users.relevance[item]
    clicked = users.if_relevant[row] if is_relevant else users.if_not[row]
    if not is_looked_at:
        clicked = 0.0
    return (
        (looked if is_looked_at else 1 - looked)
        * (relevant if is_relevant else 1 - relevant)
        * (clicked if is_clicked else 1 - clicked)
    )
