"""What is claimed of learning with interventions, and whether it holds.

A claim that something is more holds where the mean over paired runs is as much as
claimed, and more than two errors from nothing; it does not hold where two errors more
would not do either. Else runs do not tell.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from rankstream.lab.closed_loops.policy_log import (
    AFFINE,
    AWARE,
    OBLIVIOUS,
    POLICY_AWARE,
)
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.figures import (
    Claim,
    Curves,
    Difference,
    claimed_gap,
    two_sided,
)
from rankstream.lab.reproduction.interventions.plan import (
    BIASED_PDGD,
    COLTR,
    CONTINUOUS,
    DECAY,
    LONG,
    PDGD,
    SHARP,
    SOFT,
    Cell,
)
from rankstream.lab.reproduction.interventions.runs import LOGGING, ON_TRAINING, TRAINED

Found = Mapping[Cell, Curves]

N_RESAMPLES = 1_000

AHEAD, NEAR, BEHIND = 0.015, 0.01, 0.02
"""By how much interventions must help, may lag online learning, and none must."""

BEFORE = (1_000, 10_000)
"""Lists after which it is said too, as interventions save lists before all."""

DROP = 0.005
"""From its best, which is more than noise of means makes."""


def claims_of(found: Found) -> list[Claim]:
    """All claims of which the cells are there."""
    return [
        *_sharp_claims(found),
        *_method_claims(found),
        *_soft_claims(found),
        *_decay_claims(found),
    ]


def is_more(gap: Difference, least: float = 0.0) -> bool | None:
    """Whether a difference is `least` or more, and not by chance.

    `least` is not negative.
    """
    if gap.value >= least and gap.value > 2.0 * gap.error:
        return True
    # Without an error no comparison is true, and nothing is decided.
    return False if gap.value + 2.0 * gap.error < least else None


def is_within(gap: Difference, most: float) -> bool | None:
    """Whether a difference is less than `most` either way, errors included."""
    size, error = abs(gap.value), 2.0 * gap.error
    if size + error < most:
        return True
    return False if size - error > most else None


def _sharp_claims(found: Found) -> list[Claim]:
    none, few, many = (curves_at(found, SHARP, AWARE, count) for count in (0, 50, 100))
    online = curves_at(found, SHARP, PDGD, CONTINUOUS)
    other = curves_at(found, SHARP, OBLIVIOUS, 50)
    claims = []
    if few and none:
        end = few.impressions[-1]
        for at, impressions in enumerate(few.impressions):
            if impressions in (*BEFORE, end):
                gap = claimed_gap(few.of[TRAINED][:, :, at], none.of[TRAINED][:, :, at])
                text = "sharp: 50 interventions ahead of none by at least "
                text += f"{AHEAD} after {impressions:,} lists"
                claims.append(Claim(text, gap, is_more(gap, AHEAD)))
        gap = claimed_gap(few.end(LOGGING), none.end(LOGGING))
        text = "sharp: 50 interventions show better lists than none"
        claims.append(Claim(text, gap, is_more(gap)))
    if few and other:
        gap = spread_difference(other.end(TRAINED), few.end(TRAINED))
        text = "sharp, 50: intervention-oblivious varies more than -aware"
        claims.append(Claim(text, gap, is_more(gap)))
    for method, served in ((AWARE, many), (PDGD, curves_at(found, SHARP, PDGD, 100))):
        if served and online:
            gap = claimed_gap(served.end(TRAINED), online.end(TRAINED))
            text = f"sharp, 100: {method} within {NEAR} of online PDGD, or 2 errors"
            near = max(NEAR, 2.0 * gap.error)
            holds = abs(gap.value) <= near if gap.error > 0.0 else None
            claims.append(Claim(text, gap, holds))
    if none and online:
        gap = claimed_gap(online.end(TRAINED), none.end(TRAINED))
        text = f"sharp: online PDGD ahead of no intervention by at least {BEHIND}"
        claims.append(Claim(text, gap, is_more(gap, BEHIND)))
    return claims


def _method_claims(found: Found) -> list[Claim]:
    claims = []
    for method, count in ((AFFINE, 0), (AFFINE, 50), (POLICY_AWARE, 0)):
        one, against = (
            curves_at(found, SHARP, each, count) for each in (AWARE, method)
        )
        if one and against:
            gap = claimed_gap(one.end(TRAINED), against.end(TRAINED))
            text = f"sharp, {count}: intervention-aware above {method}"
            claims.append(Claim(text, gap, is_more(gap)))
    online = curves_at(found, SHARP, PDGD, CONTINUOUS)
    for method in (COLTR, BIASED_PDGD):
        worse = curves_at(found, SHARP, method, CONTINUOUS)
        if online and worse:
            gap = claimed_gap(online.end(TRAINED), worse.end(TRAINED))
            text = f"sharp: online PDGD above {method}"
            claims.append(Claim(text, gap, is_more(gap)))
    return claims


def _soft_claims(found: Found) -> list[Claim]:
    few, none = (curves_at(found, SOFT, AWARE, count) for count in (50, 0))
    if not few or not none:
        return []
    gap = claimed_gap(few.end(TRAINED), none.end(TRAINED))
    text = f"soft: 50 interventions within {AHEAD} of none, errors included"
    return [Claim(text, gap, is_within(gap, AHEAD))]


def _decay_claims(found: Found) -> list[Claim]:
    claims = []
    for count, named in ((0, "static logging"), (CONTINUOUS, "online")):
        curves = curves_at(found, DECAY, PDGD, count)
        if curves is None:
            continue
        for what, where in ((TRAINED, "held-out"), (ON_TRAINING, "training")):
            values = curves.of[what]
            best = int(np.nanmean(values, axis=(0, 1)).argmax())
            gap = claimed_gap(values[:, :, best], values[:, :, -1])
            falls = is_more(gap, DROP)
            said = "falls"
            if count == CONTINUOUS:
                said = "does not fall"
                falls = None if falls is None else not falls
            at = curves.impressions[best]
            text = f"PDGD net, {named}, {where}: {said} from its best at {at:,}"
            claims.append(Claim(f"{text} by {DROP}", gap, falls))
    return claims


def spread_difference(one: Floats, other: Floats) -> Difference:
    """Difference of deviations of runs within folds, and its error.

    The error is that of normal runs, which are paired: what both share of their
    deviations lessens it, by the square of their correlation.

    Parameters
    ----------
    one, other : [n_folds, n_runs]
        Pairs with NaN are left out, and folds with one pair.
    """
    both = np.stack([one, other], axis=-1)
    pairs = [fold[np.isfinite(fold).all(axis=1)] for fold in both]
    rests = [fold - fold.mean(axis=0) for fold in pairs if len(fold) > 1]
    if not rests:
        return Difference(math.nan, math.nan, math.nan, False)
    rest = np.concatenate(rests)
    free = len(rest) - len(rests)
    moments = rest.T @ rest / free
    spreads = np.sqrt(np.diag(moments))
    shared = moments[0, 1] ** 2 / spreads.prod() if spreads.all() else 0.0
    squared = (moments.trace() - 2.0 * shared) / (2.0 * free)
    error = math.sqrt(max(squared, 0.0))
    value = float(spreads[0] - spreads[1])
    p = two_sided(value, error)
    return Difference(value, error, p, p > 0.05)


def curves_at(found: Found, part: str, method: str, count: int) -> Curves | None:
    """Those of a method and its interventions, trained by the policy gradient."""
    for cell, curves in found.items():
        is_it = (cell.part, cell.method, cell.n_interventions) == (part, method, count)
        if is_it and cell.loss in ("", POLICY_GRADIENT):
            return curves
    return None


class Matched(NamedTuple):
    """How many impressions few interventions need to do as well as more do earlier.

    Parameters
    ----------
    level
        Mean NDCG that the few reach in `impressions`.
    earlier
        Impressions after which the more were as good; infinite where they never were.
    low, high
        Of the ratio, by resampling runs: 95 %. 0 where they never were as good: then
        it is somewhere below 1.
    """

    level: float
    impressions: int
    earlier: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """How many times as many impressions; 0 where it is somewhere below 1."""
        return self.impressions / self.earlier


def matched(found: Found, *, rng: np.random.Generator) -> Matched | None:
    """5 interventions beside 50, over the long part; None where runs are missing."""
    few, many = (curves_at(found, LONG, AWARE, count) for count in (5, 50))
    if not few or not many:
        return None
    pairs = [
        curves.of[TRAINED].reshape(-1, len(curves.impressions))
        for curves in (few, many)
    ]
    is_there = np.isfinite(pairs[0]).all(axis=1) & np.isfinite(pairs[1]).all(axis=1)
    one, other = (pair[is_there] for pair in pairs)
    if not len(one):
        return None
    end = few.impressions[-1]
    reached = []
    for _ in range(N_RESAMPLES):
        drawn = rng.integers(len(one), size=len(one))
        level = float(one[drawn, -1].mean())
        found_at = reached_at(few.impressions, other[drawn].mean(axis=0), level)
        reached.append(end / found_at)
    level = float(one[:, -1].mean())
    earlier = reached_at(few.impressions, other.mean(axis=0), level)
    low, high = np.quantile(reached, [0.025, 0.975])
    return Matched(level, end, earlier, float(low), float(high))


def reached_at(impressions: list[int], values: Floats, level: float) -> float:
    """After how many impressions values first are at a level; infinite if never.

    Between checkpoints along the logarithm of impressions.

    Parameters
    ----------
    values : [n_checkpoints]

    Examples
    --------
    >>> reached_at([100, 10_000], np.array([0.0, 1.0]), 0.5)
    1000.0
    """
    above = np.flatnonzero(values >= level)
    if not len(above):
        return math.inf
    at = int(above[0])
    if at == 0:
        return float(impressions[0])
    share = (level - values[at - 1]) / (values[at] - values[at - 1])
    low, high = (math.log(impressions[i]) for i in (at - 1, at))
    return float(round(math.exp(low + share * (high - low)), 6))
