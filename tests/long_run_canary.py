"""How often canaries are judged wrongly: `python -m tests.long_run_canary FILE`.

Takes some minutes of one core. Each line that is appended to FILE is one cell; cells
that FILE has already are left out, so a run that was cut short goes on. Then the tables
of `docs/lifecycle.md` are printed. Fails where a version that is as good is withdrawn
too often, or one that is worse too late. `python -m tests.long_run_canary FILE N` takes
N runs a cell.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.evaluation.canary_judgement import WITHOUT_CLICK
from tests.canary_runs import CUT, FIXED, LENGTHS, RAMP, Seen, World, look, rules_of

N_RUNS = 400
GUARDRAILS = (WITHOUT_CLICK, "twice")
ALPHA, POWER = 0.05, 0.95
LONG = 200_000
"""Lists of a ramp on which sessions of 20 rise too."""


class Cell(NamedTuple):
    """Canaries of one kind; `within`: lists of the canary by which it must be found."""

    world: World
    shares: tuple[float, ...]
    lists: int
    within: int = 0
    guardrails: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the cell, in the file."""
        world = ", ".join(f"{k} {v}" for k, v in self.world._asdict().items())
        rails = f", {len(self.guardrails)} guardrails" if self.guardrails else ""
        shares = " ".join(f"{share:g}" for share in self.shares)
        return f"{world}, shares {shares}{rails}, {self.lists} lists"


def cells() -> Iterator[Cell]:
    """As good as the old version, and worse."""
    for lengths in LENGTHS:
        for spread in (0.5, 1.0, 2.0):
            for shares in (FIXED, RAMP):
                yield Cell(World(lengths, spread), shares, 20_000)
        yield Cell(World(lengths), RAMP, LONG)
        yield Cell(World(lengths, 2.0), FIXED, LONG)
    for lengths in ("1", "5"):
        yield Cell(World(lengths, drift=3.0), RAMP, LONG)
        yield Cell(World(lengths), FIXED, 20_000, guardrails=GUARDRAILS)
    for effect, within in ((0.5, 1_000), (0.8, 4_000)):
        # They go on to twice as many lists, to see when they are found.
        for lengths in (*LENGTHS, CUT):
            world = World(lengths, effect=effect)
            yield Cell(world, FIXED, 40 * within, within)
        world = World("5", effect=effect)
        yield Cell(world, FIXED, 40 * within, within, GUARDRAILS)


def figures(cell: Cell, n_runs: int) -> dict[str, Any]:
    """What became of its canaries."""
    rules = rules_of(cell.shares, guardrails=cell.guardrails)
    runs = [
        look(cell.world, rules, cell.lists, seed=seed, most=2 * cell.within)
        for seed in range(n_runs)
    ]
    found = np.array([one.withdrawn or math.inf for one in runs])
    told: dict[str, Any] = {"cell": cell.name, "runs": n_runs}
    if cell.within:
        told["in time"] = float(np.mean(found <= cell.within))
        told["median"], told["most of 95 %"] = (
            float(np.quantile(found, q, method="higher")) for q in (0.5, POWER)
        )
    else:
        told["withdrawn"] = float(np.isfinite(found).mean())
    return told | _beside(runs, cell)


def _beside(runs: list[Seen], cell: Cell) -> dict[str, float]:
    """Other verdicts on the way, as shares of the runs."""
    return {
        "unbalanced": float(np.mean([one.unbalanced for one in runs])),
        "to all": float(np.mean([one.may_go for one in runs])),
        "last stage": float(np.mean([one.stage == len(cell.shares) for one in runs])),
    }


def is_met(cell: Cell, found: dict[str, Any]) -> bool:
    """Whether it is withdrawn in at most 5 % of runs, or in 95 % in time.

    Two standard errors are allowed. Nothing is asked of sessions that are so long that
    54 of them hold more lists than it should take.
    """
    if not cell.within:
        slack = 2.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / found["runs"])
        return bool(found["withdrawn"] <= ALPHA + slack)
    if cell.world.lengths not in {"1", "5"}:
        return True
    return bool(found["in time"] >= POWER)


def table(found: dict[str, dict[str, Any]]) -> list[str]:
    """Rows of the page."""
    every = [(cell, found[cell.name]) for cell in cells()]
    good: dict[str, dict[str, list[str]]] = {}
    for cell, told in every:
        if not cell.within:
            by_kind = good.setdefault(_kind(cell), {lengths: [] for lengths in LENGTHS})
            by_kind[cell.world.lengths].append(f"{told['withdrawn']:.2%}")
    rows = [
        f"| as good; lists a session | {' | '.join(LENGTHS)} |",
        f"|---|{'---|' * len(LENGTHS)}",
    ]
    rows += [
        f"| {kind} | {' | '.join(', '.join(by_kind[one]) for one in LENGTHS)} |"
        for kind, by_kind in good.items()
    ]
    rows += [
        "",
        "| worse; lists a session | clicks | guardrails | withdrawn in time "
        "| in half of the runs by | in 95 % by |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {cell.world.lengths} | {cell.world.effect:.0%} | {len(cell.guardrails)} "
        f"| {told['in time']:.1%} by {cell.within:,} | {_lists(told['median'])} "
        f"| {_lists(told['most of 95 %'])} |"
        for cell, told in every
        if cell.within
    ]
    worst = max(told["unbalanced"] for _, told in every)
    return [*rows, "", f"Taken for unbalanced in at most {worst:.2%} of the runs."]


def _kind(cell: Cell) -> str:
    """The row of a version that is as good; cells of one row differ in the spread."""
    shares = "5 %" if cell.shares == FIXED else "1, 5, 25, 50 %"
    kind = f"{shares}, {cell.lists:,} lists"
    if cell.lists == LONG and cell.shares == FIXED:
        kind += f", spread {cell.world.spread:g}"
    if cell.world.drift != 1.0:
        kind += f", clicks grow {cell.world.drift:g} times"
    return kind + (f", {len(cell.guardrails)} guardrails" if cell.guardrails else "")


def _lists(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "later"


def main(path: Path, n_runs: int) -> None:
    """Go on from the file, print the tables, and fail where a goal is missed."""
    lines = path.read_text().splitlines() if path.exists() else []
    told = {one["cell"]: one for one in map(json.loads, lines)}
    with path.open("a") as file:
        for cell in cells():
            if cell.name not in told:
                told[cell.name] = figures(cell, n_runs)
                file.write(json.dumps(told[cell.name]) + "\n")
                file.flush()
    sys.stdout.write("\n".join(table(told)) + "\n")
    missed = [one.name for one in cells() if not is_met(one, told[one.name])]
    if missed:
        raise SystemExit(f"missed: {missed}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else N_RUNS)
