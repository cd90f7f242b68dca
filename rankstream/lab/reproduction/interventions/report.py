"""The table of chapter 10: runs, what is printed and written."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from rankstream.lab.closed_loops.policy_log import ESTIMATORS
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.data import SPLITS, VALIDATION
from rankstream.lab.reproduction.engine import Finished, Job, Output, Setup, Study
from rankstream.lab.reproduction.figures import (
    Curves,
    claim_row,
    claims_table,
    curves_of,
    figure_of,
    write_csv,
)
from rankstream.lab.reproduction.interventions.claims import Found, claims_of, matched
from rankstream.lab.reproduction.interventions.plan import (
    CUTOFF,
    DECAY,
    FIRST,
    LONG,
    MOST_RUNS,
    N_IMPRESSIONS,
    N_RUNS,
    ONLINE,
    PARTS,
    SHARP,
    SOFT,
    TABLE,
    Cell,
    cells_of,
)
from rankstream.lab.reproduction.interventions.runs import (
    FIGURES,
    LOGGING,
    ON_TRAINING,
    ORDER,
    TRAINED,
    live_once,
)
from rankstream.lab.reproduction.picture import Lines, picture_of

SHOWN = {
    TRAINED: "learned policy",
    ORDER: "its order",
    LOGGING: "policy that logs",
    ON_TRAINING: "on training queries",
}


class InterventionStudy(Study[Cell]):
    """Estimators by interventions, beside online learners."""

    file = f"{TABLE}.txt"
    n_runs = N_RUNS
    splits = (*SPLITS, VALIDATION)
    live_once = staticmethod(live_once)

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        wanted = arguments.impressions
        if wanted is not None and wanted < FIRST:
            raise ValueError(
                f"--impressions must be at least {FIRST}, after which the first "
                f"intervention comes; got {wanted}"
            )

    def setup(self, place: Path, largest_label: int) -> Setup:
        """What all runs share."""
        asked = self.arguments
        return Setup(place, asked.normalisation, largest_label + 1, asked.seed)

    def cells(self, setup: Setup, n_folds: int) -> list[Cell]:
        """Those of the parts that were asked for."""
        del setup, n_folds
        n_impressions = self.arguments.impressions or N_IMPRESSIONS
        parts = self.arguments.parts or PARTS
        return [
            cell
            for part in PARTS
            if part in parts
            for cell in cells_of(part, n_impressions)
        ]

    def jobs(self, cells: list[Cell], *, n_folds: int, n_runs: int) -> list[Job[Cell]]:
        """Fewer runs of what takes minutes."""
        return [
            job
            for job in super().jobs(cells, n_folds=n_folds, n_runs=n_runs)
            if all(
                job.run < MOST_RUNS.get(each, n_runs)
                for each in (job.cell.part, job.cell.method)
            )
        ]

    def kind_of(self, job: Job[Cell]) -> str:
        """What runs that take as long have in common."""
        cell = job.cell
        return f"{cell.part}/{cell.method}/{cell.loss}/{cell.n_interventions}"

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables, curves and claims."""
        report(
            {cell: curves_with_production(cell, found) for cell in cells},
            output,
            self.arguments.seed,
        )


def curves_with_production(cell: Cell, found: Finished) -> Curves:
    """The runs of a cell, and what their production rankers were worth."""
    curves = curves_of(cell, cell.n_impressions, found, FIGURES)
    production = {"production": found.values(cell, "production")}
    return curves._replace(of={**curves.of, **production})


def report(found: Found, output: Output, seed: int) -> None:
    """Print tables and claims, and write both and the curves."""
    rows = [row for cell, curves in found.items() for row in _rows(cell, curves)]
    write_csv(output.out / f"{TABLE}-curves.csv", rows)
    for title, panels in _pictures(found):
        text = picture_of(f"{output.name}: {title}", panels, below="lists", is_log=True)
        output.draw(f"{TABLE}-{title.replace(' ', '-')}", text)
    for part in dict.fromkeys(cell.part for cell in found):
        shown = {cell: found[cell] for cell in found if cell.part == part}
        output.console.print(_table(output.name, part, shown))
    claims = claims_of(found)
    if claims:
        rows = [claim_row(claim) for claim in claims]
        write_csv(output.out / f"{TABLE}-claims.csv", rows)
        output.console.print(claims_table(claims, "claims"))
    ratio = matched(found, rng=np.random.default_rng(seed))
    if ratio is not None:
        output.console.print(
            f"5 interventions reach {ratio.level:.4f} in {ratio.impressions:,} lists, "
            f"50 {_reached(ratio.earlier)}: {_times(ratio.ratio)} times as many "
            f"(95 %: {_times(ratio.low)} to {_times(ratio.high)})",
            highlight=False,
        )


