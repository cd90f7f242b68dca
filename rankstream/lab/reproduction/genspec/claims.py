"""What is claimed of policies that bounds choose, and whether it holds here.

Differences are between policies of the same run. One run alone has no error, and
decides nothing. Bounds that are never to be below the logging policy are held to the
number of lists at which they do worst.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from rankstream.lab.reproduction.figures import Claim, Difference, claimed_gap
from rankstream.lab.reproduction.genspec.plan import (
    ALL_LISTS,
    ANY_TIME,
    CLOSED,
    CONFIDENCES,
    GENERAL,
    HOTFIX,
    LOGGING,
    ONE_LOOK,
    PIE,
    SEA,
    SPECIAL,
    TESTS,
    bounded,
    ruled,
)
from rankstream.lab.reproduction.interventions.claims import is_more, reached_at

CLEAR, NOISY = 0.2, 0.025
"""Slopes of clicks of which something is claimed."""

NEAR, AHEAD = 0.01, 0.03
"""NDCG that specialisation may be ahead of bounds at the end, and by which the bound
that holds at any time is ahead of one look before."""

SOON, SOONER = 300, 3_000
"""Lists of a query after which bandits are, and after which it is."""

SAFE = (
    *(bounded(ONE_LOOK, each) for each in CONFIDENCES),
    *(bounded(ANY_TIME, each) for each in CONFIDENCES if each >= 0.5),
)
"""Never below what logged. At a confidence of .01 any time may be: it hardly bounds."""

SURE = bounded(ANY_TIME, CONFIDENCES[-1])
"""The bound by which rules are compared."""

SHARES = (0.5, 0.9)
"""Of what specialisation gains in the end, by which delays are told."""


class Curves(NamedTuple):
    """Figures of all runs of one kind of users.

    Parameters
    ----------
    slope
        Of clicks.
    counts
        Lists of each query.
    train, unseen
        NDCG on queries with and without clicks by policy, [n_folds, n_runs, n_counts];
        NaN where a run is missing.
    """

    slope: float
    counts: Sequence[int]
    train: Mapping[str, Floats]
    unseen: Mapping[str, Floats]

    def gaps(self, one: str, other: str) -> list[Difference]:
        """Of two policies on queries with clicks, after each number of lists."""
        return [
            claimed_gap(self.train[one][..., at], self.train[other][..., at])
            for at in range(len(self.counts))
        ]


def claims_of(curves: Curves) -> list[Claim]:
    """All that is claimed of the runs of one kind of users."""
    claims = [*_safe_claims(curves), *_end_claims(curves)]
    gap = curves.gaps(LOGGING, PIE)[0]
    claims.append(Claim("PIE starts below logging", gap, is_more(gap)))
    if curves.slope == NOISY:
        gap = curves.gaps(LOGGING, SPECIAL)[0]
        text = "specialisation starts below logging"
        claims.append(Claim(text, gap, is_more(gap)))
    if curves.slope == CLEAR:
        claims += _clear_claims(curves)
    return [
        claim._replace(text=f"slope {curves.slope:g}: {claim.text}") for claim in claims
    ]


def _safe_claims(curves: Curves) -> list[Claim]:
    claims = []
    for name in SAFE:
        gaps = curves.gaps(name, LOGGING)
        at = int(np.argmin([gap.value + 2.0 * gap.error for gap in gaps]))
        text = f"{name}: never below logging; worst at {curves.counts[at]:,}"
        claims.append(Claim(text, gaps[at], _is_not_below(gaps[at])))
    return claims


def _is_not_below(gap: Difference) -> bool | None:
    """Within two errors; without an error nothing is decided."""
    return None if math.isnan(gap.error) else gap.value >= -2.0 * gap.error


def _end_claims(curves: Curves) -> list[Claim]:
    """Against SEA and generalisation, on queries without clicks, and by rules."""
    last = f"at {curves.counts[-1]:,}"
    gap = curves.gaps(SURE, ruled(SURE, CLOSED))[-1]
    text = f"{SURE}: above the rule that keeps no list {last}"
    claims = [Claim(text, gap, is_more(gap))]
    for name in (bounded(ANY_TIME, 0.5), bounded(ONE_LOOK, 0.5)):
        gap = curves.gaps(name, GENERAL)[-1]
        claims.append(Claim(f"{name}: above generalisation {last}", gap, is_more(gap)))
        gap = claimed_gap(curves.unseen[name][..., -1], curves.unseen[GENERAL][..., -1])
        text = f"{name}: unseen queries as by generalisation {last}"
        claims.append(Claim(text, gap, _is_near(gap)))
    for confidence in CONFIDENCES[1:]:
        one, other = bounded(ONE_LOOK, confidence), bounded(SEA, confidence)
        gaps = curves.gaps(one, other)
        at = int(np.argmax([gap.value for gap in gaps]))
        text = f"{one} above {other}, most at {curves.counts[at]:,}"
        claims.append(Claim(text, gaps[at], is_more(gaps[at])))
    return claims


def _clear_claims(curves: Curves) -> list[Claim]:
    """How late bounds are where clicks are clear."""
    claims = []
    last = f"at {curves.counts[-1]:,}"
    for name in (bounded(ONE_LOOK, 0.5), bounded(ANY_TIME, 0.95)):
        gap = curves.gaps(SPECIAL, name)[-1]
        text = f"{name}: within {NEAR:g} of specialisation {last}"
        claims.append(Claim(text, gap, _is_near(gap)))
    if SOON in curves.counts:
        for name in (PIE, HOTFIX):
            gap = curves.gaps(name, SURE)[curves.counts.index(SOON)]
            text = f"{name}: ahead of {SURE} by {AHEAD:g} at {SOON:,}"
            claims.append(Claim(text, gap, is_more(gap, AHEAD)))
    if SOONER in curves.counts:
        at = curves.counts.index(SOONER)
        for confidence in CONFIDENCES[1:]:
            one, other = bounded(ANY_TIME, confidence), bounded(ONE_LOOK, confidence)
            gap = curves.gaps(one, other)[at]
            text = f"{one}: ahead of {other} by {AHEAD:g} at {SOONER:,}"
            claims.append(Claim(text, gap, is_more(gap, AHEAD)))
    return claims


def _is_near(gap: Difference) -> bool | None:
    """Within `NEAR`; without an error nothing is decided."""
    return None if math.isnan(gap.error) else abs(gap.value) <= NEAR


class Delay(NamedTuple):
    """After how many lists of a query a policy has parts of what there is to gain.

    Parameters
    ----------
    policy
    lists
        By `SHARES`; infinite where it never has.
    """

    policy: str
    lists: Sequence[float]


def delays_of(curves: Curves) -> list[Delay]:
    """How late policies are: without lists that decide, with them, and by each bound.

    What there is to gain is from the logging policy to specialisation in the end.
    """
    means = {
        name: np.nanmean(values, axis=(0, 1)) for name, values in curves.train.items()
    }
    low, high = float(means[LOGGING][-1]), float(means[ALL_LISTS][-1])
    counts = list(curves.counts)
    return [
        Delay(
            name,
            [
                reached_at(counts, means[name], low + share * (high - low))
                for share in SHARES
            ],
        )
        for name in (ALL_LISTS, SPECIAL, PIE, HOTFIX, *TESTS)
    ]
