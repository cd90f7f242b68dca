"""Runs over the cores, whose results are kept as lines of a file.

What is there is not run again: a table that was stopped goes on where it was.
"""

import json
import multiprocessing
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from rankstream.lab.reproduction.cost import SECONDS, core_hours, to_measure
from rankstream.operations.terminal.progress_line import ProgressLine

Job = TypeVar("Job")

Result = dict[str, Any]
"""What a run gave; its "key" tells it from all others."""

AHEAD = 4
"""Jobs that wait for each process, so that none stands still."""


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
    work: Callable[[Job], Result],
    named: Mapping[str, Job],
    kind_of: Callable[[Job], str],
    path: Path,
    *,
    n_processes: int,
    console: Console,
) -> dict[str, Result]:
    """Results by key, after those that are missing are run.

    A few of each kind are run first, then it is said what the rest takes. At the end
    it is said what all took, whenever they were run.

    Parameters
    ----------
    named
        Jobs by the keys of their results.
    kind_of
        Jobs of one kind take about as long.
    """
    results = finished_runs(path)
    missing = [job for key, job in named.items() if key not in results]
    first = to_measure(missing, kind_of)
    is_first = set(first)
    rest = [job for job in missing if job not in is_first]
    done = len(named) - len(missing)
    if missing and not rest:
        console.print(
            f"{len(missing):,} runs, few of each kind: what they take is said at the "
            "end, and is what more of them would take each",
            highlight=False,
        )
    with ProgressLine("runs", total=len(named), start=done, unit="runs") as line:
        for few in (first, rest):
            if few is rest and rest:
                hours = core_hours(rest, kind_of, _by_kind(named, kind_of, results))
                console.print(f"{len(rest):,} runs are left: {hours:.2f} core-hours")
            for result in kept_runs(work, few, path, n_processes=n_processes):
                results[result["key"]] = result
                done += 1
                line.show(done)
    hours = sum(float(results[key][SECONDS]) for key in named) / 3600.0
    console.print(f"{len(named):,} runs took {hours:.2g} core-hours")
    return results


def kept_runs(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    path: Path,
    *,
    n_processes: int,
) -> Iterator[Result]:
    """Run jobs over processes; each result is on disk before it is handed on.

    Parameters
    ----------
    work
        Runs a job; other processes get it as it can be pickled.
    path
        The file of results; lines are added.
    n_processes
        1: all is run in this one.
    """
    _end_last_line(path)
    with path.open("a", encoding="utf-8") as file:
        if n_processes == 1:
            for job in jobs:
                yield _kept(work(job), file)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
            running: set[Future[Result]] = set()
            try:
                for job in jobs:
                    running.add(pool.submit(work, job))
                    if len(running) >= AHEAD * n_processes:
                        done, running = wait(running, return_when=FIRST_COMPLETED)
                        yield from [_kept(each.result(), file) for each in done]
                while running:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from [_kept(each.result(), file) for each in done]
            except BaseException:  # Ctrl-C, or whoever reads us stops: nobody waits
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _by_kind(
    named: Mapping[str, Job],
    kind_of: Callable[[Job], str],
    results: Mapping[str, Result],
) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for key, job in named.items():
        if key in results:
            found.setdefault(kind_of(job), []).append(results[key])
    return found


def _end_last_line(path: Path) -> None:
    """A line that was cut off must not swallow the next one."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def _kept(result: Result, file: Any) -> Result:
    text = json.dumps(result)
    file.write(f"{text} {zlib.crc32(text.encode()):08x}\n")
    file.flush()
    return result
