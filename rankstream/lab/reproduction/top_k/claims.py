"""What chapter 7 says of its estimators and losses, and whether it holds here.

Differences are over paired runs: cells of one fold and run have one production ranker.
Of average relevant positions less is better, and differences are turned around. One
pair alone has no error, and decides nothing.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from models.arrays import Floats
from rankstream.lab.reproduction.figures import Claim, Difference, claimed_gap
from rankstream.lab.reproduction.top_k.plan import ARP, LABELS, NDCG, Cell

Runs = Mapping[Cell, Floats]
"""One metric of all runs of cells, [n_folds, n_runs] each; NaN where missing."""

NEAR = {NDCG: 0.01, ARP: 0.1}
"""Differences that count for nothing."""

NEAR_DCG = 0.01
"""The same of DCG in clicks."""

LEVEL = 0.95
"""Of runs, that two errors of a difference are to cover."""

AWARE, NO_CUTOFF = "policy-aware", "no cutoff"
AT_ONE = "oblivious, randomised", "affine, randomised"
BIASED = "oblivious", "rerank", "affine"


def claims_over_cutoffs(
    figures: Runs,
    lines: Mapping[str, Sequence[Cell]],
    cutoffs: Sequence[int],
    claimed: Collection[int],
    metric: str = NDCG,
) -> list[Claim]:
    """At numbers of documents shown, with as many clicks as there are.

    Parameters
    ----------
    lines
        Cells at each of `cutoffs`.
    claimed
        Those of them of which something is said.
    """
    said = _Said(figures, metric)
    aware = {
        k: said.runs[cell]
        for k, cell in zip(cutoffs, lines[AWARE], strict=True)
        if k in claimed
    }
    if not aware:
        return []
    every = np.mean([*aware.values()], axis=0)
    full = said.runs[lines[LABELS][0]]
    for k, one in aware.items():
        said.near(f"policy-aware at {k} as at all k", one, every)
        said.no_worse(f"policy-aware at {k} not below full information", one, full)
    for label, cells in lines.items():
        if not label.startswith(BIASED):
            continue
        for k, one in aware.items():
            other = said.runs[cells[cutoffs.index(k)]]
            if k == 1 and label in AT_ONE:
                # Each document is as likely as any other to be the one.
                said.near(f"{label} at 1 as policy-aware", other, one)
            else:
                said.above(f"policy-aware above {label} at {k}", one, other)
    return said.claims


def claims_over_clicks(
    figures: Runs,
    lines: Mapping[str, Sequence[Cell]],
    counts: Sequence[int],
    *,
    is_cut: bool,
) -> list[Claim]:
    """Who ends up near what is possible, and who stays where clicks do not help.

    `is_cut`: most lists are longer than what is shown; else nobody stays behind.
    """
    said = _Said(figures, NDCG)
    last, before = counts[-1], counts[-2] if len(counts) > 1 else counts[-1]
    full = said.runs[lines[LABELS][-1]]
    for label in (AWARE, NO_CUTOFF):
        text = f"{label} after {last:,} clicks not below full information"
        said.no_worse(text, said.runs[lines[label][-1]], full)
    for label, cells in lines.items():
        if is_cut and label.startswith(BIASED) and last != before:
            one, other = said.runs[cells[-1]], said.runs[cells[-2]]
            said.near(f"{label} after {last:,} clicks as after {before:,}", one, other)
            text = f"policy-aware above {label} after {last:,} clicks"
            said.above(text, said.runs[lines[AWARE][-1]], one)
    return said.claims


def claims_over_losses(
    is_within: Sequence[Floats],
    lost: Sequence[Floats],
    gained: Floats,
    counts: Sequence[int],
) -> list[Claim]:
    """Whether selection finds the best loss, within its error; and what it is worth.

    With few clicks another may be selected, at a cost; with many there is none. Errors
    are large then, and most choices are within them: so it must also gain something.

    Parameters
    ----------
    is_within : [n_folds, n_runs]
        By the number of clicks, whether the best loss is within two errors of the
        selected one.
    lost : [n_folds, n_runs]
        True DCG that the selected one lacks, likewise.
    gained : [n_folds, n_runs]
        True DCG of the selected one less the mean of all, after the most clicks.
    """
    claims: list[Claim] = []
    for count, values in zip(counts, is_within, strict=True):
        gap = claimed_gap(values, np.full_like(values, LEVEL))
        text = f"share of runs within 2 errors of the best, over {LEVEL:g}"
        text = f"{text}, after {count:,} clicks"
        claims.append(Claim(text, gap, told(gap, holds=gap.value >= -2.0 * gap.error)))
    after = f"after {counts[-1]:,} clicks"
    gap = claimed_gap(lost[-1], np.zeros_like(lost[-1]))
    text = f"the selected loss lacks no DCG@5 {after}"
    claims.append(Claim(text, gap, told(gap, holds=gap.value <= NEAR_DCG)))
    gap = claimed_gap(gained, np.zeros_like(gained))
    text = f"the selected loss above one drawn at random, DCG@5 {after}"
    claims.append(Claim(text, gap, told(gap, holds=gap.value - 2.0 * gap.error > 0.0)))
    return claims


def told(gap: Difference, *, holds: bool) -> bool | None:
    """Nothing is where there is no error."""
    return None if math.isnan(gap.error) else holds


class _Said:
    """Claims about runs of which more is better."""

    def __init__(self, figures: Runs, metric: str) -> None:
        sign = -1.0 if metric == ARP else 1.0
        self.runs = {cell: sign * values for cell, values in figures.items()}
        self.claims: list[Claim] = []
        self._near = NEAR[metric]
        self._metric = metric

    def near(self, text: str, one: Floats, other: Floats) -> None:
        gap = claimed_gap(one, other)
        self._add(text, gap, holds=abs(gap.value) <= self._slack(gap))

    def no_worse(self, text: str, one: Floats, other: Floats) -> None:
        gap = claimed_gap(one, other)
        self._add(text, gap, holds=gap.value >= -self._slack(gap))

    def above(self, text: str, one: Floats, other: Floats) -> None:
        gap = claimed_gap(one, other)
        self._add(text, gap, holds=gap.value - 2.0 * gap.error > 0.0)

    def _slack(self, gap: Difference) -> float:
        return max(self._near, 2.0 * gap.error)

    def _add(self, text: str, gap: Difference, *, holds: bool) -> None:
        text = f"{self._metric.upper()}: {text}"
        self.claims.append(Claim(text, gap, told(gap, holds=holds)))
