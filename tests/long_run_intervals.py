"""How often intervals hold what is planted: `python -m tests.long_run_intervals FILE`.

Takes about half a core-hour. Each line that is appended to FILE is one cell:
intervals of items by how many clicks are expected of each, and curves of lists of PDGD
that learned from their clicks. Cells that FILE has already are left out, so a run that
was cut short goes on. `python -m tests.long_run_intervals FILE N` takes N logs a curve.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.bias.registry import ESTIMATORS
from models.estimators import intervals
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog
from models.estimators.intervals import Intervals, jackknife_intervals
from models.estimators.intervention_aware import ItemSums
from models.estimators.item_intervals import points_of_items
from models.estimators.registry import ESTIMATORS as ESTIMATORS_OF_ITEMS
from tests.covered_items import KINDS, Floats, held, log_of, sums_of
from tests.online_lists import online_lists
from tests.planted_bias import with_examination

N_ITEMS = 50_000
N_LOGS = 400
GROUPS = (4, 20)
CLICKS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0)
N_RANKS = 3

NAMED = (
    "affine-shown", "intervention-oblivious", "intervention-aware", "policy-aware",
    "affine", "rerank", "self-normalised", "doubly-robust",
)  # fmt: skip
N_NAMED, N_GROUPS = 4_000, 20
NAMED_CLICKS = (1.0, 3.0, 5.0, 8.0, 20.0, 40.0)

RATES = (0.1, 0.5, 1.0)
SPREADS = (0.05, 0.2, 0.4)

Cells = Iterator[tuple[str, Callable[[], dict[str, Any]]]]


def cells(n_logs: int) -> Cells:
    """By name: what is to be computed of each."""
    for kind in KINDS:
        for n_groups in GROUPS:
            name = f"items, {kind}, {n_groups} groups"
            yield name, partial(items, kind, n_groups)
    for estimator in NAMED:
        yield f"items, {estimator} by name", partial(named, estimator)
    for rate in RATES:
        for spread in SPREADS:
            for share in (0.0, 0.5):
                name = f"curve, rate {rate}, relevance .5 -+ {spread}"
                name += ", of fixed lists beside" if share else ""
                yield name, partial(curves, rate, spread, share, n_logs)


def items(kind: str, n_groups: int) -> dict[str, Any]:
    """Shares of intervals that hold relevance, by clicks that are expected."""
    found: dict[str, Any] = {"items": N_ITEMS, "expected clicks": CLICKS}
    rng = np.random.default_rng(7)
    every = [sums_of(KINDS[kind], each, n_groups, N_ITEMS, rng) for each in CLICKS]
    found["dispersion"] = [_dispersion(each) for each in every]
    of_few = [held(jackknife_intervals(each)) for each in every]
    of_groups = [held(_of_groups(each)) for each in every]
    for name, figures in (("", of_few), (", of groups alone", of_groups)):
        found[f"hold{name}"] = [round(each.held, 4) for each in figures]
        found[f"there{name}"] = [round(each.told, 4) for each in figures]
    return found


def named(estimator: str) -> dict[str, Any]:
    """The same of an estimator by name, of lists of two policies and users alone."""
    found: dict[str, Any] = {"items": N_NAMED, "expected clicks": NAMED_CLICKS}
    entry = ESTIMATORS_OF_ITEMS[estimator]
    has_trust = "trust" in entry.corrects
    for name, few in (("", intervals.FEW), (", of groups alone", 0)):
        figures = []
        for each in NAMED_CLICKS:
            rng = np.random.default_rng(7)
            log = log_of(each, N_GROUPS, N_NAMED, rng, has_trust=has_trust)
            figures.append(held(intervals_by(estimator, log, few)))
        found[f"hold{name}"] = [round(each.held, 4) for each in figures]
        found[f"there{name}"] = [round(each.told, 4) for each in figures]
    return found


def intervals_by(
    estimator: str, log: tuple[ClickLog, Floats, BiasCurve], few: int
) -> Intervals:
    """Intervals of an estimator by name, where so many clicks are few."""
    points, _ = points_of_items(
        ESTIMATORS_OF_ITEMS[estimator].estimator, *log, tuple(range(N_GROUPS)), few=few
    )
    return points.intervals


def _of_groups(sums: ItemSums) -> Intervals:
    """As if clicks were many."""
    least, intervals.FEW = intervals.FEW, 0
    try:
        return jackknife_intervals(sums)
    finally:
        intervals.FEW = least


def _dispersion(sums: ItemSums) -> float:
    clicked = sums.clicked.sum(axis=0)
    return round(float(clicked.var() / clicked.mean()), 2)


def curves(rate: float, spread: float, share: float, n_logs: int) -> dict[str, Any]:
    """Shares of logs whose intervals hold ratios, by rank from the second on."""
    planted = with_examination(N_RANKS)
    holds, known, values = np.zeros((3, n_logs, N_RANKS))
    for seed in range(n_logs):
        lists = online_lists(
            planted, 60, np.random.default_rng(seed), n_queries=40,
            share_fixed=share, rate=rate, spread=spread,
        )  # fmt: skip
        is_wanted = lists.is_fixed if share else ~lists.is_fixed
        found = ESTIMATORS["position"].estimate(lists.views(is_wanted), N_RANKS)
        known[seed] = np.isfinite(found.alpha_low)
        holds[seed] = found.alpha_low <= planted.ratios
        holds[seed] *= planted.ratios <= found.alpha_high
        values[seed] = found.alpha
    held_by_rank = holds.sum(axis=0) / np.maximum(known.sum(axis=0), 1.0)
    error = np.nanmean(values, axis=0) - planted.ratios
    return {
        "logs": n_logs,
        "with an interval": known.mean(axis=0)[1:].round(4).tolist(),
        "hold": held_by_rank[1:].round(4).tolist(),
        "error of mean": error[1:].round(4).tolist(),
    }


def main(path: Path, n_logs: int) -> None:
    """Append the cells that are not there yet."""
    done = path.read_text().splitlines() if path.exists() else []
    names = {json.loads(line)["cell"] for line in done}
    for name, figures in cells(n_logs):
        if name not in names:
            with path.open("a") as file:
                file.write(json.dumps({"cell": name, **figures()}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else N_LOGS)
