"""Bandits of single queries, beside policies that clicks of a logging ranker train.

Each shows whole lists of its own to the same users, one after another, and learns from
all of them at once. Nothing is decided by them, and none knows other queries.

References
----------
Oosterhuis (PhD thesis, 2020), section 8.5: PBM-PIE, which with all items shown always
shows what it takes for the best, and hotfix of the complete list.
"""

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats, Integers
from models.bandits.hotfix import take_preferences
from models.bandits.position_pie import estimates, shuffle_ties
from models.decisions.tied_orders import order_with_ties
from models.kernels.compilation import compiled
from rankstream.lab.reproduction.genspec.plan import HOTFIX, PIE, SHUFFLED


def bandit_scores(
    wanted: Floats, offsets: Integers, counts: Sequence[int], rng: np.random.Generator
) -> dict[str, Floats]:
    """What bandits rank by after so many lists of each query, [n_counts, n_items].

    Equal scores are tied. That of hotfix is what it learned; while it learns, all that
    it shows is shuffled.

    Parameters
    ----------
    wanted : [n_items]
        P(click | looked at).
    offsets : [n_queries + 1]
        Of items, from 0.
    counts
        Rising.
    """
    at = np.array(counts)
    pie, hotfix = np.zeros((2, len(at), len(wanted)))
    for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = slice(first, end)
        pie[:, own] = pie_scores(wanted[own], at, rng)
        hotfix[:, own] = hotfix_scores(wanted[own], at, rng)
    return {PIE: pie, HOTFIX: hotfix, SHUFFLED: np.zeros_like(pie)}


@compiled
def pie_scores(wanted: Floats, counts: Integers, rng: np.random.Generator) -> Floats:
    """Of one query, [n_counts, n_items]; see `bandit_scores`.

    Parameters
    ----------
    wanted : [n_items]
    counts : [n_counts]
    """
    n_items = len(wanted)
    examination = 1.0 / np.arange(1.0, n_items + 1.0)
    clicks = np.zeros((n_items, n_items), np.int64)
    shows = np.zeros((n_items, n_items), np.int64)
    whole, found, point = np.array([0, n_items]), np.zeros((len(counts), n_items)), 0
    for n in range(1, counts[-1] + 1):
        falling = -estimates(clicks, shows, examination)
        order, firsts = order_with_ties(falling, whole)
        shuffle_ties(order, firsts, n_items, rng)
        for rank in range(n_items):
            item = order[rank]
            shows[item, rank] += 1
            clicks[item, rank] += rng.random() < examination[rank] * wanted[item]
        if n == counts[point]:
            found[point] = estimates(clicks, shows, examination)
            point += 1
    return found


@compiled
def hotfix_scores(wanted: Floats, counts: Integers, rng: np.random.Generator) -> Floats:
    """Of one query, [n_counts, n_items]; see `bandit_scores`.

    Parameters
    ----------
    wanted : [n_items]
    counts : [n_counts]
    """
    n_items = len(wanted)
    plus, minus = np.zeros(n_items, np.int64), np.zeros(n_items, np.int64)
    order, together = np.arange(n_items), np.zeros(n_items, np.int64)
    clicked = np.zeros(n_items, np.int64)
    found, point = np.zeros((len(counts), n_items)), 0
    for n in range(1, counts[-1] + 1):
        shuffle_ties(order, together, n_items, rng)
        for rank in range(n_items):
            clicked[rank] = rng.random() * (rank + 1) < wanted[order[rank]]
        take_preferences(plus, minus, order, clicked)
        if n == counts[point]:
            found[point] = plus - minus
            point += 1
    return found
