"""Means over runs, their errors, and how far they are from what was published."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.lab.reproduction.plan import Cell, Job, checkpoints_of

Floats = npt.NDArray[np.float64]

OFFLINE, ONLINE, RECENT = "offline", "online", "recent"

SLACK_OFFLINE, SLACK_ONLINE = 0.005, 0.01
"""What counts as the same beside two standard errors: NDCG, and a share."""


class Figure(NamedTuple):
    """A mean over runs.

    `deviation` is that of runs, folds included, as tables print it; `error` is the
    standard error of the mean for these folds, so without their spread.
    """

    mean: float
    deviation: float
    error: float
    n_runs: int


class Difference(NamedTuple):
    """A mean against a published one.

    `p` is two-sided, from Welch's test in its normal limit over all runs. Against
    a printed mean it is conservative: of that only the total deviation is known, so
    the spread of the folds counts on both sides, though they are the same folds.
    """

    value: float
    error: float
    p: float
    is_same: bool


class Curves(NamedTuple):
    """Every run of a cell, and the checkpoints.

    `offline`, `online`, `recent` [n_folds, n_runs, n_checkpoints], NaN where missing.
    """

    impressions: list[int]
    offline: Floats
    online: Floats
    recent: Floats

    def figure(self, what: str) -> Figure:
        """The last point."""
        return figure_of(getattr(self, what)[:, :, -1])


def curves_of(
    cell: Cell, results: Mapping[str, dict[str, Any]], prefix: str, *,
    n_folds: int, n_runs: int,
) -> Curves:  # fmt: skip
    """The runs of a cell; those that are missing are left out of whole columns."""
    impressions = checkpoints_of(cell.n_impressions)
    arrays: dict[str, list[list[list[float]]]] = {
        what: [] for what in (OFFLINE, ONLINE, RECENT)
    }
    for fold in range(1, n_folds + 1):
        for what, folds in arrays.items():
            rows = []
            for run in range(n_runs):
                result = results.get(f"{prefix}/{Job(cell, fold, run).key()}")
                absent = [math.nan] * len(impressions)
                rows.append(result.get(what, absent) if result else absent)
            folds.append(rows)
    return Curves(impressions, *(np.array(found) for found in arrays.values()))


def figure_of(values: Floats) -> Figure:
    """Mean and errors of values [n_folds, n_runs]."""
    flat = values[np.isfinite(values)]
    if not len(flat):
        return Figure(math.nan, math.nan, math.nan, 0)
    deviation = float(flat.std(ddof=1)) if len(flat) > 1 else math.nan
    within = [
        fold[np.isfinite(fold)].var(ddof=1)
        for fold in values
        if np.isfinite(fold).sum() > 1
    ]
    error = math.sqrt(float(np.mean(within)) / len(flat)) if within else math.nan
    return Figure(float(flat.mean()), deviation, error, len(flat))


def difference_of(
    figure: Figure, mean: float, deviation: float, n_runs: int, *, slack: float
) -> Difference:
    """How a figure compares with a published mean over its own runs."""
    published_error = deviation / math.sqrt(n_runs)
    own_error = figure.deviation / math.sqrt(max(figure.n_runs, 1))
    error = math.hypot(published_error, own_error)
    value = figure.mean - mean
    p = math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else math.nan
    return Difference(value, error, p, abs(value) <= 2.0 * published_error + slack)


def paired_difference(one: Floats, other: Floats) -> Difference:
    """Mean of differences of paired runs, and its error.

    `one` and `other` [n_folds, n_runs]; pairs with NaN are left out.
    """
    gaps = (one - other).ravel()
    gaps = gaps[np.isfinite(gaps)]
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    value = float(gaps.mean()) if len(gaps) else math.nan
    p = math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else math.nan
    return Difference(value, error, p, p > 0.05)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with the same columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def curve_rows(cells: Mapping[Cell, Curves]) -> list[dict[str, Any]]:
    """Every checkpoint of every cell."""
    rows = []
    for cell, curves in cells.items():
        for at, impressions in enumerate(curves.impressions):
            offline = figure_of(curves.offline[:, :, at])
            online = figure_of(curves.online[:, :, at])
            rows.append(
                {
                    "form": cell.form,
                    "learner": cell.learner,
                    "users": cell.users,
                    "impressions": impressions,
                    "runs": offline.n_runs,
                    "offline": f"{offline.mean:.6f}",
                    "offline_deviation": f"{offline.deviation:.6f}",
                    "offline_error": f"{offline.error:.6f}",
                    "online": f"{online.mean:.4f}",
                    "online_deviation": f"{online.deviation:.4f}",
                    "online_error": f"{online.error:.4f}",
                }
            )
    return rows
