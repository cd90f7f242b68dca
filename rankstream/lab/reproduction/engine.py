"""Tables of the literature: runs over the cores, kept as lines of a file, and a report.

What is there is not run again: a table that was stopped goes on where it was.
"""

import argparse
import json
import math
import multiprocessing
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from rich.console import Console

from models.arrays import Floats
from rankstream.lab.closed_loops.performance import Conventions
from rankstream.lab.reproduction.data import SPLITS, folds_asked, prepared
from rankstream.operations.plots.files import check_drawable
from rankstream.operations.terminal.progress_line import ProgressLine

Work = TypeVar("Work")
Done = TypeVar("Done")

Result = dict[str, Any]
"""What a run gave; its "key" tells it from all others."""

SECONDS = "seconds"
"""Where a result says how long a core was busy with it."""

AHEAD = 4
"""Jobs that wait for each process, so that none stands still."""

N_MEASURED = 3
"""Runs of each kind after which its seconds are known well enough."""

WIDE = 130
"""Columns of a table that is not printed in a terminal."""


class CellLike(Protocol):
    """One entry of a table."""

    def key(self) -> str:
        """What tells it from all others."""


AnyCell = TypeVar("AnyCell", bound=CellLike)


@dataclass(frozen=True)
class Job(Generic[AnyCell]):
    """One run of a cell; folds count from 1."""

    cell: AnyCell
    fold: int
    run: int

    def key(self) -> str:
        """What tells this run from all others."""
        return f"{self.cell.key()}/{self.fold}/{self.run}"


@dataclass(frozen=True)
class Setup:
    """What all runs of a table share.

    Parameters
    ----------
    place
        Where prepared data lie; its name tells them from all others.
    normalisation
        Of features, within each query.
    grades
        Of the users' relevance; or the least label that is relevant.
    seed
        From which each run derives its own.
    conventions
        Of NDCG, where they can be chosen.
    digest
        Of settings that are the same for all cells, where there are any.
    """

    place: Path
    normalisation: str
    grades: int
    seed: int
    conventions: Conventions | None = None
    digest: str = ""

    def key(self) -> str:
        """What of it changes results."""
        parts: list[object] = [self.place.name, self.normalisation]
        parts += [self.grades, self.seed]
        parts += asdict(self.conventions).values() if self.conventions else ()
        return "/".join(map(str, [*parts, *filter(None, [self.digest])]))


class Finished(NamedTuple):
    """Results by key, and how many of each cell there can be."""

    results: Mapping[str, Result]
    prefix: str
    n_folds: int
    n_runs: int

    def of(self, cell: CellLike) -> Iterator[tuple[tuple[int, int], Result]]:
        """The results of a cell that are there, by fold and run from 0."""
        for fold, run in np.ndindex(self.n_folds, self.n_runs):
            key = f"{self.prefix}/{Job(cell, fold + 1, run).key()}"
            if key in self.results:
                yield (fold, run), self.results[key]

    def values(self, cell: CellLike, what: str, *n_points: int) -> Floats:
        """A figure of all runs, [n_folds, n_runs, *n_points]; NaN where missing."""
        values = np.full((self.n_folds, self.n_runs, *n_points), math.nan)
        for at, result in self.of(cell):
            values[at] = result.get(what, math.nan)
        return values


class Output(NamedTuple):
    """Where a report goes, and of what data it is."""

    name: str
    out: Path
    console: Console

    def draw(self, file: str, picture: str) -> None:
        """Write a picture beside the tables."""
        (self.out / f"{file}.svg").write_text(picture, encoding="utf-8")


class Study(ABC, Generic[AnyCell]):
    """What is a table's own.

    Parameters
    ----------
    arguments
        What was asked for; it is refused here where nothing of the data must be read.
    """

    file: ClassVar[str]
    """Of kept runs."""
    n_runs: ClassVar[int] = 25
    """Of each fold, where nothing else is asked for."""
    splits: ClassVar[Sequence[str]] = SPLITS

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    @staticmethod
    @abstractmethod
    def live_once(setup: Setup, job: Any) -> Result:
        """One run; other processes get it, so it is a function of a module."""

    @abstractmethod
    def setup(self, place: Path, largest_label: int) -> Setup:
        """What all runs share, once labels are known."""

    @abstractmethod
    def cells(self, setup: Setup, n_folds: int) -> list[AnyCell]:
        """The entries of the table."""

    def jobs(
        self, cells: list[AnyCell], *, n_folds: int, n_runs: int
    ) -> list[Job[AnyCell]]:
        """All runs, run by run: what is stopped early has all folds and cells."""
        return [
            Job(cell, fold, run)
            for run in range(n_runs)
            for fold in range(1, n_folds + 1)
            for cell in cells
        ]

    def kind_of(self, job: Job[AnyCell]) -> str | None:
        """What runs that take as long have in common; None: nobody asks how long."""
        del job
        return None

    @abstractmethod
    def report(self, cells: list[AnyCell], found: Finished, output: Output) -> None:
        """Print and write all there is."""


def reproduce(study: Study[Any]) -> int:
    """Run what is missing, then print and write all there is."""
    check_drawable()
    asked = study.arguments
    name = asked.name or asked.data.resolve().name
    out = asked.out or Path("reproduction") / name
    out.mkdir(parents=True, exist_ok=True)
    n_runs = study.n_runs if asked.runs is None else asked.runs
    n_folds = folds_asked(asked.data, asked.folds, n_runs, asked.processes)
    setup = study.setup(
        *prepared(asked.data, out, n_folds, asked.normalisation, study.splits)
    )
    cells = study.cells(setup, n_folds)
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    results = resumed_runs(
        study,
        setup,
        study.jobs(cells, n_folds=n_folds, n_runs=n_runs),
        out / study.file,
        n_processes=asked.processes,
        console=console,
    )
    found = Finished(results, setup.key(), n_folds, n_runs)
    study.report(cells, found, Output(name, out, console))
    console.print(f"written to {out}", highlight=False)
    return 0


