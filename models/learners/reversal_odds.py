"""Odds against the reversal of pairs, for one document and all its rivals at once.

With the sums of `models.learners.reversed_pairs`, those of positions a < b are

    P(R) / P(R*) = product over x = a+1 .. b of  (S_x without e_b  +  e_a) / S_x

Every factor depends on all of a, b and x, so that nothing of one pair's product can
be had from another's: e_a - e_b, the only thing that they would share, must not be
formed. A document's products with all its rivals go up the list together instead,
several in one instruction, and what S_x is without e_b is summed on the way.

All factors of one pair are at most 1, or all are at least 1. So products leave the
range of numbers only where the odds themselves do.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled


class Parties(NamedTuple):
    """Clicked and unclicked documents of a list, the fewer against the others.

    Parameters
    ----------
    few
        What is said of the fewer in `clicks`.
    others : [k]
        Positions of the others, of which there are `first[end]`.
    first : [k + 1]
        How many of the others stand above a position.
    """

    few: bool
    others: Integers
    first: Integers


class Sums(NamedTuple):
    """What products are made of, over the mass of all documents.

    Parameters
    ----------
    sizes, masses : [k], [k + 1]
        e_x and S_x.
    per_mass : [k]
        1 / S_x.
    theirs, without : [k]
        e_x of the others, and room for S_x without it.
    """

    sizes: Floats
    masses: Floats
    per_mass: Floats
    theirs: Floats
    without: Floats


@compiled
def parties_of(clicks: Flags, end: int) -> Parties:
    """Who is compared with whom among the documents above `end`.

    Parameters
    ----------
    clicks : [k]
    """
    n_clicks = 0
    for x in range(end):
        n_clicks += clicks[x]
    few = 2 * n_clicks <= end
    k = clicks.shape[0]
    numbers = np.empty(2 * k + 1, np.int64)
    others, first = numbers[:k], numbers[k:]
    first[0] = 0
    for x in range(end):
        n = first[x]
        if clicks[x] != few:
            others[n] = x
            n += 1
        first[x + 1] = n
    return Parties(few, others, first)


@compiled
def fill_sums(sizes: Floats, mass_below: float, normal: Floats, masses: Floats) -> None:
    """Fill sizes e_x and masses S_x over the mass of all documents.

    Parameters
    ----------
    sizes : [k]
        exp(scores - c) for a c.
    mass_below
        The sum of the same for the documents below the cut.
    normal, masses : [k], [k + 1]
        Filled with e_x and S_x.
    """
    k = sizes.shape[0]
    masses[k] = mass_below
    for x in range(k - 1, -1, -1):
        masses[x] = masses[x + 1] + sizes[x]
    scale = 1.0 / masses[0]
    masses[k] *= scale
    for x in range(k):
        normal[x] = sizes[x] * scale
        masses[x] *= scale


@compiled
def sums_of(sizes: Floats, mass_below: float, parties: Parties, n_others: int) -> Sums:
    """What the products of a list are made of.

    Parameters
    ----------
    sizes : [k]
        As in `fill_sums`.
    """
    k = sizes.shape[0]
    numbers = np.empty(5 * k + 1)
    normal, masses = numbers[:k], numbers[k : 2 * k + 1]
    per_mass = numbers[2 * k + 1 : 3 * k + 1]
    theirs, without = numbers[3 * k + 1 : 4 * k + 1], numbers[4 * k + 1 :]
    fill_sums(sizes, mass_below, normal, masses)
    for x in range(k):
        per_mass[x] = 1.0 / masses[x]
    for j in range(n_others):
        theirs[j] = normal[parties.others[j]]
    return Sums(normal, masses, per_mass, theirs, without)


@compiled
def fill_odds(sums: Sums, parties: Parties, place: int, end: int, odds: Floats) -> None:
    """Fill the odds against the reversal of a document and each of the others.

    Parameters
    ----------
    place
        The document's position.
    end
        No documents from this position on are compared.
    odds : [n_others]
        Filled, for as many as there are others.
    """
    fill_odds_above(sums, parties, place, odds)
    fill_odds_below(sums, parties, place, end, odds)


@compiled
def fill_odds_above(sums: Sums, parties: Parties, place: int, odds: Floats) -> None:
    """Those of the others above, for all of whom the document is the lower one.

    Arguments are as in `fill_odds`.
    """
    first = parties.first
    odds[: first[place]] = 1.0
    without = sums.masses[place + 1]
    for x in range(place, 0, -1):
        factor = sums.per_mass[x]
        for j in range(first[x]):
            odds[j] *= (without + sums.theirs[j]) * factor
        without += sums.sizes[x - 1]


@compiled
def fill_odds_below(
    sums: Sums, parties: Parties, place: int, end: int, odds: Floats
) -> None:
    """Those of the others below, each of whom joins where it stands.

    Arguments are as in `fill_odds`.
    """
    first = parties.first
    own = sums.sizes[place]
    for x in range(end - 1, place, -1):
        factor, size = sums.per_mass[x], sums.sizes[x]
        joined = first[x + 1]
        for j in range(joined, first[end]):
            sums.without[j] += size
            odds[j] *= (sums.without[j] + own) * factor
        if joined > first[x]:
            sums.without[joined - 1] = sums.masses[x + 1]
            odds[joined - 1] = (sums.masses[x + 1] + own) * factor
