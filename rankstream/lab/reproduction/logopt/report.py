"""The table of chapter 9: runs, what is printed and written."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from models.arrays import Floats
from rankstream.lab.reproduction.data import SPLITS
from rankstream.lab.reproduction.engine import Finished, Job, Output, Setup, Study
from rankstream.lab.reproduction.figures import claim_row, claims_table, write_csv
from rankstream.lab.reproduction.logopt.claims import Pairs, claims_of, median_of
from rankstream.lab.reproduction.logopt.pairs import scene_of
from rankstream.lab.reproduction.logopt.plan import (
    AWARE,
    CLOSE,
    ESTIMATED,
    FIRST,
    INTERLEAVED,
    LOGOPT,
    METHODS,
    N_QUERIES,
    N_RUNS,
    OPTIMUM,
    RIVAL,
    TABLE,
    TESTED,
    UNBIASED,
    UNIFORM,
    WITHOUT_RELEVANCE,
    Cell,
    cells_of,
)
from rankstream.lab.reproduction.logopt.runs import (
    ABSOLUTE,
    BINARY,
    SQUARED,
    live_once,
    named,
    settings_digest,
)
from rankstream.lab.reproduction.picture import Lines, Point, picture_of

ENDS = (0.0025, 0.005, CLOSE, 0.02, np.inf)
"""Of differences in clicks per list, by which errors are told."""

DRAWN = (RIVAL, LOGOPT, AWARE, ESTIMATED, OPTIMUM, WITHOUT_RELEVANCE)
"""Whose squared errors fit one scale."""


class LogOptStudy(Study[Cell]):
    """Logging policies of a comparison of two rankers."""

    file = f"{TABLE}.txt"
    n_runs = N_RUNS
    splits = SPLITS
    live_once = staticmethod(live_once)

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        wanted = arguments.impressions
        if wanted is not None and wanted < FIRST:
            raise ValueError(
                f"--impressions, the queries issued, must be at least {FIRST}, after "
                f"which policies are optimised by clicks; got {wanted}"
            )

    def setup(self, place: Path, largest_label: int) -> Setup:
        """Grades are spread over 0 to 4 by the largest label."""
        how, seed = self.arguments.normalisation, self.arguments.seed
        self._setup = Setup(place, how, largest_label, seed, digest=settings_digest())
        return self._setup

    def cells(self, setup: Setup, n_folds: int) -> list[Cell]:
        """Close pairs, and others."""
        del setup, n_folds
        return cells_of(self.arguments.impressions or N_QUERIES)

    def kind_of(self, job: Job[Cell]) -> str:
        """Runs of as many queries take as long."""
        return str(job.cell.n_queries)

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables, pictures and claims."""
        each = {cell.name: pairs_of([cell], found) for cell in cells}
        pairs = pairs_of(cells, found)
        rows = [row for name, some in each.items() for row in _rows(name, some)]
        write_csv(output.out / f"{TABLE}.csv", rows)
        n_pairs = len(pairs.differences)
        title = f"{output.name}, {n_pairs:,} pairs, by queries issued"
        output.console.print(
            _squared_table(pairs, f"{title}: squared error per sample")
        )
        for name, some in each.items():
            for figure, of in ((BINARY, some.binary), (ABSOLUTE, some.absolute)):
                heading = f"{output.name}, pairs {name}: {figure}"
                output.console.print(_means_table(heading, some, of))
        rates = {
            fold: scene_of(self._setup, fold).click_rates()
            for fold in range(1, found.n_folds + 1)
        }
        write_csv(
            output.out / f"{TABLE}-rates.csv",
            [
                {"fold": fold, "ranker": number, "clicks_per_list": f"{rate:.6f}"}
                for fold, some in rates.items()
                for number, rate in enumerate(some.tolist(), 1)
            ],
        )
        output.console.print(_rates_table(rates, f"{output.name}: rankers"))
        output.console.print(_ends_table(pairs, f"{output.name}: wrong in the end"))
        _draw(pairs, each, output)
        claims = claims_of(pairs)
        write_csv(output.out / f"{TABLE}-claims.csv", [*map(claim_row, claims)])
        title = f"{output.name}: what chapter 9 says, of {n_pairs:,} pairs"
        output.console.print(claims_table(claims, title))


def pairs_of(cells: Sequence[Cell], found: Finished) -> Pairs:
    """The pairs that are there, of cells with as many queries."""
    results = [result for cell in cells for _, result in found.of(cell)]

    def figures(figure: str, methods: Sequence[str]) -> dict[str, Floats]:
        return {
            method: np.array([result[named(figure, method)] for result in results])
            for method in methods
        }

    return Pairs(
        cells[0].counts(),
        np.array([result["difference"] for result in results]),
        figures(SQUARED, UNBIASED),
        figures(ABSOLUTE, UNBIASED),
        figures(BINARY, METHODS),
    )


