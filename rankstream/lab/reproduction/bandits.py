"""Regret of bandits of one query, and what it costs to look at clicks now and then.

One query with ten items and lists of three, whose bias is known. PIE's regret grows
with the logarithm of the lists, and without its last slot with the lists themselves.
"""

import argparse
import csv
import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from models.arrays import Floats
from models.bandits.position_pie import SHARE
from rankstream.lab.closed_loops.bandit_loop import (
    cascade_regret,
    hotfix_regret,
    pie_regret,
)
from rankstream.lab.reproduction.engine import run_over
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted

TABLE = "bandits"

RATES = np.linspace(0.5, 0.05, 10)
"""P(click | examined) of the items."""

EXAMINATION = np.array([0.9, 0.6, 0.3])
"""P(examined) by rank, as in Lagree, Vernade & Cappe (2016), section 6."""

POINTS = (1_000, 10_000, 100_000, 1_000_000)
"""Lists."""

DELAYS = (1, 1_000, 10_000)
"""Lists between two looks at clicks."""

N_RUNS = 10

MOST_GROWTH, LEAST_WITHOUT = 1.5, 5.0
"""How much regret grows at most from a tenth of the lists on, with the slot that tries;
and at least without it."""

PIE, WITHOUT, HOTFIX, CASCADE = "PIE", "PIE without its slot", "hotfix", "KL-UCB"


class Cell(NamedTuple):
    """A row of the table: a bandit, and how many lists lie between two looks."""

    bandit: str
    every: int

    @property
    def name(self) -> str:
        """As it is printed."""
        users = " (cascade)" if self.bandit == CASCADE else ""
        delay = f", each {self.every:,} lists" if self.every > 1 else ""
        return f"{self.bandit}{users}{delay}"


CELLS = (
    *(Cell(PIE, every) for every in DELAYS),
    Cell(WITHOUT, 1),
    Cell(HOTFIX, 1),
    *(Cell(CASCADE, every) for every in DELAYS),
)


class Job(NamedTuple):
    """One run of a cell."""

    cell: Cell
    run: int


def regret_of(points: tuple[int, ...], seed: int, job: Job) -> tuple[Job, Floats]:
    """Regret of one run after so many lists, [n_points]."""
    cell = job.cell
    own = [seed, job.run, CELLS.index(cell)]
    rng, at = np.random.default_rng(own), np.array(points)
    # Which item is the best is not told by its number, which breaks no tie either.
    rates = rng.permutation(RATES)
    if cell.bandit == CASCADE:
        return job, cascade_regret(rates, len(EXAMINATION), at, cell.every, rng)
    if cell.bandit == HOTFIX:
        return job, hotfix_regret(rates, EXAMINATION, at, rng)[0]
    share = SHARE if cell.bandit == PIE else 0.0
    return job, pie_regret(rates, EXAMINATION, at, cell.every, share, rng)


def run(arguments: argparse.Namespace) -> int:
    """Run all, print and write the table; 1 where a claim does not hold.

    Raises
    ------
    ValueError
        Where there are too few lists or runs.
    """
    n_runs = N_RUNS if arguments.runs is None else arguments.runs
    last = arguments.impressions or POINTS[-1]
    if n_runs < 1 or last < 1:
        raise ValueError(
            f"--runs and --impressions must be at least 1; got {n_runs} and {last}"
        )
    points = (*(point for point in POINTS if point < last), last)
    # The longest come first, so that no process is left with one of them at the end.
    jobs = [Job(*each) for each in itertools.product(CELLS[::-1], range(n_runs))]
    found: dict[Cell, list[Floats]] = {cell: [] for cell in CELLS}
    with ProgressLine("runs", total=len(jobs), start=0, unit="runs") as line:
        work = partial(regret_of, points, arguments.seed)
        for number, (job, regret) in enumerate(
            run_over(work, jobs, arguments.processes), 1
        ):
            found[job.cell].append(regret)
            line.show(number)
    means = {cell: np.mean(runs, axis=0) for cell, runs in found.items()}
    folder = arguments.out or Path("reproduction") / TABLE
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"{TABLE}.csv", points, found)
    console = Console()
    console.print(table_of(points, found))
    claims = claims_of(means) if last == POINTS[-1] else {}
    for claim, holds in claims.items():
        console.print(f"{claim}: {'yes' if holds else 'no'}", highlight=False)
    return int(not all(claims.values()))


def growth_of(mean: Floats) -> float:
    """How many times as much it is after the last lists as at the point before.

    Parameters
    ----------
    mean : [n_points]
        Regret, a mean over runs.
    """
    return float(mean[-1] / mean[-2])


def claims_of(means: Mapping[Cell, Floats]) -> dict[str, bool]:
    """What is to hold of ten times as many lists, and whether it does."""
    found = {
        f"{cell.name} grows by at most {MOST_GROWTH} times":
        growth_of(means[cell]) <= MOST_GROWTH
        for cell in (Cell(PIE, 1), Cell(CASCADE, 1))
    }  # fmt: skip
    cell = Cell(WITHOUT, 1)
    found[f"{cell.name} grows by at least {LEAST_WITHOUT:g} times"] = (
        growth_of(means[cell]) >= LEAST_WITHOUT
    )
    return found


def table_of(points: Sequence[int], found: Mapping[Cell, Sequence[Floats]]) -> Table:
    """Means over runs with standard errors, growth, and how many times at once."""
    n_runs = counted(len(found[CELLS[0]]), "run")
    table = Table(
        title=f"regret after so many lists, {n_runs}", caption=_caption(points)
    )
    table.add_column("bandit")
    for point in points:
        table.add_column(f"{point:,}", justify="right")
    for name in ("growth", "times at once"):
        table.add_column(name, justify="right")
    for cell in CELLS:
        runs = np.array(found[cell])
        mean = runs.mean(axis=0)
        at_once = np.mean(found[Cell(cell.bandit, 1)], axis=0)
        table.add_row(
            cell.name,
            *(_figure(column) for column in runs.T),
            f"{growth_of(mean):.2f}" if len(points) > 1 else "-",
            # Before its second look nothing was learned from what was shown.
            f"{mean[-1] / at_once[-1]:.1f}" if 1 < cell.every < points[-1] else "",
        )
    return table


def write(
    path: Path, points: Sequence[int], found: Mapping[Cell, Sequence[Floats]]
) -> None:
    """All runs, a row for each run and number of lists."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("bandit", "every", "run", "lists", "regret"))
        for cell, runs in found.items():
            for run_number, regret in enumerate(runs):
                for lists, value in zip(points, regret, strict=True):
                    rows.writerow((*cell, run_number, lists, f"{value:.3f}"))


def _caption(points: Sequence[int]) -> str:
    """What growth is of, as it says nothing by itself."""
    if len(points) < 2:
        return ""
    before, last = points[-2:]
    said = (
        f"growth: regret after {last:,} lists over that after {before:,}, "
        f"{last / before:.3g} times as many lists"
    )
    if last < POINTS[-1]:
        said += (
            "; with so few much of it is from before a bandit has learned, so that it "
            f"is larger than from {POINTS[-2]:,} to {POINTS[-1]:,}, of which claims are"
        )
    return said


def _figure(values: Floats) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():,.0f}" + ("" if np.isnan(error) else f" ± {error:,.0f}")
