"""The largest likelihood of the position-based model, by Newton's method, compiled.

With examination theta of K ranks and relevance gamma of documents, all in (0, 1],

    log likelihood = sum over pairs of  c log(theta gamma)
                                        + (n - c) log(1 - theta gamma)

is concave in log theta and log gamma, so that there is one maximum and no wrong one.
Given theta, each document has its best gamma by itself; what is left is a concave
function of K numbers, whose slope and curvature are sums over pairs. All is the same
for theta * s and gamma / s: the largest theta is 1, which leaves gamma most room.

Pairs lie document by document: those of document d are offsets[d] .. offsets[d + 1].
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled

TOLERANCE = 1e-9
"""Share of a rank's clicks by which clicks expected there may miss those counted."""

MOST_STEPS = 200
"""Newton's method takes 5 to 15."""

LONGEST = 3.0
"""Step of a log theta: far from the maximum curvature says little."""

RIDGE = 1e-12
"""Share of a curvature that is added to it, and of clicks that it is at least."""

MOST_HALVINGS = 50
"""Of one step, before it is given up."""

ENOUGH = 1e-4
"""Share of the gain that the slopes promise with which a step is taken."""

CLOSE = 1e-14
"""The same for one document's clicks, so that its error is none of the ranks'."""

ROUNDING = 1e-13
"""Share of a log likelihood that may be lost by rounding."""


class Pairs(NamedTuple):
    """Counts of documents at ranks.

    Parameters
    ----------
    offsets : [n_documents + 1]
    rows : [n_pairs]
        Ranks from 0.
    missed : [n_pairs]
        How often the document was shown there and not clicked.
    clicks_of : [n_documents]
        Each above 0.
    clicks_at : [n_ranks]
        Each above 0.
    """

    offsets: Integers
    rows: Integers
    missed: Floats
    clicks_of: Floats
    clicks_at: Floats


class Fit(NamedTuple):
    """Where the likelihood is largest.

    Parameters
    ----------
    examination : [n_ranks]
        The largest is 1.
    relevance : [n_documents]
    log_likelihood
    slopes : [n_ranks]
        Clicks counted less clicks expected: the slope in log theta. 0, but above 0
        where theta is 1 and would be larger if it could.
    information : [n_ranks, n_ranks]
        On log theta, when the relevance of every document is unknown and unbounded.
    n_steps
    is_converged
        Whether all slopes are within `TOLERANCE`.
    """

    examination: Floats
    relevance: Floats
    log_likelihood: float
    slopes: Floats
    information: Floats
    n_steps: int
    is_converged: bool


def fit_position_based(pairs: Pairs, *, most_steps: int = MOST_STEPS) -> Fit:
    """The maximum likelihood of pairs that are connected through clicks."""
    shown_at = np.bincount(pairs.rows, pairs.missed, len(pairs.clicks_at))
    rates = pairs.clicks_at / (shown_at + pairs.clicks_at)
    logs = np.log(rates / rates.max())
    relevance = np.full(len(pairs.clicks_of), 0.5)
    now = _profile(pairs, np.exp(logs), relevance)
    n_steps = 0
    while not (is_converged := _is_over(pairs, logs, now[1])) and n_steps < most_steps:
        moved = _step(pairs, logs, now, relevance)
        if moved is None:
            break
        logs, now = moved
        n_steps += 1
    likelihood, slopes, _, information = now
    return Fit(
        np.exp(logs), relevance, likelihood, slopes, information, n_steps, is_converged
    )


Profile = tuple[float, Floats, Floats, Floats]


def _held(logs: Floats, slopes: Floats) -> npt.NDArray[np.bool_]:
    """Ranks that stay: those that would be larger than 1, or else the largest one.

    Slopes add up to what documents are short of, never below 0: where all others are
    0 that of the largest is not negative either.
    """
    held = (logs >= 0.0) & (slopes > 0.0)
    if not held.any():
        held[logs.argmax()] = True
    return held


def _is_over(pairs: Pairs, logs: Floats, slopes: Floats) -> bool:
    """Whether clicks expected at each rank are those counted, as far as may be."""
    off = np.where(_held(logs, slopes), 0.0, np.abs(slopes))
    return bool((off <= TOLERANCE * pairs.clicks_at).all())


def _step(
    pairs: Pairs, logs: Floats, now: Profile, relevance: Floats
) -> tuple[Floats, Profile] | None:
    """A step of Newton's method, halved until the likelihood does not fall."""
    likelihood, slopes, curvature, _ = now
    free = ~_held(logs, slopes)
    step = np.zeros(len(logs))
    # What is shown and clicked always has no curvature, and a slope up to its bound.
    inner = curvature[np.ix_(free, free)]
    scale = np.sqrt(np.maximum(inner.diagonal(), RIDGE * pairs.clicks_at[free]))
    inner = inner / np.outer(scale, scale) + RIDGE * np.eye(len(scale))
    step[free] = np.linalg.solve(inner, slopes[free] / scale) / scale
    step *= min(1.0, LONGEST / max(np.abs(step).max(), LONGEST))
    gain = float(slopes @ step)
    least = likelihood - ROUNDING * abs(likelihood)
    for _ in range(MOST_HALVINGS):
        further = logs + step
        # Both stay within bounds: one keeps all ratios, the other who is largest.
        for moved in (further - further.max(), np.minimum(further, 0.0)):
            found = _profile(pairs, np.exp(moved), relevance)
            if found[0] >= least + ENOUGH * gain:
                return moved, found
        step *= 0.5
        gain *= 0.5
    return None


