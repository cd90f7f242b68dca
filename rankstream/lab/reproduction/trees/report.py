"""The table of trees: what is printed and written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from models.arrays import Floats
from rankstream.lab.reproduction.engine import Finished, Job, Output, Setup
from rankstream.lab.reproduction.figures import (
    claims_table,
    figure_of,
    figures_table,
    write_csv,
)
from rankstream.lab.reproduction.top_k.plan import DISPLAYED, Cell
from rankstream.lab.reproduction.top_k.report import Axis, Grid, TopKStudy
from rankstream.lab.reproduction.trees.claims import claims_of
from rankstream.lab.reproduction.trees.plan import (
    CUTOFF,
    LINES,
    N_RUNS,
    TABLE,
    VALUES,
    cell_of,
    cells_over,
)
from rankstream.lab.reproduction.trees.runs import (
    WITHIN,
    kind_of,
    live_once,
    settings_digest,
)

RIGHT = "is_right"

OF_SELECTED = {
    RIGHT: "the better one selected, share",
    "is_within": f"within {WITHIN:g} errors, share",
    "lost": f"true DCG@{CUTOFF} it lacks",
}

NAMED = f"NDCG@{CUTOFF}"


class TreesStudy(TopKStudy):
    """Trees and linear rankers, by clicks on five documents."""

    file = f"{TABLE}.txt"
    n_runs = N_RUNS
    live_once = staticmethod(live_once)

    def setup(self, place: Path, largest_label: int) -> Setup:
        """As that of `top-k`, whose draws are these."""
        return replace(super().setup(place, largest_label), digest=settings_digest())

    def cells_of(self, grid: Grid) -> list[Cell]:
        """The entries of the table."""
        return cells_over(grid.n_clicks)

    def kind_of(self, job: Job[Cell]) -> str:
        """Jobs of one kind take about as long."""
        return kind_of(job)

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables, a picture, and what is claimed."""
        del cells
        counts = self.grid.n_clicks
        axis = Axis("n_clicks", counts, f"by clicks on {DISPLAYED} documents shown")
        lines = {
            name: [found.values(cell_of(source, n), name) for n in counts]
            for name, source in LINES.items()
        }
        of_selected = {
            what: [found.values(cell_of(VALUES, n), what) for n in counts]
            for what in OF_SELECTED
        }
        title = f"{output.name}: {NAMED} {axis.title}"
        output.console.print(figures_table(title, "ranker", axis.headings, lines))
        heading = f"{output.name}: linear or trees, {axis.title}"
        named = {OF_SELECTED[what]: runs for what, runs in of_selected.items()}
        output.console.print(figures_table(heading, "figure", axis.headings, named))
        write_csv(
            output.out / f"{TABLE}.csv",
            [
                *_rows(NAMED, lines, counts),
                *(
                    row
                    for what, runs in of_selected.items()
                    for row in _rows(what, {"selected": runs}, counts)
                ),
            ],
        )
        drawn = {name: axis.points(runs) for name, runs in lines.items()}
        output.draw(TABLE, axis.picture(title, {NAMED: drawn}))
        claims = claims_of(
            {
                name: dict(zip(counts, runs, strict=True))
                for name, runs in lines.items()
            },
            dict(zip(counts, of_selected[RIGHT], strict=True)),
            counts,
        )
        output.console.print(claims_table(claims, f"{output.name}: what is claimed"))


def _rows(
    what: str, lines: Mapping[str, Sequence[Floats]], counts: Sequence[int]
) -> list[dict[str, Any]]:
    """Rows of a file, by ranker and clicks."""
    rows = []
    for name, runs in lines.items():
        for count, values in zip(counts, runs, strict=True):
            figure = figure_of(values)
            columns = figure.columns()
            rows.append(
                {
                    "ranker": name,
                    "figure": what,
                    "clicks": count,
                    "runs": figure.n_runs,
                    "mean": columns[""],
                    "deviation": columns["_deviation"],
                    "error": columns["_error"],
                }
            )
    return rows
