"""Means over runs and their errors, claims about them, and how both are told."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from models.arrays import Floats
from rankstream.lab.reproduction.engine import CellLike, Finished, checkpoints_of
from rankstream.lab.reproduction.picture import Point

HOLDS = {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]undecided[/]"}


class Figure(NamedTuple):
    """A mean over runs.

    `deviation` is that of runs, folds included, as tables print it; `error` is the
    standard error of the mean for these folds, so without their spread.
    """

    mean: float
    deviation: float
    error: float
    n_runs: int

    @property
    def spread(self) -> float:
        """Deviation of runs within folds."""
        return self.error * math.sqrt(max(self.n_runs, 1))

    def text(self, digits: int) -> str:
        """Mean and error as people read them; one run says nothing of its error."""
        if not self.n_runs:
            return "-"
        text = f"{self.mean:.{digits}f}"
        return text if math.isnan(self.error) else f"{text} ± {self.error:.{digits}f}"

    def columns(self, digits: int = 6, prefix: str = "") -> dict[str, str]:
        """Mean, deviation and error as columns of a file."""
        named = {"": self.mean, "_deviation": self.deviation, "_error": self.error}
        return {f"{prefix}{name}": f"{each:.{digits}f}" for name, each in named.items()}

    def point(self, x: float, half_band: float) -> Point:
        """Of a line; without a band where its width is unknown."""
        return Point(x, self.mean, half_band if math.isfinite(half_band) else 0.0)


class Difference(NamedTuple):
    """A mean against another one, its error, and whether both count as the same.

    `p` is two-sided, in the normal limit.
    """

    value: float
    error: float
    p: float
    is_same: bool


class Claim(NamedTuple):
    """What is claimed, by how much it is so, and whether it holds.

    `holds` is None where runs do not tell.
    """

    text: str
    gap: Difference
    holds: bool | None


class Curves(NamedTuple):
    """Figures of every run of a cell, by name.

    Those at checkpoints are [n_folds, n_runs, n_checkpoints], others [n_folds, n_runs];
    NaN where missing.
    """

    impressions: list[int]
    of: Mapping[str, Floats]

    def end(self, what: str) -> Floats:
        """At the last checkpoint, [n_folds, n_runs]."""
        return self.of[what][:, :, -1]

    def points(self, what: str) -> list[Point]:
        """A line with bands of one deviation of runs within folds."""
        return [
            (found := figure_of(self.of[what][:, :, at])).point(float(x), found.spread)
            for at, x in enumerate(self.impressions)
        ]


def curves_of(
    cell: CellLike, n_impressions: int, found: Finished, names: Sequence[str]
) -> Curves:
    """The runs of a cell that are there, at all checkpoints."""
    impressions = checkpoints_of(n_impressions)
    n = len(impressions)
    return Curves(impressions, {name: found.values(cell, name, n) for name in names})


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


def two_sided(value: float, error: float) -> float:
    """P of a difference as large by chance, in the normal limit; NaN for no error."""
    return math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else math.nan


def paired_difference(one: Floats, other: Floats) -> Difference:
    """Mean of differences of paired runs, and its error.

    `one` and `other` [n_folds, n_runs]; pairs with NaN are left out.
    """
    gaps = (one - other).ravel()
    gaps = gaps[np.isfinite(gaps)]
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    value = float(gaps.mean()) if len(gaps) else math.nan
    p = two_sided(value, error)
    return Difference(value, error, p, p > 0.05)


def claimed_gap(one: Floats, other: Floats) -> Difference:
    """The same for a claim: one pair alone has no error, and decides nothing.

    Parameters
    ----------
    one, other : [n_runs]
        Figures of the same runs; NaN where a run has none.
    """
    gap = paired_difference(one, other)
    n_pairs = int(np.isfinite(one - other).sum())
    return gap if n_pairs > 1 else gap._replace(error=math.nan)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with the same columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def figures_table(
    title: str,
    first: str,
    headings: Sequence[str],
    lines: Mapping[str, Sequence[Floats]],
    digits: int = 4,
) -> Table:
    """Lines as rows: means, and standard errors over runs for these folds."""
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, values in lines.items():
        table.add_row(name, *(figure_of(runs).text(digits) for runs in values))
    return table


def claim_row(claim: Claim) -> dict[str, Any]:
    """A claim as a row of a file."""
    gap = claim.gap
    return {
        "claim": claim.text,
        "difference": f"{gap.value:.5f}",
        "error": f"{gap.error:.5f}",
        "p": f"{gap.p:.3g}",
        "holds": "undecided" if claim.holds is None else claim.holds,
    }


def claims_table(claims: Sequence[Claim], title: str) -> Table:
    """Claims as people read them."""
    table = Table(title=title, title_justify="left")
    table.add_column("claim")
    for heading in ("difference", "95 % interval", "p", "holds"):
        table.add_column(heading, justify="right")
    for text, gap, holds in claims:
        low, high = gap.value - 1.96 * gap.error, gap.value + 1.96 * gap.error
        is_told = math.isfinite(gap.error)
        table.add_row(
            text,
            f"{gap.value:+.4f}",
            f"{low:+.4f} to {high:+.4f}" if is_told else "-",
            f"{gap.p:.2g}" if math.isfinite(gap.p) else "-",
            HOLDS[holds],
        )
    return table
