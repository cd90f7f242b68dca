"""Curves of cells over their runs, and when some reach what others do."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.lab.closed_loops.policy_log import AWARE
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.interventions.plan import LONG, Cell, Job
from rankstream.lab.reproduction.interventions.runs import FIGURES, TRAINED
from rankstream.lab.reproduction.plan import checkpoints_of

Floats = npt.NDArray[np.float64]

N_RESAMPLES = 1_000


class Curves(NamedTuple):
    """Every run of a cell at its checkpoints.

    Each of `of`, by the names of `FIGURES`, is [n_folds, n_runs, n_checkpoints], NaN
    where missing; `production` [n_folds, n_runs] is where runs began.
    """

    impressions: list[int]
    of: dict[str, Floats]
    production: Floats

    def end(self, what: str = TRAINED) -> Floats:
        """At the last checkpoint, [n_folds, n_runs]."""
        return self.of[what][:, :, -1]


def curves_of(
    cell: Cell,
    results: Mapping[str, dict[str, Any]],
    prefix: str,
    *,
    n_folds: int,
    n_runs: int,
) -> Curves:
    """The runs of a cell that are there."""
    impressions = checkpoints_of(cell.n_impressions)
    shape = (n_folds, n_runs, len(impressions))
    of = {name: np.full(shape, np.nan) for name in FIGURES}
    production = np.full(shape[:2], np.nan)
    for fold in range(n_folds):
        for run in range(n_runs):
            result = results.get(f"{prefix}/{Job(cell, fold + 1, run).key()}")
            if result is not None:
                production[fold, run] = result["production"]
                for name in FIGURES:
                    of[name][fold, run] = result[name]
    return Curves(impressions, of, production)


Found = Mapping[Cell, Curves]


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
