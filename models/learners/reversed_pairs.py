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
import numpy.typing as npt

from models.compilation import compiled
from models.exponentials import fill_exponentials
from models.preferences import n_compared

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

WIDEST = 200.0
"""Spread of shown scores up to which products of plain floats are safe."""

SMALL = 2.0**-400
LARGE = 2.0**400
"""Powers of two, so that bringing both products up again costs no digit."""

LEAST = 1e-250
"""Products below it are done again in log-space."""

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
def log_sum(one: float, other: float) -> float:
    """Log of the sum of two numbers given by their logs."""
    larger, smaller = max(one, other), min(one, other)
    if smaller == -np.inf:
        return larger
    return larger + math.log1p(math.exp(smaller - larger))


@compiled
def derivative_of_preference(preferred: float, other: float) -> float:
    """Slope of P(preferred before other) in the difference of their scores."""
    small = math.exp(-abs(preferred - other))
    return small / ((1.0 + small) * (1.0 + small))


@compiled
def rest_log(scores: Floats, is_shown: Flags) -> float:
    """Log of the mass of the documents below the cut."""
    n = scores.shape[0]
    top = -np.inf
    for d in range(n):
        if not is_shown[d]:
            top = max(top, scores[d])
    if top == -np.inf:
        return top
    lower = np.empty(n)
    for d in range(n):
        lower[d] = -np.inf if is_shown[d] else scores[d]
    sizes = np.empty(n)
    fill_exponentials(lower, top, sizes)
    total = 0.0
    for d in range(n):
        total += sizes[d]
    return top + math.log(total)


@compiled
def weight_in_log_space(shown: Floats, rest: float, a: int, b: int) -> float:
    """Rho of positions a < b at any spread; `rest` is the log of the mass below.

    `shown` are the scores of the list, in its order.
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


@compiled
def weight_of_pair(
    sizes: Floats, masses: Floats, without: Floats, a: int, b: int
) -> float:
    """Rho of positions a < b from plain floats, or -1 where that may be inexact.

    `sizes` are e_x and `masses` S_x, both over the mass of all documents, so that
    every factor is at most 1; `without` is S_x without e_b.
    """
    reversed_product = 1.0
    product = 1.0
    extra = sizes[a]
    for x in range(a + 1, b + 1):
        reversed_product *= masses[x]
        product *= without[x] + extra
        if reversed_product < SMALL and product < SMALL:
            reversed_product *= LARGE
            product *= LARGE
    if reversed_product < LEAST:
        return -1.0
    return reversed_product / (reversed_product + product)


@compiled
def normal_masses(sizes: Floats, mass_below: float) -> tuple[Floats, Floats]:
    """Sizes e_x and masses S_x of a list, over the mass of all documents."""
    k = sizes.shape[0]
    masses = np.empty(k + 1)
    masses[k] = mass_below
    for x in range(k - 1, -1, -1):
        masses[x] = masses[x + 1] + sizes[x]
    scale = 1.0 / masses[0] if k > 0 else 1.0
    normal = np.empty(k)
    for x in range(k):
        normal[x] = sizes[x] * scale
        masses[x] *= scale
    masses[k] *= scale
    return normal, masses


@compiled
def fill_masses_without(normal: Floats, masses: Floats, b: int, out: Floats) -> None:
    """Masses S_x for x up to b without the document at b, from the bottom up."""
    out[b] = masses[b + 1]
    for x in range(b - 1, 0, -1):
        out[x] = out[x + 1] + normal[x]


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
    is_plain = sizes.shape[0] > 0
    normal, masses = normal_masses(sizes, mass_below)
    without = np.empty(sizes.shape[0])
    near = np.exp(present - present.max())
    n_pairs = 0
    end = clicks.shape[0] if pairs.all_observed else n_compared(clicks)
    for b in range(1, end):
        if is_plain and pairs.weighted:
            fill_masses_without(normal, masses, b, without)
        for a in range(b):
            if clicks[a] == clicks[b]:
                continue
            n_pairs += 1
            weight = 1.0
            if pairs.weighted and is_plain:
                weight = weight_of_pair(normal, masses, without, a, b)
            if pairs.weighted and (weight < 0.0 or not is_plain):
                weight = weight_in_log_space(shown, rest, a, b)
            if near[a] > SMALL_SHARE and near[b] > SMALL_SHARE:
                both = near[a] + near[b]
                weight *= near[a] * near[b] / (both * both)
            else:
                weight *= derivative_of_preference(present[a], present[b])
            if clicks[a]:
                coefficients[a] += weight
                coefficients[b] -= weight
            else:
                coefficients[a] -= weight
                coefficients[b] += weight
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
    is_shown = np.zeros(scores.shape[0], np.bool_)
    shown = np.empty(k)
    for x in range(k):
        is_shown[rows[x]] = True
        shown[x] = scores[rows[x]]
    top = scores.max()
    rest = rest_log(scores, is_shown)
    is_plain = top - shown.min() <= WIDEST
    sizes = np.exp(shown - top) if is_plain else np.empty(0)
    below = math.exp(rest - top)
    return add_pair_coefficients(
        shown, sizes, below, rest, clicks, present, coefficients, pairs
    )