def finished_runs(path: Path) -> dict[str, Result]:
    """Results by key; a line that was cut off is not there."""
    found: dict[str, Result] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").split("\n"):
        text, _, checksum = line.rpartition(" ")
        if text and checksum == f"{zlib.crc32(text.encode()):08x}":
            result = json.loads(text)
            found[result["key"]] = result
    return found


def resumed_runs(
    study: Study[Any],
    setup: Setup,
    jobs: Sequence[Job[Any]],
    path: Path,
    *,
    n_processes: int,
    console: Console,
) -> dict[str, Result]:
    """Results by key, after those that are missing are run.

    Where runs have kinds, a few of each are run first, then it is said what the rest
    takes. At the end it is said what all took, whenever they were run.
    """
    results = finished_runs(path)
    named = {f"{setup.key()}/{job.key()}": job for job in jobs}
    kinds = {job: study.kind_of(job) for job in jobs}
    is_timed = None not in kinds.values()
    missing = [job for key, job in named.items() if key not in results]
    first = to_measure(missing, kinds.get) if is_timed else []
    rest = [job for job in missing if job not in {*first}]
    done = len(named) - len(missing)
    if is_timed and missing and not rest:
        console.print(
            f"{len(missing):,} runs, few of each kind: what they take is said at the "
            "end, and is what more of them would take each",
            highlight=False,
        )
    work = partial(_timed_run, type(study).live_once, setup, is_timed)
    with ProgressLine("runs", total=len(named), start=done, unit="runs") as line:
        for few in (first, rest):
            if is_timed and few is rest and rest:
                known: dict[str | None, list[Result]] = {}
                for key, job in named.items():
                    if key in results:
                        known.setdefault(kinds[job], []).append(results[key])
                hours = core_hours(rest, kinds.get, known)
                console.print(f"{len(rest):,} runs are left: {hours:.2f} core-hours")
            for result in kept_runs(work, few, path, n_processes=n_processes):
                results[result["key"]] = result
                done += 1
                line.show(done)
    if is_timed:
        hours = sum(float(results[key][SECONDS]) for key in named) / 3600.0
        console.print(f"{len(named):,} runs took {hours:.2g} core-hours")
    return results


def _timed_run(
    live_once: Callable[[Setup, Any], Result],
    setup: Setup,
    is_timed: bool,
    job: Job[Any],
) -> Result:
    begun_s = time.process_time()
    found = {"key": f"{setup.key()}/{job.key()}", **live_once(setup, job)}
    spent_s = round(time.process_time() - begun_s, 3)
    return found | {SECONDS: spent_s} if is_timed else found


def kept_runs(
    work: Callable[[Work], Result],
    jobs: Sequence[Work],
    path: Path,
    *,
    n_processes: int,
) -> Iterator[Result]:
    """Run jobs over processes; each result is on disk before it is handed on.

    Parameters
    ----------
    path
        The file of results; lines are added.
    """
    # A line that was cut off must not swallow the next one.
    is_whole = not path.exists() or path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("" if is_whole else "\n")
        for result in run_over(work, jobs, n_processes):
            text = json.dumps(result)
            file.write(f"{text} {zlib.crc32(text.encode()):08x}\n")
            file.flush()
            yield result


def run_over(
    work: Callable[[Work], Done], jobs: Sequence[Work], n_processes: int
) -> Iterator[Done]:
    """What jobs give, as they are finished.

    Parameters
    ----------
    work
        Runs a job; other processes get it as it can be pickled.
    n_processes
        1: all is run in this one.
    """
    if n_processes == 1:
        yield from map(work, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
        running: set[Future[Done]] = set()
        try:
            for job in jobs:
                running.add(pool.submit(work, job))
                if len(running) >= AHEAD * n_processes:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from _results(done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from _results(done)
        except BaseException:  # Ctrl-C, or whoever reads us stops: nobody waits
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _results(done: Iterable[Future[Done]]) -> Iterator[Done]:
    """What was found first, so that a job that failed costs no other."""
    for each in sorted(done, key=lambda future: future.exception() is not None):
        yield each.result()


def to_measure(jobs: Sequence[Work], kind_of: Callable[[Work], Any]) -> list[Work]:
    """The first few jobs of each kind, as they are to be run first."""
    found: dict[Any, list[Work]] = {}
    for job in jobs:
        of_kind = found.setdefault(kind_of(job), [])
        if len(of_kind) < N_MEASURED:
            of_kind.append(job)
    return [job for few in found.values() for job in few]


def core_hours(
    jobs: Sequence[Work],
    kind_of: Callable[[Work], str | None],
    results: Mapping[Any, Sequence[Result]],
) -> float:
    """What jobs will take, by the median seconds of finished runs of their kind.

    Parameters
    ----------
    results
        Finished runs by kind; a kind without any counts as the mean of the others.
    """
    known = {
        kind: float(median(result[SECONDS] for result in found))
        for kind, found in results.items()
        if found
    }
    other = sum(known.values()) / len(known) if known else 0.0
    return sum(known.get(kind_of(job), other) for job in jobs) / 3600.0


def checkpoints_of(n_impressions: int) -> list[int]:
    """Impressions after which a run is measured: 1, 2, 5, 10, 20 ... and its end."""
    found = [
        step * 10**power
        for power in range(2, 9)
        for step in (1, 2, 5)
        if step * 10**power < n_impressions
    ]
    return [*found, n_impressions]
