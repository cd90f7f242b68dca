"""`bench capacity`: constants of this machine, and three loads beside their plan.

CPU is that of processes by /proc: other work on the machine makes it more, by a share,
and a rate says nothing.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rankstream.lab.benchmarks.capacity.fit import bytes_of, cpu_of, fitted
from rankstream.lab.benchmarks.capacity.runs import Case, Measured, measured_run
from rankstream.lab.benchmarks.harness import Figure, new_figure
from rankstream.lab.benchmarks.pipeline.bed import running_bed, say
from rankstream.operations.answers.capacity.constants import (
    Coefficients,
    Constant,
    Constants,
    Costs,
    load_constants,
    save_constants,
)
from rankstream.operations.answers.capacity.drivers import drivers_of
from rankstream.operations.answers.capacity.load import Load
from rankstream.operations.answers.capacity.needs import (
    MIB,
    PER_KB,
    WAITING,
    kept_bytes,
    memory_bytes,
)
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import LOGGED, PLACKETT_LUCE, POLICIES

COMMAND = "rankstream bench capacity --save"

GOAL = 30.0
"""Percent by which a plan may miss what is measured."""

LEAST_CORES, LEAST_BYTES = 0.002, 1_000.0
"""A second; what is less is not compared."""


def load_of(per_second: float, width: int = 4, **more: Any) -> Load:
    """A load on so many partitions of each topic; lists are as often unless told."""
    kafka = KafkaSettings(partitions=width, input_partitions=width)
    usual: dict[str, Any] = {"items": 10, "queries": 20_000.0}
    return Load(per_second, settings=Settings(kafka=kafka), **(usual | more))


def calibration(n: float) -> list[Case]:
    """What constants are taken from; `n` is how long the runs are, 1 for the usual."""
    return [
        Case("warm-up, flood", load_of(5_600), int(150_000 * n), is_flood=True),
        Case("warm-up, 2,000/s", load_of(2_000), int(40_000 * n)),
        Case("flood", load_of(5_600), int(300_000 * n), is_flood=True),
        Case(
            "flood of lists of 30", load_of(5_600, items=30), int(120_000 * n),
            is_flood=True,
        ),
        Case(
            "flood of logged lists",
            load_of(5_600, policy=POLICIES[LOGGED], queries=2_000),
            int(120_000 * n),
            is_flood=True,
        ),
        Case(
            "flood of Plackett-Luce lists",
            load_of(2_800, policy=POLICIES[PLACKETT_LUCE], features=10),
            int(100_000 * n),
            is_flood=True,
        ),
        Case(
            "the same, 46 features",
            load_of(2_800, policy=POLICIES[PLACKETT_LUCE], features=46, queries=2_000),
            int(60_000 * n),
            is_flood=True,
        ),
        Case("4,000/s on 4", load_of(4_000), int(80_000 * n)),
        Case("1,000/s on 4", load_of(1_000), int(25_000 * n)),
        Case("200/s on 4", load_of(200), int(6_000 * n)),
        Case("200/s on 16", load_of(200, 16), int(6_000 * n)),
        Case("idle", load_of(200), 0, seconds=20.0 * n),
    ]  # fmt: skip


N_WARM_UPS = 2
"""The broker's code is compiled while it runs."""


def workloads(n: float) -> list[Case]:
    """What is compared with its plan; no constant is taken from them."""
    return [
        Case(
            "flood of logged lists of 15",
            load_of(
                4_000, 8, policy=POLICIES[LOGGED], items=15, candidates=20,
                queries=10_000,
            ),
            int(150_000 * n),
            is_flood=True,
        ),
        Case("trickle of 500/s on 8", load_of(500, 8), int(15_000 * n)),
        Case(
            "Plackett-Luce lists of 10 of 20, 24 features, 200,000 queries",
            load_of(
                2_000, policy=POLICIES[PLACKETT_LUCE], features=24, candidates=20,
                queries=200_000,
            ),
            int(100_000 * n),
            is_flood=True,
        ),
    ]  # fmt: skip


