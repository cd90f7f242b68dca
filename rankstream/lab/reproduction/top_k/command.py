"""The tables of chapter 7: runs, what is printed and written."""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from rankstream.lab.reproduction.data import (
    SPLITS,
    VALIDATION,
    folds_asked,
    prepared,
    world_of,
)
from rankstream.lab.reproduction.kept_runs import resumed_runs
from rankstream.lab.reproduction.top_k.loss_report import loss_cells, report_losses
from rankstream.lab.reproduction.top_k.plan import (
    CUTOFFS,
    DISPLAYED,
    LOSSES,
    MOST,
    N_CLICKS,
    N_RUNS,
    TOP_K,
    jobs_of,
)
from rankstream.lab.reproduction.top_k.report import Asked, report_top_k, top_k_cells
from rankstream.lab.reproduction.top_k.runs import Bed, kind_of, live_once

Integers = npt.NDArray[np.int64]

WIDE = 130
"""Columns of a table that is not printed in a terminal."""

PARTS = {TOP_K: (top_k_cells, report_top_k), LOSSES: (loss_cells, report_losses)}
"""Of a table: its cells, and what prints and writes it."""


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print and write all there is."""
    name = arguments.name or arguments.data.resolve().name
    out = arguments.out or Path("reproduction") / name
    out.mkdir(parents=True, exist_ok=True)
    n_runs = N_RUNS if arguments.runs is None else arguments.runs
    data, folds, n_processes = arguments.data, arguments.folds, arguments.processes
    n_folds = folds_asked(data, folds, n_runs, n_processes)
    shown = _numbers(arguments.shown, "--shown")
    n_clicks = _numbers(arguments.clicks, "--clicks") or N_CLICKS
    bed = _bed(arguments, out, n_folds)
    sizes = _sizes(bed, n_folds)
    cutoffs = shown or cutoffs_below(sizes)
    asked = Asked(
        name,
        bed.key(),
        cutoffs,
        n_clicks,
        n_folds,
        n_runs,
        {k: share_longer(k, sizes) for k in (*cutoffs, DISPLAYED)},
    )
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    cells_of, report = PARTS[arguments.table]
    jobs = jobs_of(cells_of(asked), n_folds=n_folds, n_runs=n_runs)
    results = resumed_runs(
        partial(live_once, bed),
        {f"{bed.key()}/{job.key()}": job for job in jobs},
        kind_of,
        out / "top-k.txt",
        n_processes=arguments.processes,
        console=console,
    )
    report(asked, results, out, console)
    console.print(f"written to {out}", highlight=False)
    return 0


def _numbers(given: list[int] | None, option: str) -> tuple[int, ...]:
    """Those of an option, rising."""
    if given is not None and min(given) < 1:
        raise ValueError(f"{option} must be at least 1; got {min(given)}")
    return tuple(sorted(set(given or ())))


def _bed(arguments: argparse.Namespace, out: Path, n_folds: int) -> Bed:
    how = arguments.normalisation
    place, largest = prepared(arguments.data, out, n_folds, how, (*SPLITS, VALIDATION))
    # The two highest grades are relevant, as in the thesis.
    wanted = arguments.relevant_from
    relevant_from = max(1, largest - 1) if wanted is None else wanted
    if not 1 <= relevant_from <= largest:
        raise ValueError(
            f"--relevant-from must lie in 1..{largest}, the labels that there are; "
            f"got {relevant_from}"
        )
    return Bed(place, how, relevant_from, arguments.seed)


def _sizes(bed: Bed, n_folds: int) -> Integers:
    """Lengths of the lists of all training queries, [n_queries]."""
    found = [
        np.diff(world_of(bed.place, fold, "train", bed.normalisation).offsets)
        for fold in range(1, n_folds + 1)
    ]
    return np.concatenate(found)


def share_longer(k: int, sizes: Integers) -> float:
    """Of lists of lengths `sizes` [n_queries]: those longer than k."""
    return float(np.mean(sizes > k))


def cutoffs_below(sizes: Integers) -> tuple[int, ...]:
    """Those below the length of most lists; `sizes` [n_queries]."""
    return tuple(k for k in CUTOFFS if share_longer(k, sizes) > MOST) or CUTOFFS[:1]
