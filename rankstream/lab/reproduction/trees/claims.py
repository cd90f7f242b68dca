"""What trees on corrected clicks are to reach, and whether they do.

Differences are over paired runs: rankers of one fold and run learn from the same
clicks. One pair alone has no error, and decides nothing. Of numbers of clicks that were
not asked for nothing is claimed.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import Floats
from rankstream.lab.reproduction.figures import Claim, claimed_gap
from rankstream.lab.reproduction.top_k.claims import NEAR, told
from rankstream.lab.reproduction.top_k.plan import NDCG
from rankstream.lab.reproduction.trees.plan import (
    LINEAR,
    OF_LABELS,
    OF_LISTS,
    OF_RATES,
    OURS,
    OURS_OF_LABELS,
    SELECTED,
)

SELECTS_FROM, COMPARED_AT, ENDS_AT = 10**5, 10**6, 10**8
"""Clicks of which something is claimed."""

ABOVE_RATES, ABOVE_LISTS = 0.02, 0.01
"""NDCG that trees on values are to be above others."""

RIGHT = 0.8
"""Of runs, in which the better of two kinds is to be selected."""

Runs = Mapping[str, Mapping[int, Floats]]
"""NDCG of rankers by their names and clicks, [n_folds, n_runs] each."""


def claims_of(
    runs: Runs, is_right: Mapping[int, Floats], counts: Sequence[int]
) -> list[Claim]:
    """All claims of the numbers of clicks `counts`.

    Parameters
    ----------
    is_right
        By clicks, whether the better of linear and trees was selected,
        [n_folds, n_runs].
    """
    claims: list[Claim] = []
    if COMPARED_AT in counts:
        claims += _compared(runs)
    if ENDS_AT in counts:
        for name in (OF_LABELS, OURS_OF_LABELS):
            claims.append(_not_below(runs, OURS, name, ENDS_AT))
    claims.append(_not_below(runs, OURS_OF_LABELS, OF_LABELS, counts[-1]))
    for count in (each for each in counts if each >= SELECTS_FROM):
        gap = claimed_gap(is_right[count], np.full_like(is_right[count], RIGHT))
        text = f"share of runs that select the better, over {RIGHT:g}{_after(count)}"
        claims.append(Claim(text, gap, told(gap, holds=gap.value >= -2.0 * gap.error)))
        claims += [_not_below(runs, SELECTED, name, count) for name in (LINEAR, OURS)]
    return claims


def _compared(runs: Runs) -> list[Claim]:
    ours, after = runs[OURS][COMPARED_AT], _after(COMPARED_AT)
    found = []
    for name, least in ((OF_RATES, ABOVE_RATES), (OF_LISTS, ABOVE_LISTS)):
        gap = claimed_gap(ours, runs[name][COMPARED_AT])
        holds = gap.value >= least and gap.value > 2.0 * gap.error
        text = f"{OURS} above {name} by {least:g}{after}"
        found.append(Claim(text, gap, told(gap, holds=holds)))
    gap = claimed_gap(ours, runs[OF_LISTS][COMPARED_AT])
    text = f"{OURS} not below {OF_LISTS} by 2 errors{after}"
    found.append(Claim(text, gap, told(gap, holds=gap.value >= -2.0 * gap.error)))
    return found


def _not_below(runs: Runs, one: str, other: str, count: int) -> Claim:
    """By more than what counts for nothing, or two errors."""
    gap = claimed_gap(runs[one][count], runs[other][count])
    holds = gap.value >= -max(NEAR[NDCG], 2.0 * gap.error)
    text = f"{one} not below {other}{_after(count)}"
    return Claim(text, gap, told(gap, holds=holds))


def _after(count: int) -> str:
    return f", after {count:,} clicks"
