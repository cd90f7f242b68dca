"""What the tables of chapter 7 print and write."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from rankstream.lab.reproduction.summary import write_csv
from rankstream.lab.reproduction.tables import orderings_table
from rankstream.lab.reproduction.top_k.claims import (
    Claim,
    claims_over_clicks,
    claims_over_cutoffs,
)
from rankstream.lab.reproduction.top_k.figures import (
    NAMED,
    NDCG,
    Axis,
    Runs,
    laid_out,
    points_of,
    rows_of,
    runs_of,
    table_of,
)
from rankstream.lab.reproduction.top_k.plan import (
    CUTOFFS,
    DISPLAYED,
    ESTIMATORS,
    MOST,
    TOP_K,
    TRUNCATED,
    Cell,
    over_clicks,
    over_cutoffs,
)

Results = Mapping[str, dict[str, Any]]


class Asked(NamedTuple):
    """What a table is made of.

    Parameters
    ----------
    name
        Of the data.
    prefix
        Of the keys of its results.
    cutoffs
        Documents shown.
    n_clicks
        Numbers of clicks, rising.
    longer
        Share of training lists that are longer than k, of all cutoffs and `DISPLAYED`.
    """

    name: str
    prefix: str
    cutoffs: tuple[int, ...]
    n_clicks: tuple[int, ...]
    n_folds: int
    n_runs: int
    longer: Mapping[int, float]

    @property
    def claimed(self) -> tuple[int, ...]:
        """Cutoffs of which the chapter says something: they hide part of most lists.

        The lists decide, not what was found.
        """
        return tuple(
            k for k in self.cutoffs if k <= CUTOFFS[-1] and self.longer[k] > MOST
        )

    def said_of_lists(self) -> str:
        """How many lists are cut, and where nothing is claimed."""
        shares = ", ".join(f"{self.longer[k]:.0%} at {k}" for k in self.cutoffs)
        text = f"training lists that are longer than k: {shares}"
        others = [str(k) for k in self.cutoffs if k not in self.claimed]
        return f"{text}; nothing is claimed at {', '.join(others)}" if others else text

    def runs(self, cells: Sequence[Cell], results: Results, metric: str) -> Runs:
        """A metric of all runs of cells."""
        return runs_of(
            cells,
            results,
            self.prefix,
            metric,
            n_folds=self.n_folds,
            n_runs=self.n_runs,
        )

    def by_cutoff(self, loss: str) -> list[Cell]:
        """Cells over the number of documents shown, of as many clicks as there are."""
        return over_cutoffs(ESTIMATORS, loss, self.cutoffs, self.n_clicks[-1])

    def by_clicks(self, loss: str) -> list[Cell]:
        """Cells over the number of clicks."""
        return over_clicks(ESTIMATORS, loss, DISPLAYED, self.n_clicks)


def top_k_cells(asked: Asked) -> list[Cell]:
    """Of the table of estimators."""
    cells = [*asked.by_cutoff(TRUNCATED), *asked.by_clicks(TRUNCATED)]
    return list(dict.fromkeys(cells))


def report_top_k(asked: Asked, results: Results, out: Path, console: Console) -> None:
    """Estimators over the number of documents shown, and over clicks."""
    after = f"after {asked.n_clicks[-1]:,} clicks, by documents shown"
    shown = Axis("cutoff", asked.cutoffs, after)
    on = f"by clicks on {DISPLAYED} documents shown"
    clicks = Axis("n_clicks", asked.n_clicks, on)
    rows: dict[Cell, dict[str, Any]] = {}
    claims: list[Claim] = []
    for axis, cells in (
        (shown, asked.by_cutoff(TRUNCATED)),
        (clicks, asked.by_clicks(TRUNCATED)),
    ):
        runs = asked.runs(cells, results, NDCG)
        lines = laid_out(cells, axis.what, axis.numbers)
        title = f"{asked.name}: {NAMED[NDCG]} {axis.title}"
        console.print(table_of(title, runs, lines, axis, NDCG))
        drawn = {label: points_of(runs, row, axis) for label, row in lines.items()}
        (out / f"{TOP_K}-{axis.name}.svg").write_text(
            axis.picture(title, {NAMED[NDCG]: drawn}), encoding="utf-8"
        )
        rows |= rows_of(runs, NDCG)
        if axis is shown:
            claims += claims_over_cutoffs(runs, lines, asked.cutoffs, asked.claimed)
        else:
            is_cut = asked.longer[DISPLAYED] > MOST
            claims += claims_over_clicks(runs, lines, asked.n_clicks, is_cut=is_cut)
    write_csv(out / f"{TOP_K}.csv", [*rows.values()])
    console.print(asked.said_of_lists(), highlight=False, soft_wrap=True)
    console.print(orderings_table(claims, f"{asked.name}: what chapter 7 says"))
