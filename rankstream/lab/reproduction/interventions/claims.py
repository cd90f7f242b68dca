"""What is claimed of learning with interventions, by how much, and whether it holds.

A claim that something is more holds where the mean over paired runs is as much as
claimed, and more than two errors from nothing; it does not hold where two errors more
would not do either. Else runs do not tell.
"""

import math
from typing import NamedTuple

import numpy as np

from rankstream.lab.closed_loops.policy_log import (
    AFFINE,
    AWARE,
    OBLIVIOUS,
    POLICY_AWARE,
)
from rankstream.lab.reproduction.interventions.figures import Floats, Found, curves_at
from rankstream.lab.reproduction.interventions.plan import (
    BIASED_PDGD,
    COLTR,
    CONTINUOUS,
    DECAY,
    PDGD,
    SHARP,
    SOFT,
)
from rankstream.lab.reproduction.interventions.runs import LOGGING, ON_TRAINING, TRAINED
from rankstream.lab.reproduction.summary import Difference, paired_difference

AHEAD, NEAR, BEHIND = 0.015, 0.01, 0.02
"""By how much interventions must help, may lag online learning, and none must."""

BEFORE = (1_000, 10_000)
"""Lists after which it is said too, as interventions save lists before all."""

DROP = 0.005
"""From its best, which is more than noise of means makes."""


class Claim(NamedTuple):
    """What is claimed, by how much it is so, and whether it holds.

    `holds` is None where runs do not tell.
    """

    text: str
    gap: Difference
    holds: bool | None


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
                gap = _gap(few.of[TRAINED][:, :, at], none.of[TRAINED][:, :, at])
                text = "sharp: 50 interventions ahead of none by at least "
                text += f"{AHEAD} after {impressions:,} lists"
                claims.append(Claim(text, gap, is_more(gap, AHEAD)))
        gap = _gap(few.end(LOGGING), none.end(LOGGING))
        text = "sharp: 50 interventions show better lists than none"
        claims.append(Claim(text, gap, is_more(gap)))
    if few and other:
        gap = spread_difference(other.end(), few.end())
        text = "sharp, 50: intervention-oblivious varies more than -aware"
        claims.append(Claim(text, gap, is_more(gap)))
    for method, served in ((AWARE, many), (PDGD, curves_at(found, SHARP, PDGD, 100))):
        if served and online:
            gap = _gap(served.end(), online.end())
            text = f"sharp, 100: {method} within {NEAR} of online PDGD, or 2 errors"
            near = max(NEAR, 2.0 * gap.error)
            holds = abs(gap.value) <= near if gap.error > 0.0 else None
            claims.append(Claim(text, gap, holds))
    if none and online:
        gap = _gap(online.end(), none.end())
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
            gap = _gap(one.end(), against.end())
            text = f"sharp, {count}: intervention-aware above {method}"
            claims.append(Claim(text, gap, is_more(gap)))
    online = curves_at(found, SHARP, PDGD, CONTINUOUS)
    for method in (COLTR, BIASED_PDGD):
        worse = curves_at(found, SHARP, method, CONTINUOUS)
        if online and worse:
            gap = _gap(online.end(), worse.end())
            text = f"sharp: online PDGD above {method}"
            claims.append(Claim(text, gap, is_more(gap)))
    return claims


def _soft_claims(found: Found) -> list[Claim]:
    few, none = (curves_at(found, SOFT, AWARE, count) for count in (50, 0))
    if not few or not none:
        return []
    gap = _gap(few.end(), none.end())
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
            gap = _gap(values[:, :, best], values[:, :, -1])
            falls = is_more(gap, DROP)
            said = "falls"
            if count == CONTINUOUS:
                said = "does not fall"
                falls = None if falls is None else not falls
            at = curves.impressions[best]
            text = f"PDGD net, {named}, {where}: {said} from its best at {at:,}"
            claims.append(Claim(f"{text} by {DROP}", gap, falls))
    return claims


def _gap(one: Floats, other: Floats) -> Difference:
    """Mean of differences of paired runs; one pair alone has no error."""
    gap = paired_difference(one, other)
    n_pairs = int(np.isfinite(one - other).sum())
    return gap if n_pairs > 1 else gap._replace(error=math.nan)


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
    p = math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else math.nan
    return Difference(value, error, p, p > 0.05)
