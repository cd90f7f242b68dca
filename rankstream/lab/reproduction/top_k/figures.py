"""Runs of cells as arrays, tables and lines of a picture."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.table import Table

from rankstream.lab.reproduction.line_picture import Lines, Point, line_picture
from rankstream.lab.reproduction.summary import figure_of
from rankstream.lab.reproduction.top_k.plan import Cell, Job

Floats = npt.NDArray[np.float64]

NDCG, ARP = "ndcg", "arp"

NAMED = {NDCG: "NDCG@5", ARP: "average relevant position"}

DIGITS = {NDCG: 4, ARP: 3}

Runs = Mapping[Cell, Floats]
"""One metric of all runs of cells, [n_folds, n_runs] each; NaN where missing."""


class Axis(NamedTuple):
    """What cells differ in.

    Parameters
    ----------
    what
        "cutoff" or "n_clicks", of `Logging`.
    numbers
        Of it, rising.
    title
        What tables and pictures are of.
    """

    what: str
    numbers: tuple[int, ...]
    title: str

    @property
    def name(self) -> str:
        """In names of files."""
        return "clicks" if self.what == "n_clicks" else "shown"

    @property
    def heading(self) -> str:
        """Before each number."""
        return "" if self.what == "n_clicks" else "k = "

    def picture(self, title: str, panels: Mapping[str, Lines]) -> str:
        """Panels over its numbers."""
        is_clicks = self.what == "n_clicks"
        below = "clicks" if is_clicks else "documents shown"
        return line_picture(title, panels, below=below, is_log=is_clicks)


def runs_of(
    cells: Sequence[Cell],
    results: Mapping[str, dict[str, Any]],
    prefix: str,
    metric: str,
    *,
    n_folds: int,
    n_runs: int,
) -> dict[Cell, Floats]:
    """A metric of all runs."""
    found = {}
    for cell in cells:
        values = np.full((n_folds, n_runs), math.nan)
        for fold in range(n_folds):
            for run in range(n_runs):
                key = f"{prefix}/{Job(cell, fold + 1, run).key()}"
                values[fold, run] = results.get(key, {}).get(metric, math.nan)
        found[cell] = values
    return found


def laid_out(
    cells: Sequence[Cell], what: str, numbers: Sequence[int]
) -> dict[str, list[Cell]]:
    """By what a line is called, its cell at each number.

    One that does not vary is the same at all of them.
    """
    lines: dict[str, dict[int, Cell]] = {}
    for cell in cells:
        lines.setdefault(cell.label, {})[getattr(cell.logging, what)] = cell
    laid = {}
    for label, by_number in lines.items():
        only = next(iter(by_number.values()))
        laid[label] = [by_number.get(number, only) for number in numbers]
    return laid


def points_of(runs: Runs, cells: Sequence[Cell], axis: Axis) -> list[Point]:
    """A line with bands of two standard errors."""
    points = []
    for number, cell in zip(axis.numbers, cells, strict=True):
        figure = figure_of(runs[cell])
        spread = 2.0 * figure.error if math.isfinite(figure.error) else 0.0
        points.append(Point(float(number), figure.mean, spread))
    return points


def table_of(
    title: str,
    runs: Runs,
    lines: Mapping[str, Sequence[Cell]],
    axis: Axis,
    metric: str,
) -> Table:
    """Lines as rows: means, and standard errors over runs for these folds."""
    table = Table(title=title, title_justify="left")
    table.add_column("estimator")
    for number in axis.numbers:
        table.add_column(f"{axis.heading}{number:,}", justify="right", no_wrap=True)
    for label, cells in lines.items():
        table.add_row(label, *(_text(runs[cell], metric) for cell in cells))
    return table


def rows_of(runs: Runs, metric: str) -> dict[Cell, dict[str, Any]]:
    """Every cell as a row of a file."""
    rows = {}
    for cell, values in runs.items():
        figure = figure_of(values)
        rows[cell] = {
            "metric": metric,
            "estimator": cell.label,
            "loss": cell.loss,
            "shown": cell.logging.cutoff,
            "clicks": cell.logging.n_clicks,
            "runs": figure.n_runs,
            "mean": f"{figure.mean:.6f}",
            "deviation": f"{figure.deviation:.6f}",
            "error": f"{figure.error:.6f}",
        }
    return rows


def _text(values: Floats, metric: str) -> str:
    figure = figure_of(values)
    if not figure.n_runs:
        return "-"
    text = f"{figure.mean:.{DIGITS[metric]}f}"
    if math.isnan(figure.error):
        return text
    return f"{text} ± {figure.error:.{DIGITS[metric]}f}"
