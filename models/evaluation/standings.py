"""All rankers in one order, from the preferences of pairs.

References
----------
Copeland (1951); Bradley & Terry (1952), fitted as in Hunter (2004).
"""

import numpy as np

from models.arrays import Floats, Integers

N_ROUNDS = 10_000
TOLERANCE = 1e-10


def copeland(signs: Integers) -> Integers:
    """Rankers beaten less rankers lost to. [n_rankers].

    Parameters
    ----------
    signs : [n_rankers, n_rankers]
        1 where the row's ranker is preferred to the column's, -1 where it is not.
    """
    return np.asarray(np.sign(signs).sum(axis=1), np.int64)


def cycles(signs: Integers) -> list[list[int]]:
    """Sets of rankers that beat each other in circles, largest first.

    Within such a set no order agrees with all preferences.

    Parameters
    ----------
    signs : [n_rankers, n_rankers]
        1 where the row's ranker beats the column's, -1 where it loses to it.

    Examples
    --------
    >>> cycles(np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]))
    [[0, 1, 2]]
    """
    n = len(signs)
    reaches = (signs > 0) | np.eye(n, dtype=np.bool_)
    for middle in range(n):
        reaches |= reaches[:, middle, None] & reaches[None, middle, :]
    mutual = reaches & reaches.T
    sets = {tuple(np.flatnonzero(row).tolist()) for row in mutual}
    found = [list(each) for each in sets if len(each) > 1]
    return sorted(found, key=lambda each: (-len(each), each))


def bradley_terry(wins: Floats, prior: float = 0.5) -> Floats:
    """Strengths whose ratios are the odds of being preferred.

    Parameters
    ----------
    wins : [n_rankers, n_rankers]
        How often the row's ranker was preferred to the column's.
    prior
        Wins and losses added to every pair, so that strengths stay finite.

    Returns
    -------
    [n_rankers]
        Log strengths of mean 0.
    """
    n = len(wins)
    counted = wins + prior * (1.0 - np.eye(n))
    games, won = counted + counted.T, counted.sum(axis=1)
    strengths = np.ones(n)
    for _ in range(N_ROUNDS):
        expected = games / (strengths[:, None] + strengths[None, :])
        np.fill_diagonal(expected, 0.0)
        following = won / expected.sum(axis=1)
        following /= np.exp(np.log(following).mean())
        change = np.abs(np.log(following / strengths)).max()
        strengths = following
        if change < TOLERANCE:
            break
    return np.asarray(np.log(strengths))
