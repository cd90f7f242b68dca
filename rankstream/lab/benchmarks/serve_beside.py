"""What good clients of `rankstream serve` wait for beside clients who attack it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rankstream.lab.benchmarks.hostile_load import begun
from rankstream.lab.benchmarks.http_load import Load, load
from rankstream.lab.benchmarks.pipeline_repeats import Figure, in_turns, paired_figure

N_SENDERS = 20
N_CLIENTS = 8
PAUSE_S = 0.05
"""Between requests of a good client, so that they do not fill the server themselves."""

SETTLE_S = 1.0

GOAL_MS, FLOOR_MS = 100.0, 400.0
GOAL_MIB, FLOOR_MIB = 150.0, 200.0


class Beside(NamedTuple):
    """What the good clients saw, the server's peak, and what the others were told."""

    load: Load
    peak_mib: float
    refused: dict[str, int]


def beside_figures(
    name: str, port: int, pid: int, requests: Path, s: float, n_repeats: int
) -> list[Figure]:
    """The slowest hundredth of good requests and the peak, beside the same alone."""
    pairs = in_turns(
        lambda: _turn(port, pid, requests, s, N_SENDERS),
        lambda: _turn(port, pid, requests, s, 0),
        n_repeats,
    )
    return figures_of(name, pairs)


def figures_of(name: str, pairs: list[tuple[Beside, Beside]]) -> list[Figure]:
    """Two; void where a good request was refused, or an attack was not."""
    faults = []
    for turn in (turn for pair in pairs for turn in pair):
        if turn.load.n_refused or not turn.load.n_answered:
            faults.append(f"{turn.load.n_refused:,} good requests were refused")
        if taken := {k: n for k, n in turn.refused.items() if k[:1] not in "045"}:
            faults.append(f"answers to the others were {taken}")
    if not all(sum(beside.refused.values()) for beside, _ in pairs):
        faults.append("nothing was sent beside")

    def figure(
        what: str, unit: str, of: Callable[[Beside], float], goal: float, floor: float
    ) -> Figure:
        return paired_figure(
            f"{name}, beside {N_SENDERS} attackers: {what}",
            unit,
            [(of(beside), of(alone)) for beside, alone in pairs],
            bounds=(goal, floor),
            less_is_better=True,
            faults=faults,
        )

    return [
        figure(
            f"slowest 1 % of {N_CLIENTS} clients",
            "ms",
            lambda turn: 1e3 * turn.load.p99_s,
            GOAL_MS,
            FLOOR_MS,
        ),
        figure(
            "peak of the server", "MiB", lambda turn: turn.peak_mib, GOAL_MIB, FLOOR_MIB
        ),
    ]


def _turn(port: int, pid: int, requests: Path, s: float, n_senders: int) -> Beside:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    if not n_senders:
        return Beside(load(port, requests, N_CLIENTS, s, PAUSE_S), peak_mib(pid), {})
    with begun(port, n_senders, s + 2 * SETTLE_S) as senders:
        found = load(port, requests, N_CLIENTS, s, PAUSE_S)
        refused = json.loads(senders.communicate()[0])
    return Beside(found, peak_mib(pid), refused)


def peak_mib(pid: int) -> float:
    """The most resident memory that a process had since its peak was reset."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1_024
    raise ValueError(f"/proc/{pid}/status must have VmHWM; it has not")