def measure(
    *, quick: bool = False, save: Path | None = None, constants: Path | None = None
) -> list[Figure]:
    """Percent by which plans miss three runs, part by part; progress on standard error.

    Parameters
    ----------
    save
        Where constants are written to, which are measured first then.
    constants
        Those that are planned by, where none are measured; else those that are shipped.
    """
    n = 0.03 if quick else 1.0
    before = os.getloadavg()[0]
    with running_bed(is_quick=quick) as bed:
        shipped = load_constants(constants) if constants else load_constants()
        if save is not None:
            runs = [measured_run(bed, case) for case in calibration(n)][N_WARM_UPS:]
            shipped = constants_of(runs, shipped, before)
            save_constants(shipped, save)
            say(f"{save} was written")
        elif not quick:
            for case in calibration(n)[:N_WARM_UPS]:
                measured_run(bed, case)
        return [
            figure
            for case in workloads(n)
            for figure in compared(measured_run(bed, case), shipped)
        ]


def constants_of(
    runs: Sequence[Measured], others: Constants, load_before: float
) -> Constants:
    """What runs cost; what they do not say is as others have it, with its source."""
    date = time.strftime("%Y-%m-%d")
    source = f"{date}, {COMMAND}"
    cpu, n_bytes = (
        {name: Coefficients(per, source) for name, per in found.items()}
        for found in (cpu_of(runs), bytes_of(runs))
    )
    memory = {
        name: Constant(round(value, 1), "MiB", source)
        for name, value in memory_of(runs, others).items()
    }
    return Constants(
        machine=f"{os.cpu_count()} cores",
        date=date,
        command=COMMAND,
        load=(load_before, os.getloadavg()[0]),
        cpu=cpu,
        n_bytes=n_bytes,
        constants=others.constants | memory,
    )


def memory_of(runs: Sequence[Measured], others: Constants) -> dict[str, float]:
    """MiB of a process of each role, without what the fold keeps.

    The most of all runs; where events wait a process reads ahead, the more the larger
    they are.
    """
    costs, found = Costs(others), dict[str, float]()
    waiting: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        for role in run.cpu.keys() - {"broker"}:
            name = f"memory_{role}{WAITING if run.load.is_waiting else ''}_mib"
            alone = (
                run.peak_mib[role] - (kept_bytes(run.kept, role, costs) or 0.0) / MIB
            )
            if run.load.is_waiting:
                waiting.setdefault(name, []).append((run.kept.list_bytes / 1e3, alone))
            else:
                found[name] = max(found.get(name, 0.0), alone)
    for name, each in waiting.items():
        names = (name, name + PER_KB)
        rows = [(1.0, kilobytes) for kilobytes, _ in each]
        found |= dict.fromkeys(names, 0.0)
        found |= fitted(names, rows, [alone for _, alone in each])
    return found


def compared(run: Measured, constants: Constants) -> Iterator[Figure]:
    """Percent by which the plan of a run misses each part of it."""
    costs, drivers = Costs(constants), drivers_of(run.load)
    for process, cores in run.cpu.items():
        planned = costs.cores(process, drivers)
        if cores >= LEAST_CORES:
            what = f"{run.name}: CPU of {process}, % of a core"
            yield _missed(what, _times(planned, 100.0), 100.0 * cores)
    for role in run.cpu.keys() - {"broker"}:
        planned = _times(memory_bytes(run.kept, role, 1, costs), 1.0 / MIB)
        yield _missed(f"{run.name}: memory of {role}, MiB", planned, run.peak_mib[role])
    for topic, got in run.n_bytes.items():
        if got >= LEAST_BYTES:
            planned = costs.bytes_of(topic, drivers)
            what = f"{run.name}: kB/s of {topic}"
            yield _missed(what, _times(planned, 1e-3), got / 1e3)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _missed(name: str, planned: float | None, measured: float) -> Figure:
    """A figure that is void where nobody measured what it takes."""
    if planned is None:
        return new_figure(name, None, "%", measured, None, faults=["unmeasured"])
    off = 100.0 * (planned / measured - 1.0)
    return new_figure(
        f"{name}: planned {planned:,.3g}, measured {measured:,.3g}",
        abs(off),
        "% off",
        None,
        1.0,
        (GOAL, None),
        less_is_better=True,
        planned=planned,
        measured=measured,
    )