def _rows(name: str, pairs: Pairs) -> list[dict[str, Any]]:
    """Every method after each number of queries, for a file."""
    rows = []
    for method in METHODS:
        for at, count in enumerate(pairs.counts):
            row: dict[str, Any] = {
                "pairs": name,
                "method": method,
                "queries": count,
                "n_pairs": len(pairs.differences),
                "binary_error": f"{pairs.binary[method][:, at].mean():.6g}",
                "absolute_error": "",
                "squared_error": "",
                "over_rival": "",
            }
            if method in UNBIASED:
                over = median_of(pairs.over_rival(method)[:, at])
                row |= {
                    "absolute_error": f"{pairs.absolute[method][:, at].mean():.6g}",
                    "squared_error": f"{np.median(pairs.squared[method][:, at]):.6g}",
                    "over_rival": f"{over.value:.6g}",
                }
            rows.append(row)
    return rows


def _table(title: str, caption: str, counts: Sequence[int]) -> Table:
    table = Table(title=title, title_justify="left", caption=caption)
    table.add_column("lists")
    for count in counts:
        table.add_column(f"{count:,}", justify="right", no_wrap=True)
    return table


def _squared_table(pairs: Pairs, title: str) -> Table:
    """Medians over pairs, over the rival's; its own are as they are."""
    own = np.median(pairs.squared[RIVAL], axis=0)
    caption = f"median over pairs, over that of {RIVAL}, which is {own[-1]:.3g}; ± its "
    table = _table(title, f"{caption}error", pairs.counts)
    for method in UNBIASED:
        told = [median_of(each) for each in pairs.over_rival(method).T]
        table.add_row(
            method, *(f"{each.value:.3f} ± {each.error:.3f}" for each in told)
        )
    return table


def _means_table(title: str, pairs: Pairs, of: Any) -> Table:
    """Means over pairs; interleaving has them as they stay."""
    table = _table(title, "mean over pairs", pairs.counts)
    for method, values in of.items():
        table.add_row(method, *(f"{each:.4g}" for each in values.mean(axis=0)))
    return table


def _ends_table(pairs: Pairs, title: str) -> Table:
    """Errors in the end over how far rankers are apart."""
    table = Table(
        title=title, title_justify="left", caption="share of pairs, of so many"
    )
    table.add_column("clicks per list apart")
    for method in (RIVAL, LOGOPT, ESTIMATED, *INTERLEAVED):
        table.add_column(method, justify="right")
    table.add_column("pairs", justify="right")
    size, low = np.abs(pairs.differences), 0.0
    for high in ENDS:
        inside = (size > low) & (size <= high)
        told = [
            f"{pairs.binary[method][inside, -1].mean():.3f}" if inside.any() else "-"
            for method in (RIVAL, LOGOPT, ESTIMATED, *INTERLEAVED)
        ]
        name = f"{low:g} to {high:g}" if np.isfinite(high) else f"over {low:g}"
        table.add_row(name, *told, str(int(inside.sum())))
        low = high
    return table


def _rates_table(rates: dict[int, Floats], title: str) -> Table:
    """Clicks per list of the rankers of each fold."""
    table = Table(title=title, title_justify="left", caption="clicks per list")
    for heading in ("fold", "least", "25 %", "50 %", "75 %", "most", "deviation"):
        table.add_column(heading, justify="right")
    for fold, some in rates.items():
        told = [*np.quantile(some, (0.0, 0.25, 0.5, 0.75, 1.0)), some.std(ddof=1)]
        table.add_row(str(fold), *(f"{each:.4f}" for each in told))
    return table


def _draw(pairs: Pairs, each: dict[str, Pairs], output: Output) -> None:
    """Squared errors with bands of two errors, and binary errors of both kinds."""
    squared: Lines = {
        method: [
            Point(float(count), told.value, 2.0 * np.nan_to_num(told.error))
            for count, told in zip(
                pairs.counts, map(median_of, pairs.over_rival(method).T), strict=True
            )
        ]
        for method in DRAWN
    }
    panels = {f"median over that of {RIVAL}": squared}
    text = picture_of(
        f"{output.name}: squared error per sample", panels, below="queries issued",
        is_log=True, is_one_scale=True,
    )  # fmt: skip
    output.draw(f"{TABLE}-squared", text)
    wrong: dict[str, Lines] = {
        f"pairs {name}": {
            method: [
                Point(float(count), value, 0.0)
                for count, value in zip(
                    some.counts, some.binary[method].mean(axis=0).tolist(), strict=True
                )
            ]
            for method in (TESTED, RIVAL, UNIFORM, LOGOPT, ESTIMATED, *INTERLEAVED)
        }
        for name, some in each.items()
    }
    text = picture_of(
        f"{output.name}: share of pairs with the wrong sign", wrong,
        below="queries issued", is_log=True, is_one_scale=True,
    )  # fmt: skip
    output.draw(f"{TABLE}-binary", text)
