"""The table of chapter 10: runs, what is printed and written."""

import argparse
from functools import partial
from pathlib import Path

from rich.console import Console

from rankstream.lab.reproduction.data import (
    SPLITS,
    VALIDATION,
    folds_asked,
    prepared,
)
from rankstream.lab.reproduction.interventions.figures import curves_of
from rankstream.lab.reproduction.interventions.plan import (
    FIRST,
    N_IMPRESSIONS,
    N_RUNS,
    PARTS,
    TABLE,
    Cell,
    Job,
    cells_of,
    jobs_of,
)
from rankstream.lab.reproduction.interventions.report import report
from rankstream.lab.reproduction.interventions.runs import Bed, live_once
from rankstream.lab.reproduction.kept_runs import resumed_runs

WIDE = 130
"""Columns of a table that is not printed in a terminal."""


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print and write all there is."""
    name = arguments.name or arguments.data.resolve().name
    n_runs = N_RUNS if arguments.runs is None else arguments.runs
    data, folds, n_processes = arguments.data, arguments.folds, arguments.processes
    n_folds = folds_asked(data, folds, n_runs, n_processes)
    if arguments.impressions is not None and arguments.impressions < FIRST:
        raise ValueError(
            f"--impressions must be at least {FIRST}, after which the first "
            f"intervention comes; got {arguments.impressions}"
        )
    out = arguments.out or Path("reproduction") / name
    out.mkdir(parents=True, exist_ok=True)
    bed = _bed(arguments, out, n_folds)
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    cells = _cells(arguments)
    jobs = jobs_of(cells, n_folds=n_folds, n_runs=n_runs)
    results = resumed_runs(
        partial(live_once, bed),
        {f"{bed.key()}/{job.key()}": job for job in jobs},
        kind_of,
        out / f"{TABLE}.txt",
        n_processes=arguments.processes,
        console=console,
    )
    found = {
        cell: curves_of(cell, results, bed.key(), n_folds=n_folds, n_runs=n_runs)
        for cell in cells
    }
    report(name, found, out, console, seed=arguments.seed)
    console.print(f"written to {out}", highlight=False)
    return 0


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    n_impressions = arguments.impressions or N_IMPRESSIONS
    parts = arguments.parts or PARTS
    return [
        cell
        for part in PARTS
        if part in parts
        for cell in cells_of(part, n_impressions)
    ]


def _bed(arguments: argparse.Namespace, out: Path, n_folds: int) -> Bed:
    how = arguments.normalisation
    place, largest = prepared(arguments.data, out, n_folds, how, (*SPLITS, VALIDATION))
    return Bed(place, how, largest + 1, arguments.seed)


def kind_of(job: Job) -> str:
    """What runs that take as long have in common."""
    cell = job.cell
    return f"{cell.part}/{cell.method}/{cell.loss}/{cell.n_interventions}"
