"""The table of chapter 8: runs, what is printed and written."""

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from models.arrays import Floats
from rankstream.lab.reproduction.data import SPLITS, VALIDATION
from rankstream.lab.reproduction.engine import Finished, Job, Output, Setup, Study
from rankstream.lab.reproduction.figures import (
    claim_row,
    claims_table,
    figure_of,
    write_csv,
)
from rankstream.lab.reproduction.genspec.claims import (
    SHARES,
    SURE,
    Curves,
    claims_of,
    delays_of,
)
from rankstream.lab.reproduction.genspec.plan import (
    ALL_LISTS,
    ANY_TIME,
    BANDITS,
    CONFIDENCES,
    GENERAL,
    LOGGING,
    N_LISTS,
    N_RUNS,
    ONE_LOOK,
    POLICIES,
    RULES,
    SEA,
    SPECIAL,
    TABLE,
    TESTS,
    UNBOUNDED,
    Cell,
    bounded,
    cells_of,
    ruled,
)
from rankstream.lab.reproduction.genspec.runs import (
    FIGURES,
    TRAIN,
    UNSEEN,
    live_once,
    named,
    settings_digest,
)
from rankstream.lab.reproduction.picture import Lines, picture_of

ALONE = LOGGING, GENERAL, SPECIAL

DRAWN = {
    "policies": (*ALONE, UNBOUNDED, *(bounded(ANY_TIME, each) for each in CONFIDENCES)),
    "bounds": (
        SPECIAL,
        *(
            bounded(bound, each)
            for bound in (ANY_TIME, ONE_LOOK, SEA)
            for each in CONFIDENCES[1:]
        ),
    ),
    "bandits": (
        LOGGING,
        SPECIAL,
        *(bounded(ANY_TIME, each) for each in CONFIDENCES),
        *BANDITS,
    ),
}
"""Policies by picture, on queries with clicks."""

DRAWN_UNSEEN = LOGGING, GENERAL, *(bounded(ANY_TIME, each) for each in CONFIDENCES)


