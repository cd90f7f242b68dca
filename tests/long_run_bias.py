"""How often intervals of bias hold the truth: `python -m tests.long_run_bias FILE`.

Takes about 1 core-hour. Each line that is appended to FILE is one cell: of 1,000
logs of users whose bias is known, in how many each rank's interval of 95 % holds it, at
maxima of the likelihood. Cells that FILE has already are left out, so a run that was
cut short goes on. `python -m tests.long_run_bias FILE N` takes N logs a cell.

Better items stand higher in all logs, and click rates by rank are wrong by .1 or more.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.bias.bootstrap import with_bootstrap
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS
from tests.planted_bias import (
    Planted,
    log_of,
    naive_ratios,
    with_examination,
    with_trust,
)

N_LOGS = 1_000
CORE_HOURS = 1.0
N_RANKS = 5

Estimate = Callable[[Views, np.random.Generator], FittedCurve]


class Cell(NamedTuple):
    """Users, a log of theirs, and who estimates their bias from it."""

    planted: Planted
    log: Callable[[np.random.Generator], Views]
    estimate: Estimate


def cells() -> dict[str, Cell]:
    """By name."""
    position, trust = with_examination(N_RANKS), with_trust(N_RANKS)
    found = {"position": Cell(position, _logs(position, 400.0), _informed("position"))}
    found["trust"] = Cell(trust, _logs(trust, 1_000.0), _informed("trust"))
    for name in ("position", "adjacent-pairs", "pivot", "all-pairs"):
        cell = Cell(position, _logs(position, 400.0), _drawn(name))
        found[f"{name}, bootstrap"] = cell
    found["trust, bootstrap"] = Cell(trust, _logs(trust, 1_000.0), _drawn("trust"))
    return found


def _logs(planted: Planted, views: float) -> Callable[[np.random.Generator], Views]:
    return lambda rng: log_of(planted, rng, views=views)


def _informed(name: str) -> Estimate:
    return lambda views, _: ESTIMATORS[name].estimate(views, N_RANKS)


def _drawn(name: str) -> Estimate:
    estimate = ESTIMATORS[name].estimate
    return lambda views, rng: with_bootstrap(
        views, lambda drawn: estimate(drawn, N_RANKS), rng, n_resamples=100
    )


def coverage(cell: Cell, n_logs: int) -> dict[str, Any]:
    """Shares of logs whose intervals hold the truth, by rank from the second on."""
    alpha, beta, known, naive = np.zeros((4, n_logs, N_RANKS))
    values = np.zeros((n_logs, N_RANKS))
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        views = cell.log(rng)
        curve = cell.estimate(views, rng)
        known[seed] = np.isfinite(curve.alpha_low)
        alpha[seed] = (curve.alpha_low <= cell.planted.ratios) & (
            cell.planted.ratios <= curve.alpha_high
        )
        beta[seed] = (curve.beta_low <= cell.planted.offsets) & (
            cell.planted.offsets <= curve.beta_high
        )
        values[seed] = curve.alpha
        naive[seed] = naive_ratios(views, N_RANKS)
    n = np.maximum(known.sum(axis=0), 1.0)
    return {
        "logs": n_logs,
        "with an interval": known.mean(axis=0)[1:].round(4).tolist(),
        "hold alpha": (alpha.sum(axis=0) / n)[1:].round(4).tolist(),
        "hold beta": (beta.sum(axis=0) / n)[1:].round(4).tolist(),
        "error of mean": _error(values, cell.planted),
        "error of click rates": _error(naive, cell.planted),
    }


def _error(values: Any, planted: Planted) -> list[float]:
    mean = np.nanmean(values, axis=0)
    return [round(float(each), 4) for each in (mean - planted.ratios)[1:]]


def main(path: Path, n_logs: int) -> None:
    """Append the cells that are not there yet."""
    done = path.read_text().splitlines() if path.exists() else []
    names = {json.loads(line)["cell"] for line in done}
    sys.stderr.write(
        f"about {CORE_HOURS:g} core-hours for {N_LOGS:,} logs of all cells\n"
    )
    for name, cell in cells().items():
        if name not in names:
            found = {"cell": name, **coverage(cell, n_logs)}
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else N_LOGS)
