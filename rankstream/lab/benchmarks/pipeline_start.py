"""From a fresh process without caches to the first fold, in seconds of CPU."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rankstream.installation import path_options
from rankstream.lab.benchmarks.pipeline_bed import say
from rankstream.lab.benchmarks.pipeline_repeats import Figure, cost_figure

CHILD = "rankstream.lab.benchmarks.first_fold"


def start_figure(n_repeats: int) -> Figure:
    """What the process of the fold role computes before it has folded a record."""
    found = []
    for _ in range(n_repeats):
        with tempfile.TemporaryDirectory(prefix="rankstream-caches-") as folder:
            found.append(start_s(Path(folder)))
        say(f"first start: {found[-1]:.1f} s of CPU")
    name = "first start of the fold after install, without caches, to its first fold"
    return cost_figure(name, found, "s of CPU", before=120.0, goal=5.0, floor=20.0)


def start_s(caches: Path) -> float:
    """Seconds of CPU, of the process and of all that it starts.

    Parameters
    ----------
    caches
        Where it finds kernels, and leaves them.
    """
    command = [sys.executable, *path_options(), "-m", CHILD]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(caches)}
    process = subprocess.Popen(  # noqa: S603  our own command
        command, env=environment, stdin=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    # Nobody else can wait for it now.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime
