"""Runs over the cores, whose results are kept as lines of a file.

What is there is not run again: a table that was stopped goes on where it was.
"""

import json
import multiprocessing
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

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
