"""What is claimed of logging policies, and whether it holds.

Figures of a pair are paired. Of squared errors it is the median over pairs that counts,
each over that of clicks on A/B's lists: errors of pairs differ by their size.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from rankstream.lab.reproduction.figures import (
    Claim,
    Difference,
    claimed_gap,
    two_sided,
)
from rankstream.lab.reproduction.interventions.claims import is_more
from rankstream.lab.reproduction.logopt.plan import (
    AWARE,
    ESTIMATED,
    INTERLEAVED,
    LOGOPT,
    OPTIMUM,
    RIVAL,
    UNIFORM,
    WITHOUT_RELEVANCE,
)

FROM = 100_000
"""Queries from which LogOpt is claimed to be ahead."""

MOST = (
    (OPTIMUM, 0.55), (LOGOPT, 0.75), (LOGOPT, 0.6), (AWARE, 0.75), (ESTIMATED, 0.85),
    (ESTIMATED, 0.7),
)  # fmt: skip
"""Squared error per sample over that on A/B's lists, at most; the second of a method is
a goal."""

TIMES_UNIFORM = 3.0
"""Squared error per sample of uniform lists over that of LogOpt, at least."""


class Pairs(NamedTuple):
    """Figures of all pairs of rankers.

    Parameters
    ----------
    counts
        Queries issued.
    differences : [n_pairs]
        In clicks per list.
    squared, absolute, binary
        By method, [n_pairs, n_counts]; squared errors are those per sample.
    """

    counts: list[int]
    differences: Floats
    squared: Mapping[str, Floats]
    absolute: Mapping[str, Floats]
    binary: Mapping[str, Floats]

    def over_rival(self, method: str) -> Floats:
        """Squared errors per sample over the rival's, [n_pairs, n_counts]."""
        return np.asarray(self.squared[method] / self.squared[RIVAL])


class Median(NamedTuple):
    """Of pairs, and its standard error by the order of them."""

    value: float
    error: float


def median_of(values: Floats) -> Median:
    """The median, and the error of which two are its interval of 95 % by ranks.

    `values` [n]; of fewer than eight there is no such interval, and the error is NaN.

    References
    ----------
    David & Nagaraja (Order Statistics, 2003), section 7.1.
    """
    ordered, n = np.sort(values), len(values)
    value = float(np.median(values)) if n else math.nan
    # As many are below it as coins show heads: two deviations are the root of n.
    low = math.floor(0.5 * n - math.sqrt(n))
    if low < 1:
        return Median(value, math.nan)
    return Median(value, float(ordered[n - 1 - low] - ordered[low]) / 4.0)


def claims_of(pairs: Pairs) -> list[Claim]:
    """All that is claimed of these pairs."""
    return [
        *_bounds(pairs),
        _of_uniform(pairs),
        _of_relevance(pairs),
        *_of_interleaving(pairs),
    ]


def _bounds(pairs: Pairs) -> list[Claim]:
    claims = []
    for method, most in MOST:
        for at, count in enumerate(pairs.counts):
            is_last = at == len(pairs.counts) - 1
            if is_last if method == OPTIMUM else count >= FROM:
                told = median_of(pairs.over_rival(method)[:, at])
                text = f"{method}: at most {most:g} of A/B's lists at {count:,}"
                claims.append(_claim(text, told._replace(value=told.value - most), -1))
    return claims


def _of_uniform(pairs: Pairs) -> Claim:
    times = pairs.squared[UNIFORM][:, -1] / pairs.squared[LOGOPT][:, -1]
    told = median_of(times)
    text = f"uniform: at least {TIMES_UNIFORM:g} times {LOGOPT}"
    return _claim(text, told._replace(value=told.value - TIMES_UNIFORM), 1)


def _of_relevance(pairs: Pairs) -> Claim:
    """Where rankers differ says most of it, what is relevant adds to that."""
    both = [pairs.over_rival(each)[:, -1] for each in (WITHOUT_RELEVANCE, OPTIMUM)]
    gap = claimed_gap(*both)
    return Claim("scores per query: zeta adds something", gap, is_more(gap))


def _of_interleaving(pairs: Pairs) -> list[Claim]:
    """Errors that stay, against those of LogOpt in the end."""
    least = min(INTERLEAVED, key=lambda each: pairs.binary[each][:, -1].mean())
    claims = []
    for method in (LOGOPT, ESTIMATED):
        gap = claimed_gap(pairs.binary[least][:, -1], pairs.binary[method][:, -1])
        text = f"{method}: fewer wrong in the end than by {least}, the least"
        claims.append(Claim(text, gap, is_more(gap)))
    return claims


def _claim(text: str, told: Median, side: int) -> Claim:
    """A median above 0, or below it; undecided where that may be by chance."""
    p = two_sided(told.value, told.error)
    gap = Difference(told.value, told.error, p, not p < 0.05)
    ahead = side * told.value
    if math.isnan(told.error):
        return Claim(text, gap, None)
    holds = True if ahead >= 0.0 else False if ahead < -2.0 * told.error else None
    return Claim(text, gap, holds)
