"""Weights that make preferences from clicks unbiased, compiled.

A list R was drawn from a Plackett-Luce model of n scores, and k of the n documents
are shown. R* is R with the documents at positions a < b exchanged. With

    e_x = exp(score at x),   S_x = e_x + e_(x+1) + ... + everything below the cut

the ratio of their probabilities has a closed form,

    P(R*) / P(R) = product over x = a+1 .. b of  S_x / (S_x without e_b  +  e_a)

and the weight is rho = P(R*) / (P(R) + P(R*)). Sums are built from the bottom up,
never by subtraction: at the score spreads of a trained ranker a difference of sums
holds no correct digit. Where exp itself would run out of range, all is done in
log-space.

References
----------
Oosterhuis & de Rijke (CIKM 2018), equations 5 to 7: gradient and rho.
"""

import math
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.click_preferences import n_compared
from models.kernels.compilation import compiled, inlined
from models.kernels.exponentials import (
    largest_of,
    log_sum,
    rest_log,
)
from models.learners.reversal_odds import fill_odds, fill_sums, parties_of, sums_of

WIDEST = 200.0
"""Spread of shown scores up to which products of plain floats are safe."""

MOST = 1e250
"""Odds against a reversal that are done again in log-space."""

SHORT = 16
"""Up to this length pairs are walked one by one, as it is not worth to prepare."""

SMALL_SHARE = 1e-100
"""Below it the slope of a preference is not made from a product of two shares."""


class Pairs(NamedTuple):
    """Which preferences count, and how.

    `all_observed` takes all shown documents as seen, not only those down to the one
    after the last click; without `weighted` rho is 1.
    """

    all_observed: bool
    weighted: bool


PLAIN = Pairs(False, True)
"""PDGD as it was published."""


@compiled
def derivative_of_preference(preferred: float, other: float) -> float:
    """Slope of P(preferred before other) in the difference of their scores."""
    small = math.exp(-abs(preferred - other))
    return small / ((1.0 + small) * (1.0 + small))


@compiled
def weight_in_log_space(shown: Floats, rest: float, a: int, b: int) -> float:
    """Rho of positions a < b at any spread.

    Parameters
    ----------
    shown : [k]
        Scores of the list, in its order.
    rest
        Log of the mass below.
    """
    below = rest
    for x in range(shown.shape[0] - 1, b, -1):
        below = log_sum(below, shown[x])
    mass = log_sum(below, shown[b])
    without = below
    ratio_log = mass - log_sum(without, shown[a])
    for x in range(b - 1, a, -1):
        mass = log_sum(mass, shown[x])
        without = log_sum(without, shown[x])
        ratio_log += mass - log_sum(without, shown[a])
    if ratio_log >= 0.0:
        return 1.0 / (1.0 + math.exp(-ratio_log))
    small = math.exp(ratio_log)
    return small / (1.0 + small)


@inlined
def walked_odds(
    normal: Floats, masses: Floats, without: Floats, a: int, b: int
) -> float:
    """P(R) / P(R*) of positions a < b, place by place.

    All factors are at most 1, or all at least 1.

    Parameters
    ----------
    normal, masses : [k], [k + 1]
        e_x and S_x.
    without : [k]
        S_x without e_b.
    """
    odds = 1.0
    own = normal[a]
    for x in range(a + 1, b + 1):
        odds *= (without[x] + own) / masses[x]
    return odds


@compiled
def fill_masses_without(normal: Floats, masses: Floats, b: int, out: Floats) -> None:
    """Masses S_x for x up to b without the document at b, from the bottom up.

    Parameters
    ----------
    normal, masses : [k], [k + 1]
        e_x and S_x.
    out : [k]
        Filled from 1 to b.
    """
    out[b] = masses[b + 1]
    for x in range(b - 1, 0, -1):
        out[x] = out[x + 1] + normal[x]


@inlined
def weight_of_pair(shown: Floats, rest: float, a: int, b: int, odds: float) -> float:
    """Rho of positions a < b; where the odds are hardly a number, in log-space.

    Parameters
    ----------
    shown : [k]
        Scores of the list, in its order.
    """
    if odds > MOST:
        return weight_in_log_space(shown, rest, a, b)
    return 1.0 / (1.0 + odds)


@inlined
def slope_of(present: Floats, near: Floats, x: int, y: int) -> float:
    """Slope of the preference between two.

    Parameters
    ----------
    present, near : [k]
        Scores, and exp(present - the largest).
    """
    if near[x] > SMALL_SHARE and near[y] > SMALL_SHARE:
        both = near[x] + near[y]
        slope: float = near[x] * near[y] / (both * both)
        return slope
    return derivative_of_preference(present[x], present[y])