class GenspecStudy(Study[Cell]):
    """Meta-policies of bounds beside the policies that they choose from."""

    file = f"{TABLE}.txt"
    n_runs = N_RUNS
    splits = (*SPLITS, VALIDATION)
    live_once = staticmethod(live_once)

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        wanted = arguments.impressions
        if wanted is not None and wanted < 1:
            raise ValueError(
                "--impressions, the lists of each query, must be at least 1; got "
                f"{wanted}"
            )

    def setup(self, place: Path, largest_label: int) -> Setup:
        """The logging ranker is trained as in chapter 7: two grades are relevant."""
        how, seed = self.arguments.normalisation, self.arguments.seed
        relevant_from = max(1, largest_label - 1)
        return Setup(place, how, relevant_from, seed, digest=settings_digest())

    def cells(self, setup: Setup, n_folds: int) -> list[Cell]:
        """One of each kind of users."""
        del setup, n_folds
        return cells_of(self.arguments.impressions or N_LISTS)

    def kind_of(self, job: Job[Cell]) -> str:
        """Runs of as many lists take as long."""
        return str(job.cell.n_lists)

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables, pictures and claims."""
        each = [curves_of(cell, found) for cell in cells]
        rows = [row for cell in cells for row in _rows(cell, found)]
        write_csv(output.out / f"{TABLE}.csv", rows)
        for curves in each:
            _print_tables(curves, output)
        _draw(each, output)
        claims = [claim for curves in each for claim in claims_of(curves)]
        write_csv(output.out / f"{TABLE}-claims.csv", [*map(claim_row, claims)])
        title = f"{output.name}: what chapter 8 says, by lists of each query"
        output.console.print(claims_table(claims, title))


def curves_of(cell: Cell, found: Finished) -> Curves:
    """The runs of a cell that are there."""
    counts = cell.counts()
    train, unseen = (
        {
            name: found.values(cell, named(figure, name), len(counts))
            for name in POLICIES
        }
        for figure in (TRAIN, UNSEEN)
    )
    return Curves(cell.slope, counts, train, unseen)


def _rows(cell: Cell, found: Finished) -> list[dict[str, Any]]:
    """Every policy after each number of lists, for a file."""
    rows = []
    counts = cell.counts()
    for name in POLICIES:
        of = {
            figure: found.values(cell, named(figure, name), len(counts))
            for figure in FIGURES
        }
        for at, count in enumerate(counts):
            row: dict[str, Any] = {
                "slope": cell.slope,
                "policy": name,
                "lists": count,
                "runs": figure_of(of[TRAIN][..., at]).n_runs,
            }
            for figure, values in of.items():
                row |= _columns(figure, values[..., at])
            rows.append(row)
    return rows


def _columns(name: str, values: Floats) -> dict[str, str]:
    """Mean and error; empty where a policy has no such figure."""
    figure = figure_of(values)
    if not figure.n_runs:
        return {name: "", f"{name}_error": ""}
    return {name: f"{figure.mean:.6f}", f"{name}_error": f"{figure.error:.6f}"}


def _print_tables(curves: Curves, output: Output) -> None:
    title = f"{output.name}, slope {curves.slope:g}, by lists of each query"
    with_clicks = "NDCG on queries with clicks"
    of_rules = [ruled(test, rule) for test in (UNBOUNDED, SURE) for rule in RULES]
    for heading, names, of in (
        (with_clicks, (*ALONE, ALL_LISTS, *BANDITS, *TESTS), curves.train),
        (f"{with_clicks}, by rules", of_rules, curves.train),
        ("NDCG on unseen queries", DRAWN_UNSEEN, curves.unseen),
    ):
        lines = {name: of[name] for name in names}
        output.console.print(_means_table(f"{title}: {heading}", curves.counts, lines))
    output.console.print(_delay_table(curves, f"{title}: delay"))


def _means_table(
    title: str, counts: Sequence[int], lines: Mapping[str, Floats]
) -> Table:
    """Policies as rows; errors are alike, and the largest says enough."""
    means = {
        name: [figure_of(values[..., at]) for at in range(len(counts))]
        for name, values in lines.items()
    }
    errors = [figure.error for row in means.values() for figure in row]
    largest = max(filter(math.isfinite, errors), default=math.nan)
    table = Table(
        title=title,
        title_justify="left",
        caption=f"standard errors: at most {largest:.4f}",
    )
    table.add_column("policy")
    for count in counts:
        table.add_column(f"{count:,}", justify="right", no_wrap=True)
    for name, row in means.items():
        table.add_row(name, *(f"{figure.mean:.3f}" for figure in row))
    return table


def _delay_table(curves: Curves, title: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        caption="lists until a policy has a part of what there is to gain; beside "
        "specialisation that has the same lists for training, and all",
    )
    table.add_column("policy")
    for share in SHARES:
        table.add_column(f"{share:.0%}", justify="right")
        table.add_column("times", justify="right")
    delays = delays_of(curves)
    for delay in delays:
        cells = []
        for lists, least in zip(delay.lists, delays[0].lists, strict=True):
            if math.isfinite(lists):
                cells += [f"{lists:,.0f}", f"{lists / least:.1f}"]
            else:
                cells += ["never", "-"]
        table.add_row(delay.policy, *cells)
    return table


def _draw(each: Sequence[Curves], output: Output) -> None:
    for file, names in DRAWN.items():
        panels = {
            f"slope of clicks {curves.slope:g}": _lines(curves, names, TRAIN)
            for curves in each
        }
        title = f"{output.name}: NDCG on queries with clicks"
        _draw_panels(file, title, panels, output)
    panels = {
        f"slope of clicks {curves.slope:g}": _lines(curves, DRAWN_UNSEEN, UNSEEN)
        for curves in each
    }
    _draw_panels("unseen", f"{output.name}: NDCG on unseen queries", panels, output)


def _draw_panels(
    file: str, title: str, panels: dict[str, Lines], output: Output
) -> None:
    text = picture_of(
        title, panels, below="lists of each query", is_log=True, is_one_scale=True
    )
    output.draw(f"{TABLE}-{file}", text)


def _lines(curves: Curves, names: Sequence[str], figure: str) -> Lines:
    """With bands of two standard errors."""
    of = curves.train if figure == TRAIN else curves.unseen
    return {
        name: [
            (mean := figure_of(of[name][..., at])).point(float(count), 2.0 * mean.error)
            for at, count in enumerate(curves.counts)
        ]
        for name in names
    }
