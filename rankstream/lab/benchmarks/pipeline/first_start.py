"""From a fresh process without caches to the first fold, in seconds of CPU.

As a program it is that process.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from rankstream.lab.benchmarks.folded_log import ONE_PARTITION, folded_records
from rankstream.lab.benchmarks.harness import Figure, cost_figure, own_python
from rankstream.lab.benchmarks.pipeline.bed import say
from rankstream.lab.benchmarks.workload import (
    Workload,
)
from rankstream.settings import Settings
from rankstream.wire.events import LOGGED
from streams.topology import STAGES

CHILD = "rankstream.lab.benchmarks.pipeline.first_start"


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
    command = own_python(CHILD)
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


def main() -> None:
    """Warm up, build and fold what a worker's fold takes first, as its process does."""
    settings = Settings(kafka=ONE_PARTITION)
    (kind,) = (kind for kind in STAGES if kind.name == "fold")
    if kind.warm_up is not None:
        kind.warm_up(settings)
    fold = kind.build(settings, 0)
    for record, _ in folded_records(Workload(100, LOGGED, n_partitions=1)):
        fold.fold(record)
    fold.settle()
    if fold.counters()["applied_impressions"] != 100:
        raise ValueError("all impressions must be folded")


if __name__ == "__main__":
    main()
