"""What is claimed of learning with interventions, by how much, and whether it holds."""

import math
from typing import NamedTuple

import numpy as np

from models.closed_loops.policy_log import AFFINE, AWARE, OBLIVIOUS, POLICY_AWARE
from rankstream.reproduction.interventions.figures import Floats, Found, curves_at
from rankstream.reproduction.interventions.plan import (
    BIASED_PDGD,
    COLTR,
    CONTINUOUS,
    DECAY,
    PDGD,
    SHARP,
    SOFT,
)
from rankstream.reproduction.interventions.runs import LOGGING, ON_TRAINING, TRAINED
from rankstream.reproduction.summary import Difference, figure_of, paired_difference

AHEAD, NEAR, BEHIND = 0.015, 0.01, 0.02
"""By how much interventions must help, may lag online learning, and none must."""

DROP = 0.005
"""From its best, which is more than noise of means makes."""


class Claim(NamedTuple):
    """What is claimed, by how much it is so, and whether it holds."""

    text: str
    gap: Difference
    holds: bool


def claims_of(found: Found) -> list[Claim]:
    """All claims of which the cells are there."""
    return [
        *_sharp_claims(found),
        *_method_claims(found),
        *_soft_claims(found),
        *_decay_claims(found),
    ]


def _sharp_claims(found: Found) -> list[Claim]:
    none, few, many = (curves_at(found, SHARP, AWARE, count) for count in (0, 50, 100))
    online = curves_at(found, SHARP, PDGD, CONTINUOUS)
    other = curves_at(found, SHARP, OBLIVIOUS, 50)
    claims = []
    if few and none:
        gap = paired_difference(few.end(), none.end())
        text = f"sharp: 50 interventions ahead of none by at least {AHEAD}"
        claims.append(Claim(text, gap, gap.value >= AHEAD))
        gap = paired_difference(few.end(LOGGING), none.end(LOGGING))
        text = "sharp: 50 interventions show better lists than none"
        claims.append(Claim(text, gap, gap.value - 2.0 * gap.error > 0.0))
    if few and other:
        gap = _spread_difference(few.end(), other.end())
        text = "sharp, 50: intervention-aware varies less than -oblivious"
        claims.append(Claim(text, gap, gap.value < 0.0))
    if many and online:
        gap = paired_difference(many.end(), online.end())
        text = f"sharp: 100 interventions within {NEAR} of online PDGD, or 2 errors"
        near = max(NEAR, 2.0 * gap.error)
        claims.append(Claim(text, gap, abs(gap.value) <= near))
    if none and online:
        gap = paired_difference(none.end(), online.end())
        text = f"sharp: no intervention behind online PDGD by {BEHIND}"
        claims.append(Claim(text, gap, gap.value <= -BEHIND))
    return claims


def _method_claims(found: Found) -> list[Claim]:
    claims = []
    for method, count in ((AFFINE, 0), (AFFINE, 50), (POLICY_AWARE, 0)):
        one, against = (
            curves_at(found, SHARP, each, count) for each in (AWARE, method)
        )
        if one and against:
            gap = paired_difference(one.end(), against.end())
            text = f"sharp, {count}: intervention-aware above {method}"
            claims.append(Claim(text, gap, gap.value - 2.0 * gap.error > 0.0))
    online = curves_at(found, SHARP, PDGD, CONTINUOUS)
    for method in (COLTR, BIASED_PDGD):
        worse = curves_at(found, SHARP, method, CONTINUOUS)
        if online and worse:
            gap = paired_difference(online.end(), worse.end())
            text = f"sharp: online PDGD above {method}"
            claims.append(Claim(text, gap, gap.value - 2.0 * gap.error > 0.0))
    return claims


def _soft_claims(found: Found) -> list[Claim]:
    few, none = (curves_at(found, SOFT, AWARE, count) for count in (50, 0))
    if not few or not none:
        return []
    gap = paired_difference(few.end(), none.end())
    text = f"soft: 50 interventions are not ahead of none by {AHEAD}"
    return [Claim(text, gap, gap.value < AHEAD)]


def _decay_claims(found: Found) -> list[Claim]:
    claims = []
    for count, named in ((0, "static logging"), (CONTINUOUS, "online")):
        curves = curves_at(found, DECAY, PDGD, count)
        if curves is None:
            continue
        for what, where in ((TRAINED, "held-out"), (ON_TRAINING, "training")):
            values = curves.of[what]
            best = int(np.nanmean(values, axis=(0, 1)).argmax())
            gap = paired_difference(values[:, :, best], values[:, :, -1])
            at = curves.impressions[best]
            text = f"PDGD net, {named}, {where}: falls from its best at {at:,}"
            is_fallen = gap.value - 2.0 * gap.error > 0.0 and gap.value > DROP
            claims.append(Claim(text, gap, is_fallen is (count == 0)))
    return claims


def _spread_difference(one: Floats, other: Floats) -> Difference:
    """Difference of deviations within folds, and its error for normal runs."""
    spreads, errors = [], []
    for values in (one, other):
        figure = figure_of(values)
        spread = figure.error * math.sqrt(max(figure.n_runs, 1))
        free = max(figure.n_runs - len(values), 1)
        spreads.append(spread)
        errors.append(spread / math.sqrt(2.0 * free))
    error = math.hypot(*errors)
    value = spreads[0] - spreads[1]
    p = math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else math.nan
    return Difference(value, error, p, p > 0.05)
