"""`rankstream reproduce`: the tables of online learning to rank, from LETOR folders."""

import argparse
import os
from pathlib import Path
from typing import Any

from rich.console import Console

from models.closed_loops.measuring import Conventions
from rankstream.commands.progress_line import ProgressLine
from rankstream.commands.reproduction.data import (
    PARTS,
    n_folds_of,
    prepare,
    world_of,
)
from rankstream.commands.reproduction.picture import picture_of
from rankstream.commands.reproduction.plan import (
    BASELINES,
    EXACT,
    LONG_RUNS,
    PUBLISHED,
    Cell,
    cells_of,
    jobs_of,
    lag_cells,
)
from rankstream.commands.reproduction.published import DATA_SETS, published_of
from rankstream.commands.reproduction.runs import (
    Bed,
    finished_runs,
    n_grades_of,
    run_all,
)
from rankstream.commands.reproduction.summary import (
    OFFLINE,
    ONLINE,
    RECENT,
    Curves,
    curve_rows,
    curves_of,
    write_csv,
)
from rankstream.commands.reproduction.tables import (
    comparison_rows,
    comparison_table,
    orderings,
    orderings_table,
)

SUMMARY = "the tables of online learning to rank, from LETOR folders"

IMPRESSIONS = {5: 10_000, 6: 100_000}
"""Of a run, by chapter, where nothing else is asked for."""

LAG_IMPRESSIONS = 50_000

WIDE = 130
"""Columns of a table that is not printed in a terminal."""

LEARNERS = sorted({*BASELINES, *(learner for learner, _ in LONG_RUNS)})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """examples:
  rankstream reproduce MQ2008                  learners of chapter 5, exact forms
  rankstream reproduce MQ2008 --published      and as the published code had them
  rankstream reproduce MQ2008 --chapter 6      PDGD against DBGD in the long run

Runs that are finished are kept in the output folder, and not run again: stop at any
time, and call again to go on, or with more runs to add to them."""
    parser.add_argument(
        "data", type=Path, help="LETOR folder: Fold1 .. Fold5, or parts with folds.json"
    )
    parser.add_argument("--chapter", type=int, choices=(5, 6), default=5)
    parser.add_argument(
        "--lags",
        action="store_true",
        help="instead of a chapter: PDGD whose served ranker lacks the last 0, 100, "
        "1,000 or 10,000 impressions",
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="run the forms of the published code too: its stop rule, decay, sign, "
        "ties, and the noise of 10,000 sampled assignments",
    )
    parser.add_argument("--runs", type=int, default=25, help="of each fold")
    parser.add_argument("--folds", type=int, help="only the first so many")
    parser.add_argument("--impressions", type=int, help="of each run")
    parser.add_argument(
        "--learners", nargs="+", choices=LEARNERS, help="only these", metavar="NAME"
    )
    parser.add_argument(
        "--users", nargs="+", help="only these", metavar="NAME", default=None
    )
    parser.add_argument(
        "--name",
        help=f"data set to compare with ({', '.join(DATA_SETS)}); the folder's name",
    )
    parser.add_argument("--out", type=Path, help="folder for results")
    parser.add_argument("--seed", type=int, default=1, help="of every random draw")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="runs at once"
    )
    parser.add_argument(
        "--normalisation", choices=("min-max", "standard", "none"), default="min-max"
    )
    parser.add_argument(
        "--gain", choices=("exponential", "linear"), default="exponential"
    )
    parser.add_argument("--cutoff", type=int, default=10, help="of lists and NDCG")
    parser.add_argument(
        "--keep-empty",
        action="store_true",
        help="count held-out queries without a relevant document as 0",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print and write all there is."""
    name = arguments.name or arguments.data.resolve().name
    out = arguments.out or Path("reproduction") / name
    out.mkdir(parents=True, exist_ok=True)
    n_folds = _n_folds(arguments)
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


def _n_folds(arguments: argparse.Namespace) -> int:
    n_folds = n_folds_of(arguments.data)
    if arguments.folds is not None:
        n_folds = min(n_folds, arguments.folds)
    for option in ("runs", "processes"):
        if getattr(arguments, option) < 1 or n_folds < 1:
            raise ValueError(f"--{option} and --folds must be at least 1")
    return n_folds


def _bed(arguments: argparse.Namespace, out: Path, n_folds: int) -> Bed:
    place = out / "data"
    largest = 0
    for fold in range(1, n_folds + 1):
        prepare(arguments.data, fold, place, normalisation=arguments.normalisation)
        for part in PARTS:
            world = world_of(place, fold, part, arguments.normalisation)
            largest = max(largest, int(world.labels.max()))
    conventions = Conventions(
        arguments.cutoff, arguments.gain, purge=not arguments.keep_empty
    )
    return Bed(
        place,
        arguments.normalisation,
        n_grades_of(largest),
        arguments.seed,
        conventions,
    )


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    forms = (PUBLISHED, EXACT) if arguments.published else (EXACT,)
    n_impressions = _n_impressions(arguments)
    cells = [
        cell
        for form in forms
        for cell in (
            lag_cells(form, n_impressions)
            if arguments.lags
            else cells_of(arguments.chapter, form, n_impressions)
        )
        if arguments.learners is None or cell.learner in arguments.learners
        if arguments.users is None or cell.users in arguments.users
    ]
    if not cells:
        raise ValueError(
            f"chapter {arguments.chapter} must have some of the learners and users "
            f"asked for; got {arguments.learners} and {arguments.users}"
        )
    return cells


def _n_impressions(arguments: argparse.Namespace) -> int:
    if arguments.impressions is not None:
        return int(arguments.impressions)
    return LAG_IMPRESSIONS if arguments.lags else IMPRESSIONS[arguments.chapter]


def _report(
    arguments: argparse.Namespace, name: str, out: Path, curves: dict[Cell, Curves]
) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    n_impressions = next(iter(curves)).n_impressions
    is_printed = arguments.chapter == 5 and n_impressions == IMPRESSIONS[5]
    about = "lags" if arguments.lags else f"chapter{arguments.chapter}"
    rows = comparison_rows(curves, published_of(name) if is_printed else {})
    suffix = f"{about}-{n_impressions}"
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
        if what == RECENT and not arguments.lags:
            continue
        console.print(comparison_table(rows, what, title))
    if arguments.chapter == 6 and not arguments.lags:
        found = orderings(curves)
        console.print(orderings_table(found, f"{name}: orderings, {after}"))
    console.print(f"written to {out}", highlight=False)