@compiled
def add_pair_coefficients(  # noqa: C901, PLR0913  a kernel takes plain arrays
    shown: Floats,
    sizes: Floats,
    mass_below: float,
    rest: float,
    clicks: Flags,
    present: Floats,
    coefficients: Floats,
    pairs: Pairs,
) -> int:
    """Add every document's share of the gradient; returns the number of pairs.

    Parameters
    ----------
    shown : [k]
        Logged scores of the list, in its order.
    sizes : [k]
        exp(shown - c) for a c, or empty to do all in log-space.
    mass_below
        The sum of the same for the documents below the cut.
    rest
        Its log in the units of `shown`, for log-space.
    clicks : [k]
    present : [k]
        Scores of the same documents under the parameters that learn.
    coefficients : [k]
        Changed: + weight for the preferred document of a pair, - for the other.
    pairs
        Which of them count, and whether they are weighted.
    """
    end = clicks.shape[0] if pairs.all_observed else n_compared(clicks)
    near = np.exp(present - present.max())
    has_odds = pairs.weighted and sizes.shape[0] > 0
    if has_odds and end > SHORT:
        return sweep_pairs(
            shown, sizes, mass_below, rest, clicks, present, near, coefficients, end
        )
    masses = np.empty(sizes.shape[0] + 1)
    normal, without = np.empty(sizes.shape[0]), np.empty(sizes.shape[0])
    if has_odds:
        fill_sums(sizes, mass_below, normal, masses)
    n_pairs = 0
    for b in range(1, end):
        if has_odds:
            fill_masses_without(normal, masses, b, without)
        for a in range(b):
            if clicks[a] == clicks[b]:
                continue
            n_pairs += 1
            odds = 0.0
            if has_odds:
                odds = walked_odds(normal, masses, without, a, b)
            elif pairs.weighted:
                odds = np.inf
            weight = weight_of_pair(shown, rest, a, b, odds)
            weight *= slope_of(present, near, a, b)
            if clicks[a]:
                coefficients[a] += weight
                coefficients[b] -= weight
            else:
                coefficients[a] -= weight
                coefficients[b] += weight
    return n_pairs


@compiled
def sweep_pairs(  # noqa: PLR0913  a kernel takes plain arrays
    shown: Floats,
    sizes: Floats,
    mass_below: float,
    rest: float,
    clicks: Flags,
    present: Floats,
    near: Floats,
    coefficients: Floats,
    end: int,
) -> int:
    """The same for long lists: all pairs of one document at a time.

    Parameters
    ----------
    shown, sizes, clicks, present, coefficients : [k]
        As in `add_pair_coefficients`; here sizes are never empty.
    near : [k]
        exp(present - the largest).
    end
        No documents from this position on are compared.
    """
    parties = parties_of(clicks, end)
    n_others = parties.first[end]
    sums = sums_of(sizes, mass_below, parties, n_others)
    odds = np.empty(n_others)
    for x in range(end):
        if clicks[x] != parties.few:
            continue
        fill_odds(sums, parties, x, end, odds)
        total = 0.0
        for j in range(n_others):
            y = parties.others[j]
            weight = weight_of_pair(shown, rest, min(x, y), max(x, y), odds[j])
            weight *= slope_of(present, near, x, y)
            total += weight
            coefficients[y] += -weight if parties.few else weight
        coefficients[x] += total if parties.few else -total
    n_pairs: int = n_others * (end - n_others)
    return n_pairs


@compiled
def logged_pair_coefficients(
    scores: Floats,
    rows: Integers,
    clicks: Flags,
    present: Floats,
    coefficients: Floats,
    pairs: Pairs,
) -> int:
    """Add every shown document's share of the gradient; returns the number of pairs.

    Parameters
    ----------
    scores : [n]
        Logged scores of all candidates.
    rows : [k]
        Which of them were shown, in displayed order.
    clicks, present, coefficients : [k]
    pairs
        As for `add_pair_coefficients`.
    """
    k = rows.shape[0]
    # Only differences matter, and logs of sums round them away far from 0.
    relative = scores - largest_of(scores)
    is_shown = np.zeros(scores.shape[0], np.bool_)
    shown = np.empty(k)
    for x in range(k):
        is_shown[rows[x]] = True
        shown[x] = relative[rows[x]]
    rest = rest_log(relative, is_shown)
    is_plain = -shown.min() <= WIDEST
    sizes = np.exp(shown) if is_plain else np.empty(0)
    below = math.exp(rest)
    return add_pair_coefficients(
        shown, sizes, below, rest, clicks, present, coefficients, pairs
    )
