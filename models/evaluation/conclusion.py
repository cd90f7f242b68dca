"""What the preferences of one method allow to conclude about its rankers.

Intervals of all pairs hold together at 1 - alpha: each is made for alpha over the
number of pairs (Bonferroni). Only those `to_come` and `came` may be looked at more than
once. A ranker is better by both: better for sessions to come, as far as their number
tells, and, without any doubt about sessions, for those that came.

References
----------
All rankers in one order, from the preferences of pairs: Copeland (1951); Bradley &
Terry (1952), fitted as in Hunter (2004).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from models.arrays import Floats, Integers
from models.evaluation.confidence_sequence import half_widths
from models.evaluation.session_sequence import session_intervals
from models.evaluation.sums import (
    LOG_SCALE,
    SCALE,
    PreferenceSums,
    n_pairs_of,
    pairs_of,
    skew,
)

PRIOR = 0.5
"""Wins and losses added to every pair, so that strengths stay finite."""

N_ROUNDS, TOLERANCE = 10_000, 1e-10


class Conclusion(NamedTuple):
    """What holds of each pair, in the order of `sums`, and of each ranker.

    `mean` [n_pairs] is the preference of a pair's first ranker over its second. The
    intervals around it `to_come`, `came`, `fixed` and `sessions` [n_pairs, 2] have an
    infinite end where nothing can be said. `evidence` [n_rankers, n_rankers] holds
    natural logarithms of evidence that row is better than column. `copeland` and
    `bradley_terry` [n_rankers] go by means, as `cycles` do; `decided_cycles` by
    intervals that exclude 0. `best` is the ranker that is better than every other.
    """

    mean: Floats
    to_come: Floats
    came: Floats
    fixed: Floats
    sessions: Floats
    evidence: Floats
    copeland: Integers
    bradley_terry: Floats
    cycles: list[list[int]]
    decided_cycles: list[list[int]]
    best: int | None


def conclude(
    sums: PreferenceSums, alpha: float, *, planned: float, typical_square: float
) -> Conclusion:
    """Intervals, evidence and standings.

    Parameters
    ----------
    alpha
        Of all pairs together.
    planned
        Impressions for which intervals are narrowest.
    typical_square
        Of one impression's preference.
    """
    n = sums.n_rankers
    each = alpha / n_pairs_of(n)
    mean = sums.mean()
    to_come = session_intervals(sums, each, planned)
    came = half_widths(sums, each, typical_square * planned)
    is_better = (to_come[:, 0] > 0.0) & (mean > came)
    is_worse = (to_come[:, 1] < 0.0) & (mean < -came)
    decided = skew(np.where(is_better, 1.0, np.where(is_worse, -1.0, 0.0)), n)
    signs = np.sign(skew(mean, n)).astype(np.int64)
    wins = np.zeros((n, n))
    first, second = pairs_of(n)
    wins[first, second], wins[second, first] = sums.counts.T
    best = [i for i in range(n) if (np.delete(decided[i], i) > 0).all()]
    return Conclusion(
        mean=mean,
        to_come=to_come,
        came=_around(mean, came),
        fixed=_around(mean, fixed_half_widths(sums, each)),
        sessions=_around(mean, clustered_half_widths(sums, each)),
        evidence=log_e_values(sums),
        copeland=copeland(signs),
        bradley_terry=bradley_terry(wins),
        cycles=cycles(signs),
        decided_cycles=cycles(decided.astype(np.int64)),
        best=best[0] if best else None,
    )


def _around(mean: Floats, half: Floats) -> Floats:
    """Both ends of intervals of these half widths, [n_pairs, 2]."""
    return np.stack([mean - half, mean + half], axis=1)


def log_e_values(sums: PreferenceSums) -> Floats:
    """Logarithm of the mean wealth over all bets, by who is bet on against whom.

    Evidence that one ranker is ever better, as the wealth of a gambler. Under the
    hypothesis that n is never better than m, that is, that the mean preference for n
    given everything before is 0 or less at each impression, bets on n lose on average:
    the wealth is a supermartingale that begins at 1, and exceeds 1 / alpha ever with
    probability at most alpha. It says nothing about the size of the difference, nor
    that n is better *now*.

    Returns
    -------
    [n_rankers, n_rankers]
        Element (n, m): evidence that n was better than m at some time.

    References
    ----------
    Waudby-Smith & Ramdas (JRSS B 2024), section 4; Shafer (JRSS A 2021).
    """
    logs = sums.wealth / LOG_SCALE
    top = logs.max(axis=2, keepdims=True)
    mean = top[..., 0] + np.log(np.exp(logs - top).mean(axis=2))
    found = np.zeros((sums.n_rankers, sums.n_rankers))
    first, second = pairs_of(sums.n_rankers)
    found[first, second] = mean[:, 0]
    found[second, first] = mean[:, 1]
    return found


def fixed_half_widths(sums: PreferenceSums, alpha: float) -> Floats:
    """Half of each pair's interval if impressions are independent. [n_pairs].

    For a sample size that was fixed beforehand: do not peek at it, nor at
    `clustered_half_widths`.

    References
    ----------
    Chapelle, Joachims, Radlinski & Yue (TOIS 2012), for interleaving.
    """
    n = int(sums.impressions.sum())
    if n < 2:
        return np.full(len(sums.counts), np.inf)
    squares = sums.squares_by_class().sum(axis=1)
    variance = np.maximum(squares / n - sums.mean() ** 2, 0.0) * n / (n - 1)
    return np.asarray(ndtri(1.0 - alpha / 2.0) * np.sqrt(variance / n))


def clustered_half_widths(sums: PreferenceSums, alpha: float) -> Floats:
    """Half of each pair's interval if only sessions are independent. [n_pairs].

    Groups of whole sessions are the clusters: the variance is that of their totals
    around what their sizes make expected, and Student's t has one degree of freedom
    less than there are groups.

    References
    ----------
    Cameron & Miller (2015).
    """
    has_any = sums.impressions > 0
    n_groups, n = int(has_any.sum()), int(sums.impressions.sum())
    if n_groups < 2:
        return np.full(len(sums.counts), np.inf)
    totals = sums.totals[has_any] / SCALE
    expected = sums.impressions[has_any, None] * sums.mean()
    spread = ((totals - expected) ** 2).sum(axis=0) * n_groups / (n_groups - 1)
    quantile = stdtrit(n_groups - 1, 1.0 - alpha / 2.0)
    return np.asarray(quantile * np.sqrt(spread) / n)


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


def bradley_terry(wins: Floats) -> Floats:
    """Strengths whose ratios are the odds of being preferred.

    Parameters
    ----------
    wins : [n_rankers, n_rankers]
        How often the row's ranker was preferred to the column's.

    Returns
    -------
    [n_rankers]
        Log strengths of mean 0.
    """
    n = len(wins)
    counted = wins + PRIOR * (1.0 - np.eye(n))
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