def _reached(earlier: float) -> str:
    return f"in {earlier:,.0f}" if math.isfinite(earlier) else "never"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio > 0.0 else "less than 1.0"


def _rows(cell: Cell, curves: Curves) -> list[dict[str, Any]]:
    rows = []
    for at, impressions in enumerate(curves.impressions):
        row: dict[str, Any] = {
            "part": cell.part,
            "method": cell.method,
            "loss": cell.loss,
            "interventions": cell.n_interventions,
            "impressions": impressions,
            "runs": figure_of(curves.of[TRAINED][:, :, at]).n_runs,
            "production": f"{figure_of(curves.of['production']).mean:.6f}",
        }
        for what in SHOWN:
            figure = figure_of(curves.of[what][:, :, at])
            within = figure._replace(deviation=figure.spread)
            row |= within.columns(prefix=what)
        rows.append(row)
    return rows


def _table(name: str, part: str, shown: Found) -> Table:
    n_impressions = next(iter(shown)).n_impressions
    production = figure_of(next(iter(shown.values())).of["production"]).mean
    table = Table(
        title=f"{name}, {part}: NDCG@{CUTOFF} after {n_impressions:,} lists, from "
        f"{production:.4f} of the production ranker",
        title_justify="left",
        caption="±: standard error; sd: of runs within folds",
    )
    table.add_column("method")
    for heading in (*SHOWN.values(), "sd", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell, curves in shown.items():
        figures = {what: figure_of(curves.end(what)) for what in SHOWN}
        learned = figures[TRAINED]
        cells = [figure.text(4) for figure in figures.values()]
        spread = learned.spread
        cells.append("-" if math.isnan(spread) else f"{spread:.4f}")
        table.add_row(cell.label, *cells, str(learned.n_runs))
    return table


def _pictures(found: Found) -> list[tuple[str, dict[str, Lines]]]:
    """Titles, and their panels; those without cells are left out."""

    def lines(is_shown: Callable[[Cell], bool], what: str = TRAINED) -> Lines:
        cells = [cell for cell in found if is_shown(cell)]
        return {cell.label: found[cell].points(what) for cell in cells}

    def estimates(cell: Cell) -> bool:
        return cell.part == SHARP and cell.loss == POLICY_GRADIENT

    def aware(cell: Cell) -> bool:
        return estimates(cell) and cell.method == ESTIMATORS[0]

    def online(cell: Cell) -> bool:
        is_many = aware(cell) and cell.n_interventions in (0, 100)
        return is_many or (cell.part == SHARP and cell.method in ONLINE)

    every = {
        "estimators": {
            f"{count} interventions": lines(
                lambda cell, count=count: (  # type: ignore[misc]
                    estimates(cell) and cell.n_interventions == count
                )
            )
            for count in (0, 50)
        },
        "interventions": {
            "learned policy": lines(aware),
            "policy that logs": lines(aware, LOGGING),
        },
        "online learners": {
            "learned policy": lines(online),
            "policy that logs": lines(online, LOGGING),
        },
        "other production rankers": {
            "a soft one": lines(lambda cell: cell.part == SOFT),
            "a sharp one, for longer": lines(lambda cell: cell.part == LONG),
        },
        "decay": {
            "held-out queries": lines(lambda cell: cell.part == DECAY),
            "training queries": lines(lambda cell: cell.part == DECAY, ON_TRAINING),
        },
    }
    kept = {
        title: {above: shown for above, shown in panels.items() if shown}
        for title, panels in every.items()
    }
    return [(title, panels) for title, panels in kept.items() if panels]
