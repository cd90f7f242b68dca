"""The tables of chapter 7: runs, what is printed and written."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from rankstream.lab.reproduction.data import SPLITS, VALIDATION, world_of
from rankstream.lab.reproduction.engine import Finished, Job, Output, Setup, Study
from rankstream.lab.reproduction.figures import (
    Claim,
    claims_table,
    figure_of,
    figures_table,
    write_csv,
)
from rankstream.lab.reproduction.picture import Lines, Point, picture_of
from rankstream.lab.reproduction.top_k.claims import (
    Runs,
    claims_over_clicks,
    claims_over_cutoffs,
)
from rankstream.lab.reproduction.top_k.plan import (
    ARP,
    CUTOFFS,
    DISPLAYED,
    ESTIMATORS,
    MOST,
    N_CLICKS,
    N_RUNS,
    NDCG,
    TOP_K,
    TRUNCATED,
    Cell,
    over_clicks,
    over_cutoffs,
)
from rankstream.lab.reproduction.top_k.runs import (
    kind_of,
    live_once,
    settings_digest,
)

NAMED = {NDCG: "NDCG@5", ARP: "average relevant position"}

DIGITS = {NDCG: 4, ARP: 3}


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
    def is_clicks(self) -> bool:
        """Else it is the documents that are shown."""
        return self.what == "n_clicks"

    @property
    def name(self) -> str:
        """In names of files."""
        return "clicks" if self.is_clicks else "shown"

    @property
    def headings(self) -> list[str]:
        """Of its numbers, in tables."""
        before = "" if self.is_clicks else "k = "
        return [f"{before}{number:,}" for number in self.numbers]

    def picture(self, title: str, panels: Mapping[str, Lines]) -> str:
        """Panels over its numbers."""
        below = "clicks" if self.is_clicks else "documents shown"
        return picture_of(title, panels, below=below, is_log=self.is_clicks)

    def points(self, runs: Sequence[Floats]) -> list[Point]:
        """A line with bands of two standard errors.

        Parameters
        ----------
        runs : [n_runs]
            At each number, figures of the runs.
        """
        return [
            (found := figure_of(values)).point(float(number), 2.0 * found.error)
            for number, values in zip(self.numbers, runs, strict=True)
        ]


class Grid(NamedTuple):
    """What a table is made of.

    Parameters
    ----------
    cutoffs
        Documents shown.
    n_clicks
        Numbers of clicks, rising.
    longer
        Share of training lists that are longer than k, of all cutoffs and `DISPLAYED`.
    """

    cutoffs: tuple[int, ...]
    n_clicks: tuple[int, ...]
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

    def by_cutoff(self, loss: str) -> list[Cell]:
        """Cells over the number of documents shown, of as many clicks as there are."""
        return over_cutoffs(ESTIMATORS, loss, self.cutoffs, self.n_clicks[-1])

    def by_clicks(self, loss: str) -> list[Cell]:
        """Cells over the number of clicks."""
        return over_clicks(ESTIMATORS, loss, DISPLAYED, self.n_clicks)


class TopKStudy(Study[Cell]):
    """Estimators over the number of documents shown, and over clicks."""

    file = "top-k.txt"
    n_runs = N_RUNS
    splits = (*SPLITS, VALIDATION)
    live_once = staticmethod(live_once)
    grid: Grid
    """Known once lists are."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        self._cutoffs = _numbers(arguments.shown, "--shown")
        self._n_clicks = _numbers(arguments.clicks, "--clicks") or N_CLICKS

    def setup(self, place: Path, largest_label: int) -> Setup:
        """The two highest grades are relevant, as in the thesis, unless others are."""
        wanted = self.arguments.relevant_from
        relevant_from = max(1, largest_label - 1) if wanted is None else wanted
        if not 1 <= relevant_from <= largest_label:
            raise ValueError(
                f"--relevant-from must lie in 1..{largest_label}, the labels that "
                f"there are; got {relevant_from}"
            )
        how, seed = self.arguments.normalisation, self.arguments.seed
        return Setup(place, how, relevant_from, seed, digest=settings_digest())

    def cells(self, setup: Setup, n_folds: int) -> list[Cell]:
        """What is asked for, where lists are longer than it."""
        folds = range(1, n_folds + 1)
        offsets = [
            world_of(setup.place, fold, "train", setup.normalisation).offsets
            for fold in folds
        ]
        sizes = np.concatenate([np.diff(each) for each in offsets])
        cutoffs = self._cutoffs or cutoffs_below(sizes)
        longer = {k: share_longer(k, sizes) for k in (*cutoffs, DISPLAYED)}
        self.grid = Grid(cutoffs, self._n_clicks, longer)
        return self.cells_of(self.grid)

    def cells_of(self, grid: Grid) -> list[Cell]:
        """The entries of the table."""
        cells = [*grid.by_cutoff(TRUNCATED), *grid.by_clicks(TRUNCATED)]
        return list(dict.fromkeys(cells))

    def kind_of(self, job: Job[Cell]) -> str:
        """Jobs of one kind take about as long."""
        return kind_of(job)

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables and pictures of both, and what chapter 7 says."""
        del cells
        grid = self.grid
        after = f"after {grid.n_clicks[-1]:,} clicks, by documents shown"
        on = f"by clicks on {DISPLAYED} documents shown"
        shown = Series(
            Axis("cutoff", grid.cutoffs, after), grid.by_cutoff(TRUNCATED), found
        )
        clicks = Series(
            Axis("n_clicks", grid.n_clicks, on), grid.by_clicks(TRUNCATED), found
        )
        for each in (shown, clicks):
            axis, drawn = each.axis, {NAMED[NDCG]: each.drawn()}
            title = f"{output.name}: {NAMED[NDCG]} {axis.title}"
            output.console.print(each.table(title))
            output.draw(f"{TOP_K}-{axis.name}", axis.picture(title, drawn))
        write_csv(
            output.out / f"{TOP_K}.csv", [*(shown.rows() | clicks.rows()).values()]
        )
        claims = claims_over_cutoffs(
            shown.runs, shown.lines, grid.cutoffs, grid.claimed
        )
        is_cut = grid.longer[DISPLAYED] > MOST
        claims += claims_over_clicks(
            clicks.runs, clicks.lines, grid.n_clicks, is_cut=is_cut
        )
        print_claims(grid, claims, output)


def print_claims(grid: Grid, claims: Sequence[Claim], output: Output) -> None:
    """Print how many lists are cut, and what chapter 7 claims of them."""
    output.console.print(grid.said_of_lists(), highlight=False, soft_wrap=True)
    output.console.print(claims_table(claims, f"{output.name}: what chapter 7 says"))


class Series:
    """A metric of cells along an axis."""

    def __init__(
        self, axis: Axis, cells: Sequence[Cell], found: Finished, metric: str = NDCG
    ) -> None:
        self.axis, self._metric = axis, metric
        self.runs: Runs = {cell: found.values(cell, metric) for cell in cells}
        self.lines = laid_out(cells, axis.what, axis.numbers)

    def _along(self) -> dict[str, list[Floats]]:
        """Runs at each number, by what a line is called."""
        return {
            label: [self.runs[cell] for cell in cells]
            for label, cells in self.lines.items()
        }

    def table(self, title: str) -> Any:
        """Lines as rows."""
        headings, digits = self.axis.headings, DIGITS[self._metric]
        return figures_table(title, "estimator", headings, self._along(), digits)

    def drawn(self) -> dict[str, list[Point]]:
        """Lines of a picture."""
        return {label: self.axis.points(runs) for label, runs in self._along().items()}

    def rows(self) -> dict[Cell, dict[str, Any]]:
        """Every cell as a row of a file."""
        rows = {}
        for cell, values in self.runs.items():
            figure = figure_of(values)
            columns = figure.columns()
            rows[cell] = {
                "metric": self._metric,
                "estimator": cell.label,
                "loss": cell.loss,
                "shown": cell.logging.cutoff,
                "clicks": cell.logging.n_clicks,
                "runs": figure.n_runs,
                "mean": columns[""],
                "deviation": columns["_deviation"],
                "error": columns["_error"],
            }
        return rows


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


def _numbers(given: list[int] | None, option: str) -> tuple[int, ...]:
    """Those of an option, rising."""
    if given is not None and min(given) < 1:
        raise ValueError(f"{option} must be at least 1; got {min(given)}")
    return tuple(sorted(set(given or ())))


def share_longer(k: int, sizes: Integers) -> float:
    """Of lists of lengths `sizes` [n_queries]: those longer than k."""
    return float(np.mean(sizes > k))


def cutoffs_below(sizes: Integers) -> tuple[int, ...]:
    """Those below the length of most lists; `sizes` [n_queries]."""
    return tuple(k for k in CUTOFFS if share_longer(k, sizes) > MOST) or CUTOFFS[:1]
