"""The tables of online learning to rank: runs, what is printed and written."""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from rankstream.lab.closed_loops.performance import Conventions
from rankstream.lab.reproduction.data import (
    SPLITS,
    folds_asked,
    prepared,
)
from rankstream.lab.reproduction.kept_runs import finished_runs
from rankstream.lab.reproduction.literature import published_of
from rankstream.lab.reproduction.picture import picture_of
from rankstream.lab.reproduction.plan import (
    EXACT,
    IMPRESSIONS,
    LAG_TABLE,
    LEARNERS_TABLE,
    LONG_RUN,
    PUBLISHED,
    Cell,
    cells_of,
    jobs_of,
)
from rankstream.lab.reproduction.runs import Bed, n_grades_of, run_all
from rankstream.lab.reproduction.summary import (
    OFFLINE,
    ONLINE,
    RECENT,
    Curves,
    curve_rows,
    curves_of,
    write_csv,
)
from rankstream.lab.reproduction.tables import (
    comparison_rows,
    comparison_table,
    orderings,
    orderings_table,
)
from rankstream.operations.terminal.progress_line import ProgressLine

WIDE = 130
"""Columns of a table that is not printed in a terminal."""


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print and write all there is."""
    name = arguments.name or arguments.data.resolve().name
    out = arguments.out or Path("reproduction") / name
    out.mkdir(parents=True, exist_ok=True)
    data, folds, n_processes = arguments.data, arguments.folds, arguments.processes
    n_folds = folds_asked(data, folds, arguments.runs, n_processes)
    bed = _bed(arguments, out, n_folds)
    cells = _cells(arguments)
    jobs = jobs_of(cells, n_folds=n_folds, n_runs=arguments.runs)
    path = out / "runs.txt"
    results = finished_runs(path)
    missing = [job for job in jobs if f"{bed.key()}/{job.key()}" not in results]
    done = len(jobs) - len(missing)
    with ProgressLine("runs", total=len(jobs), start=done, unit="runs") as line:
        everyone = run_all(bed, missing, path, n_processes=arguments.processes)
        for number, result in enumerate(everyone, start=done + 1):
            results[result["key"]] = result
            line.show(number)
    curves = {
        cell: curves_of(
            cell, results, bed.key(), n_folds=n_folds, n_runs=arguments.runs
        )
        for cell in cells
    }
    _report(arguments, name, out, curves)
    return 0


def _bed(arguments: argparse.Namespace, out: Path, n_folds: int) -> Bed:
    how = arguments.normalisation
    place, largest = prepared(arguments.data, out, n_folds, how, SPLITS)
    return Bed(
        place,
        how,
        n_grades_of(largest),
        arguments.seed,
        _conventions(arguments),
    )


def _conventions(arguments: argparse.Namespace) -> Conventions:
    return Conventions(arguments.cutoff, arguments.gain, purge=not arguments.keep_empty)


def is_as_printed(arguments: argparse.Namespace, n_impressions: int) -> bool:
    """Whether figures mean what those of the printed tables do."""
    return (
        arguments.table == LEARNERS_TABLE
        and n_impressions == IMPRESSIONS[LEARNERS_TABLE]
        and arguments.normalisation == "min-max"
        and _conventions(arguments) == Conventions()
    )


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    forms = (PUBLISHED, EXACT) if arguments.published else (EXACT,)
    n_impressions = arguments.impressions or IMPRESSIONS[arguments.table]
    cells = [
        cell
        for form in forms
        for cell in cells_of(arguments.table, form, n_impressions)
        if arguments.learners is None or cell.learner in arguments.learners
        if arguments.users is None or cell.users in arguments.users
    ]
    if not cells:
        raise ValueError(
            f"table {arguments.table} must have some of the learners and users "
            f"asked for; got {arguments.learners} and {arguments.users}"
        )
    return cells


def _report(
    arguments: argparse.Namespace, name: str, out: Path, curves: dict[Cell, Curves]
) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    n_impressions = next(iter(curves)).n_impressions
    table = arguments.table
    is_printed = is_as_printed(arguments, n_impressions)
    rows = comparison_rows(curves, published_of(name) if is_printed else {})
    suffix = f"{table}-{n_impressions}"
    write_csv(out / f"{suffix}-table.csv", rows)
    write_csv(out / f"{suffix}-curves.csv", curve_rows(curves))
    for form in dict.fromkeys(cell.form for cell in curves):
        shown = {cell: found for cell, found in curves.items() if cell.form == form}
        title = f"{name}: NDCG@{arguments.cutoff} on held-out queries by impressions"
        picture = out / f"{suffix}-{form}.svg"
        picture.write_text(picture_of(title, shown), encoding="utf-8")
    after = f"after {n_impressions:,} impressions"
    titles: dict[str, Any] = {
        OFFLINE: f"{name}: NDCG@{arguments.cutoff} of the ranker, {after}",
        ONLINE: f"{name}: discounted NDCG@{arguments.cutoff} of lists shown, {after}",
        RECENT: f"{name}: NDCG@{arguments.cutoff} of the last lists shown, {after}",
    }
    for what, title in titles.items():
        if what == RECENT and table != LAG_TABLE:
            continue
        console.print(comparison_table(rows, what, title))
    if table == LONG_RUN:
        found = orderings(curves)
        console.print(orderings_table(found, f"{name}: orderings, {after}"))
    console.print(f"written to {out}", highlight=False)
