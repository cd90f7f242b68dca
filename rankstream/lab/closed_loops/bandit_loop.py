"""Bandits of one query with simulated users: how many clicks they cost, list by list.

Regret is what the best list would have got, less what those that were shown get, each
in expectation: clicks of position-based users, and lists with a click of cascade users.
A bandit looks at clicks now and then; between two looks it draws lists by one policy.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.bandits.cascade_ucb import FirstClicks, take_first_click, upper_indices
from models.bandits.hotfix import take_preferences
from models.bandits.position_pie import draw_list, pie_policy, shuffle_ties
from models.decisions.tied_orders import order_with_ties
from models.kernels.compilation import compiled


@compiled
def pie_regret(
    rates: Floats,
    examination: Floats,
    points: Integers,
    every: int,
    share: float,
    rng: np.random.Generator,
) -> Floats:
    """Regret of PIE after so many lists, [n_points], in clicks.

    Parameters
    ----------
    rates : [n_items]
        P(click | examined).
    examination : [n_ranks]
        P(examined) by rank, which the bandit knows.
    points : [n_points]
        Lists, rising.
    every
        Lists between two looks at clicks; 1 is at once.
    share
        How often the last slot tries what may be better; 0 never does.
    """
    n_items, n_ranks = len(rates), len(examination)
    clicks = np.zeros((n_items, n_ranks), np.int64)
    shows = np.zeros((n_items, n_ranks), np.int64)
    best = (np.sort(rates)[::-1][:n_ranks] * examination).sum()
    found, regret, point = np.zeros(len(points)), 0.0, 0
    policy = pie_policy(clicks, shows, examination, 0, share)
    for n in range(points[-1]):
        if n % every == 0:
            policy = pie_policy(clicks, shows, examination, n, share)
        shown = draw_list(policy, rng)
        regret += best
        for rank in range(n_ranks):
            item = shown[rank]
            chance = examination[rank] * rates[item]
            regret -= chance
            shows[item, rank] += 1
            clicks[item, rank] += rng.random() < chance
        if n + 1 == points[point]:
            found[point] = regret
            point += 1
    return found


@compiled
def cascade_regret(
    rates: Floats,
    n_ranks: int,
    points: Integers,
    every: int,
    rng: np.random.Generator,
) -> Floats:
    """Regret of KL-UCB under cascade users, [n_points], in lists with a click.

    Parameters
    ----------
    rates : [n_items]
        P(click | seen).
    n_ranks
        Length of lists.
    points : [n_points]
        Lists, rising.
    every
        Lists between two looks at clicks; 1 is at once.
    """
    n_items = len(rates)
    sums = FirstClicks(np.zeros(n_items, np.int64), np.zeros(n_items, np.int64))
    most = 1.0 - np.prod(1.0 - np.sort(rates)[::-1][:n_ranks])
    whole, clicked = np.array([0, n_items]), np.zeros(n_ranks, np.int64)
    order, firsts = order_with_ties(-rates, whole)
    found, regret, point = np.zeros(len(points)), 0.0, 0
    for n in range(points[-1]):
        if n % every == 0:
            order, firsts = order_with_ties(-upper_indices(sums, n), whole)
        shuffle_ties(order, firsts, n_ranks, rng)
        none = 1.0
        for rank in range(n_ranks):
            none *= 1.0 - float(rates[order[rank]])
            clicked[rank] = rng.random() < rates[order[rank]]
        take_first_click(sums, order[:n_ranks], clicked)
        regret += float(most - (1.0 - none))
        if n + 1 == points[point]:
            found[point] = regret
            point += 1
    return found


@compiled
def hotfix_regret(
    rates: Floats, examination: Floats, points: Integers, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Regret of complete hotfix, in clicks, and that of a list of what it has learned.

    Parameters
    ----------
    rates : [n_items]
        P(click | examined).
    examination : [n_ranks]
        P(examined) by rank.
    points : [n_points]
        Lists, rising.

    Returns
    -------
    tuple
        Both [n_points]: of all lists so far, which are shuffled; and of one more by the
        order that was learned.
    """
    n_items, n_ranks = len(rates), len(examination)
    plus, minus = np.zeros(n_items, np.int64), np.zeros(n_items, np.int64)
    best = (np.sort(rates)[::-1][:n_ranks] * examination).sum()
    order, together = np.arange(n_items), np.zeros(n_items, np.int64)
    clicked, whole = np.zeros(n_ranks, np.int64), np.array([0, n_items])
    found, learned = np.zeros(len(points)), np.zeros(len(points))
    regret, point = 0.0, 0
    for n in range(points[-1]):
        shuffle_ties(order, together, n_ranks, rng)
        regret += best
        for rank in range(n_ranks):
            chance = examination[rank] * rates[order[rank]]
            regret -= chance
            clicked[rank] = rng.random() < chance
        take_preferences(plus, minus, order[:n_ranks], clicked)
        if n + 1 == points[point]:
            ranked, firsts = order_with_ties((minus - plus).astype(np.float64), whole)
            shuffle_ties(ranked, firsts, n_ranks, rng)
            found[point] = regret
            learned[point] = best - (rates[ranked[:n_ranks]] * examination).sum()
            point += 1
    return found, learned
