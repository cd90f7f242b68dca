"""What the table of losses prints and writes."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from rankstream.lab.reproduction.line_picture import Point
from rankstream.lab.reproduction.summary import figure_of, write_csv
from rankstream.lab.reproduction.tables import orderings_table
from rankstream.lab.reproduction.top_k.claims import (
    Claim,
    claims_over_cutoffs,
    claims_over_losses,
)
from rankstream.lab.reproduction.top_k.figures import (
    ARP,
    NAMED,
    NDCG,
    Axis,
    laid_out,
    points_of,
    rows_of,
    table_of,
)
from rankstream.lab.reproduction.top_k.plan import (
    CANDIDATES,
    DISPLAYED,
    LINEAR_ARP,
    LOSSES,
    SELECTED,
    TRUNCATED,
    Cell,
    Job,
    selections,
)
from rankstream.lab.reproduction.top_k.report import Asked, Results

Floats = npt.NDArray[np.float64]

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


def loss_cells(asked: Asked) -> list[Cell]:
    """Of the table of losses."""
    return [
        *asked.by_cutoff(LINEAR_ARP),
        *asked.by_cutoff(TRUNCATED),
        *selections(DISPLAYED, asked.n_clicks),
    ]


def report_losses(asked: Asked, results: Results, out: Path, console: Console) -> None:
    """Ranks of all that is relevant beside the first ones; and selection of losses."""
    after = f"after {asked.n_clicks[-1]:,} clicks, by documents shown"
    axis = Axis("cutoff", asked.cutoffs, after)
    rows: dict[tuple[Cell, str], dict[str, Any]] = {}
    claims: list[Claim] = []
    panels = {}
    for loss, metric in ((LINEAR_ARP, ARP), (TRUNCATED, NDCG)):
        cells = asked.by_cutoff(loss)
        runs = asked.runs(cells, results, metric)
        lines = laid_out(cells, axis.what, axis.numbers)
        title = f"{asked.name}: {NAMED[metric]} by {loss}, {axis.title}"
        console.print(table_of(title, runs, lines, axis, metric))
        panels[f"{NAMED[metric]}, by {loss}"] = {
            label: points_of(runs, row, axis) for label, row in lines.items()
        }
        rows |= {(cell, metric): row for cell, row in rows_of(runs, metric).items()}
        claims += claims_over_cutoffs(runs, lines, asked.cutoffs, asked.claimed, metric)
    write_csv(out / f"{LOSSES}-shown.csv", [*rows.values()])
    title = f"{asked.name}: what is optimised, {axis.title}"
    picture = axis.picture(title, panels)
    (out / f"{LOSSES}-shown.svg").write_text(picture, encoding="utf-8")
    found = _all_selections(asked, results)
    _report_selection(asked, found, out, console)
    claims += claims_over_losses(
        [each.is_within for each in found],
        [each.lost for each in found],
        found[-1].gained,
        asked.n_clicks,
    )
    console.print(asked.said_of_lists(), highlight=False, soft_wrap=True)
    console.print(orderings_table(claims, f"{asked.name}: what chapter 7 says"))


def selections_of(cell: Cell, asked: Asked, results: Results) -> Selections:
    """All runs of a cell."""
    shape = asked.n_folds, asked.n_runs
    names = [*CANDIDATES, SELECTED]
    figures = {
        (name, what): np.full(shape, math.nan)
        for name in names
        for what in (NDCG, ESTIMATED, TRUE)
    }
    is_best, is_within, lost = (np.full(shape, math.nan) for _ in range(3))
    for at in np.ndindex(shape):
        key = Job(cell, at[0] + 1, at[1]).key()
        result = results.get(f"{asked.prefix}/{key}")
        if result is None:
            continue
        by_name = {**result["losses"], SELECTED: result["losses"][result["chosen"]]}
        for (name, what), values in figures.items():
            values[at] = by_name[name][what]
        is_best[at] = result["lost"] <= 0.0  # of equal ones either is the best
        is_within[at] = result["behind"] <= WITHIN * result["behind_error"]
        lost[at] = result["lost"]
    return Selections(figures, is_best, is_within, lost)


def _all_selections(asked: Asked, results: Results) -> list[Selections]:
    return [
        selections_of(cell, asked, results)
        for cell in selections(DISPLAYED, asked.n_clicks)
    ]


def _report_selection(
    asked: Asked, found: Sequence[Selections], out: Path, console: Console
) -> None:
    axis = Axis("n_clicks", asked.n_clicks, f"by clicks on {DISPLAYED} documents shown")
    title = f"{asked.name}: losses {axis.title}, policy-aware"
    lines = _selection_lines(found)
    for table in _selection_tables(title, axis, lines):
        console.print(table)
    rows = [
        _row(name, what, count, numbers)
        for (name, what), values in lines.items()
        for count, numbers in zip(axis.numbers, values, strict=True)
    ]
    write_csv(out / f"{LOSSES}-selection.csv", rows)
    panels: dict[str, dict[str, list[Point]]] = {}
    for (name, what), values in lines.items():
        if what in ABOVE:
            label = f"{name}, estimated" if what == ESTIMATED else name
            panels.setdefault(ABOVE[what], {})[label] = [
                _point(count, numbers)
                for count, numbers in zip(axis.numbers, values, strict=True)
            ]
    picture = axis.picture(title, panels)
    (out / f"{LOSSES}-selection.svg").write_text(picture, encoding="utf-8")


def _selection_lines(
    found: Sequence[Selections],
) -> dict[tuple[str, str], list[Floats]]:
    """By loss and figure, runs at each number of clicks."""
    lines = {
        (name, what): [each.figures[name, what] for each in found]
        for name in (*CANDIDATES, SELECTED)
        for what in (NDCG, ESTIMATED, TRUE)
    }
    for what in ("is_best", "is_within", "lost"):
        lines[SELECTED, what] = [getattr(each, what) for each in found]
    return lines


def _selection_tables(
    title: str, axis: Axis, lines: dict[tuple[str, str], list[Floats]]
) -> Iterator[Table]:
    """One of each figure of the losses, and one of what is selected."""
    for what in (NDCG, ESTIMATED, TRUE):
        of_losses = {name: runs for (name, each), runs in lines.items() if each == what}
        yield _counts_table(f"{title}: {WORDS[what]}", "loss", axis, of_losses)
    of_selected = {
        WORDS[each]: runs
        for (name, each), runs in lines.items()
        if name == SELECTED and each in ("is_best", "is_within", "lost")
    }
    yield _counts_table(f"{title}: the selected loss", "figure", axis, of_selected)


def _counts_table(
    title: str, first: str, axis: Axis, lines: dict[str, list[Floats]]
) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for count in axis.numbers:
        table.add_column(f"{count:,}", justify="right", no_wrap=True)
    for name, values in lines.items():
        table.add_row(name, *map(_text, values))
    return table


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


def _point(count: int, values: Floats) -> Point:
    figure = figure_of(values)
    spread = 2.0 * figure.error if math.isfinite(figure.error) else 0.0
    return Point(float(count), figure.mean, spread)


def _text(values: Floats) -> str:
    figure = figure_of(values)
    if not figure.n_runs:
        return "-"
    error = "" if math.isnan(figure.error) else f" ± {figure.error:.4f}"
    return f"{figure.mean:.4f}{error}"
