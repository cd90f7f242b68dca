"""The table of losses: what is optimised, and which loss clicks select."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from models.arrays import Floats
from rankstream.lab.reproduction.engine import Finished, Output
from rankstream.lab.reproduction.figures import (
    Claim,
    figure_of,
    figures_table,
    write_csv,
)
from rankstream.lab.reproduction.picture import Point
from rankstream.lab.reproduction.top_k.claims import (
    claims_over_cutoffs,
    claims_over_losses,
)
from rankstream.lab.reproduction.top_k.plan import (
    ARP,
    CANDIDATES,
    DISPLAYED,
    LINEAR_ARP,
    LOSSES,
    NDCG,
    SELECTED,
    TRUNCATED,
    Cell,
    selections,
)
from rankstream.lab.reproduction.top_k.report import (
    NAMED,
    Axis,
    Grid,
    Series,
    TopKStudy,
    print_claims,
)

ESTIMATED, TRUE = "estimated", "true"

WITHIN = 2.0
"""Errors of a difference that a selection may miss the best by."""

WORDS = {
    NDCG: "NDCG@5 on test queries",
    ESTIMATED: "estimated DCG@5 on validation queries",
    TRUE: "true DCG@5 on validation queries",
    "is_best": "best loss chosen, share",
    "is_within": f"within {WITHIN:g} errors, share",
    "lost": "true DCG@5 it lacks",
}

OF_SELECTED = "is_best", "is_within", "lost"

_dcg = "DCG@5 on validation queries, in clicks"
ABOVE = {NDCG: WORDS[NDCG], ESTIMATED: _dcg, TRUE: _dcg}
"""Panels of figures."""


class Selections(NamedTuple):
    """Runs of one number of clicks.

    Parameters
    ----------
    figures
        By loss, "selected" too, and figure: [n_folds, n_runs], NaN where missing.
    is_best, is_within : [n_folds, n_runs]
        Whether the truly best loss was chosen, and whether one was that it could not be
        told from; NaN where missing.
    lost : [n_folds, n_runs]
        True DCG of the best less that of the chosen one.
    """

    figures: dict[tuple[str, str], Floats]
    is_best: Floats
    is_within: Floats
    lost: Floats

    @property
    def gained(self) -> Floats:
        """True DCG of the chosen one less that of a loss drawn at random."""
        every = [self.figures[name, TRUE] for name in CANDIDATES]
        return np.asarray(self.figures[SELECTED, TRUE] - np.mean(every, axis=0))


class LossStudy(TopKStudy):
    """Ranks of all that is relevant beside the first ones; and selection of losses."""

    def cells_of(self, grid: Grid) -> list[Cell]:
        """The entries of the table."""
        return [
            *grid.by_cutoff(LINEAR_ARP),
            *grid.by_cutoff(TRUNCATED),
            *selections(DISPLAYED, grid.n_clicks),
        ]

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables and pictures of both, and what chapter 7 says."""
        del cells
        grid, name = self.grid, output.name
        after = f"after {grid.n_clicks[-1]:,} clicks, by documents shown"
        axis = Axis("cutoff", grid.cutoffs, after)
        rows: list[dict[str, Any]] = []
        claims: list[Claim] = []
        panels = {}
        for loss, metric in ((LINEAR_ARP, ARP), (TRUNCATED, NDCG)):
            each = Series(axis, grid.by_cutoff(loss), found, metric)
            title = f"{name}: {NAMED[metric]} by {loss}, {axis.title}"
            output.console.print(each.table(title))
            panels[f"{NAMED[metric]}, by {loss}"] = each.drawn()
            rows += each.rows().values()
            claims += claims_over_cutoffs(
                each.runs, each.lines, grid.cutoffs, grid.claimed, metric
            )
        write_csv(output.out / f"{LOSSES}-shown.csv", rows)
        title = f"{name}: what is optimised, {axis.title}"
        output.draw(f"{LOSSES}-shown", axis.picture(title, panels))
        selected = [
            selections_of(cell, found) for cell in selections(DISPLAYED, grid.n_clicks)
        ]
        _report_selection(grid, selected, output)
        claims += claims_over_losses(
            [each.is_within for each in selected],
            [each.lost for each in selected],
            selected[-1].gained,
            grid.n_clicks,
        )
        print_claims(grid, claims, output)


def selections_of(cell: Cell, found: Finished) -> Selections:
    """All runs of a cell."""
    shape = found.n_folds, found.n_runs
    names = [*CANDIDATES, SELECTED]
    figures = {
        (name, what): np.full(shape, math.nan)
        for name in names
        for what in (NDCG, ESTIMATED, TRUE)
    }
    is_best, is_within, lost = (np.full(shape, math.nan) for _ in range(3))
    for at, result in found.of(cell):
        by_name = {**result["losses"], SELECTED: result["losses"][result["chosen"]]}
        for (name, what), values in figures.items():
            values[at] = by_name[name][what]
        is_best[at] = result["lost"] <= 0.0  # of equal ones either is the best
        is_within[at] = result["behind"] <= WITHIN * result["behind_error"]
        lost[at] = result["lost"]
    return Selections(figures, is_best, is_within, lost)


def _report_selection(grid: Grid, found: Sequence[Selections], output: Output) -> None:
    axis = Axis("n_clicks", grid.n_clicks, f"by clicks on {DISPLAYED} documents shown")
    title = f"{output.name}: losses {axis.title}, policy-aware"
    lines = _selection_lines(found)
    for what in (NDCG, ESTIMATED, TRUE):
        of_losses = {name: runs for (name, each), runs in lines.items() if each == what}
        heading = f"{title}: {WORDS[what]}"
        output.console.print(figures_table(heading, "loss", axis.headings, of_losses))
    of_selected = {
        WORDS[each]: runs for (_, each), runs in lines.items() if each in OF_SELECTED
    }
    heading = f"{title}: the selected loss"
    output.console.print(figures_table(heading, "figure", axis.headings, of_selected))
    rows = [
        _row(name, what, count, numbers)
        for (name, what), values in lines.items()
        for count, numbers in zip(axis.numbers, values, strict=True)
    ]
    write_csv(output.out / f"{LOSSES}-selection.csv", rows)
    panels: dict[str, dict[str, list[Point]]] = {}
    for (name, what), values in lines.items():
        if what in ABOVE:
            label = f"{name}, estimated" if what == ESTIMATED else name
            panels.setdefault(ABOVE[what], {})[label] = axis.points(values)
    output.draw(f"{LOSSES}-selection", axis.picture(title, panels))


def _selection_lines(
    found: Sequence[Selections],
) -> dict[tuple[str, str], list[Floats]]:
    """By loss and figure, runs at each number of clicks."""
    lines = {
        (name, what): [each.figures[name, what] for each in found]
        for name in (*CANDIDATES, SELECTED)
        for what in (NDCG, ESTIMATED, TRUE)
    }
    for what in OF_SELECTED:
        lines[SELECTED, what] = [getattr(each, what) for each in found]
    return lines


def _row(name: str, what: str, n_clicks: int, values: Floats) -> dict[str, Any]:
    figure = figure_of(values)
    return {
        "loss": name,
        "figure": what,
        "clicks": n_clicks,
        "runs": figure.n_runs,
        "mean": f"{figure.mean:.6f}",
        "error": f"{figure.error:.6f}",
    }