def _profile(pairs: Pairs, examination: Floats, relevance: Floats) -> Profile:
    """Log likelihood, slopes, curvature within the bounds, and without them.

    `relevance` is where the search begins, and is changed to the best one.
    """
    n_ranks = len(examination)
    slopes = pairs.clicks_at.copy()
    curvature = np.zeros((n_ranks, n_ranks))
    information = np.zeros((n_ranks, n_ranks))
    likelihood = _fill(pairs, examination, relevance, slopes, curvature, information)
    likelihood += float(pairs.clicks_at @ np.log(examination))
    return likelihood, slopes, curvature, information


@compiled
def _fill(
    pairs: Pairs,
    examination: Floats,
    relevance: Floats,
    slopes: Floats,
    curvature: Floats,
    information: Floats,
) -> float:
    """Add up what all documents say; log theta's own share is left out."""
    total = 0.0
    weights = np.empty(examination.shape[0])
    for d in range(relevance.shape[0]):
        begin, end = pairs.offsets[d], pairs.offsets[d + 1]
        gamma = _best_relevance(pairs, examination, d, relevance[d])
        relevance[d] = gamma
        total += pairs.clicks_of[d] * np.log(gamma)
        for i in range(begin, end):
            p, n = examination[pairs.rows[i]] * gamma, pairs.missed[i]
            weights[i - begin] = 0.0
            if n > 0.0:
                if p >= 1.0:
                    return -np.inf
                odds = n * p / (1.0 - p)
                total += n * np.log1p(-p)
                slopes[pairs.rows[i]] -= odds
                weights[i - begin] = odds / (1.0 - p)
        rows, own = pairs.rows[begin:end], weights[: end - begin]
        _add_information(rows, own, gamma < 1.0, curvature)
        _add_information(rows, own, True, information)
    return total


@compiled
def _add_information(
    rows: Integers, weights: Floats, is_free: bool, information: Floats
) -> None:
    """Add that of one document, less what its relevance takes if it may move.

    It takes all but what ranks say of one another, which is added up as such: in a
    difference of large numbers a weak connection would be lost.
    """
    whole = weights.sum()
    for i in range(rows.shape[0]):
        if not is_free:
            information[rows[i], rows[i]] += weights[i]
        elif whole > 0.0:
            share = weights[i] / whole
            for j in range(i):
                both = share * weights[j]
                information[rows[i], rows[j]] -= both
                information[rows[j], rows[i]] -= both
                information[rows[i], rows[i]] += both
                information[rows[j], rows[j]] += both


@compiled
def _expected(
    pairs: Pairs, examination: Floats, d: int, gamma: float
) -> tuple[float, float]:
    """Sum of missed p / (1 - p) of a document, and its slope in log gamma."""
    expected, slope = 0.0, 0.0
    for i in range(pairs.offsets[d], pairs.offsets[d + 1]):
        if pairs.missed[i] > 0.0:
            p = examination[pairs.rows[i]] * gamma
            if p >= 1.0:
                return np.inf, np.inf
            odds = pairs.missed[i] * p / (1.0 - p)
            expected += odds
            slope += odds / (1.0 - p)
    return expected, slope


@compiled
def _best_relevance(pairs: Pairs, examination: Floats, d: int, gamma: float) -> float:
    """The relevance in (0, 1] with which expected clicks are those counted, else 1.

    Newton's method on the log of  sum of missed p / (1 - p)  against log gamma, which
    is convex with a slope of at least 1, within bounds that close in.
    """
    clicks = pairs.clicks_of[d]
    low, high, v = -np.inf, 0.0, np.log(gamma)
    for turn in range(MOST_STEPS):
        expected, slope = _expected(pairs, examination, d, np.exp(v))
        if expected == 0.0 or (v == 0.0 and expected <= clicks):
            return 1.0
        if expected == np.inf:
            high, v = v, 0.5 * (max(low, v - 1.0) + v)
            continue
        gap = np.log(expected / clicks)
        if abs(gap) <= CLOSE:
            break
        low, high = max(low, v - max(gap, 0.0)), min(high, v - min(gap, 0.0))
        moved = v - gap * expected / slope
        if moved < low or moved > high:
            moved = high if turn == 0 and gap < 0.0 else 0.5 * (low + high)
        if moved == v:
            break
        v = moved
    return float(np.exp(v))
