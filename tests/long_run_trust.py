"""Trust bias: fits that come to rest, and a test's level: `... long_run_trust FILE`.

`python -m tests.long_run_trust FILE` takes about half a core-hour. Each line that is
appended to FILE is one cell, and cells that FILE has are left out, so that a run that
was cut short goes on. `python -m tests.long_run_trust FILE N` takes N logs a cell.

Cells `fit ...` plant trust bias, and position bias alone, in logs of one size: how many
fits are at rest, after how many turns and seconds, and what they say of ranks. Cells
`test ...` say in what share of logs position bias alone is rejected: of position-only
logs that is the level, of others the power. In `lists` clicks of a list go together.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.bias.examination import NOT_CONVERGED
from models.bias.logged_views import Views
from models.bias.position_alone import LEVEL, trust_test
from models.bias.trust import LEAST_CLICKS, estimate_trust
from tests.planted_bias import Planted, log_of, with_examination, with_trust
from tests.planted_lists import lists_of

N_LOGS = 200

Log = Callable[[Planted, np.random.Generator], Views]

SIZES: dict[str, tuple[int, int, float]] = {
    "small": (5, 20, 40.0),
    "middle": (10, 100, 200.0),
    "large": (10, 2_000, 200.0),
}
"""Ranks, items and views of an item at its usual rank."""

PLANTED = {"position": with_examination, "trust": with_trust}

TESTED: dict[str, tuple[int, Log]] = {
    "items": (5, lambda planted, rng: log_of(planted, rng, views=200.0)),
    "few views": (5, lambda planted, rng: log_of(planted, rng, views=60.0)),
    "ten ranks": (10, lambda planted, rng: log_of(planted, rng, views=200.0)),
    "lists": (5, lists_of),
    "many lists": (5, lambda planted, rng: lists_of(planted, rng, n_lists=600)),
}


def fits(planted: Planted, n_items: int, views: float, n_logs: int) -> dict[str, Any]:
    """Whether each comes to rest, how soon, and whether reasons are as they should."""
    k, reasons = len(planted.alpha), Counter[str]()
    clicks, seconds, turns, n_rest = [], [], [], 0
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        log = log_of(planted, rng, n_items=n_items, views=views)
        started_s = time.process_time()
        fit = estimate_trust(log, n_ranks=k)
        seconds.append(time.process_time() - started_s)
        turns.append(fit.n_turns)
        at = np.bincount(log.ranks - 1, log.clicked, k)
        clicks.append(int(at.min()))
        n_rest += NOT_CONVERGED not in fit.curve.reasons
        reasons.update(why or "known" for why in fit.curve.reasons[1:])
    return {
        "logs": n_logs,
        "at rest": n_rest,
        "with enough clicks": sum(each >= LEAST_CLICKS for each in clicks),
        "clicks of the rarest rank": [min(clicks), max(clicks)],
        "most seconds": round(max(seconds), 3),
        "most turns": max(turns),
        "ranks": dict(reasons),
    }


def rejected(planted: Planted, log: Log, n_logs: int) -> dict[str, Any]:
    """In what share of logs position bias alone is rejected."""
    k = len(planted.alpha)
    found = []
    for seed in range(n_logs):
        rng = np.random.default_rng(seed)
        found.append(trust_test(log(planted, rng), rng, n_ranks=k))
    p = np.array([each.p_value for each in found])
    tested = max(int(np.isfinite(p).sum()), 1)
    return {
        "logs": n_logs,
        "tested": tested,
        "rejected": round(float((p < LEVEL).sum() / tested), 4),
        "p below a half": round(float((p < 0.5).sum() / tested), 4),
        "mean scale": round(float(np.mean([each.scale for each in found])), 3),
    }


def cells(n_logs: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """By name, what makes each."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for kind, plant in PLANTED.items():
        for name, (k, log) in TESTED.items():
            found[f"test {kind}, {name}"] = partial(rejected, plant(k), log, n_logs)
        for name, (k, n_items, views) in SIZES.items():
            made = partial(fits, plant(k), n_items, views, n_logs)
            found[f"fit {kind}, {name}"] = made
    return found


def main(path: Path, n_logs: int) -> None:
    """Append the cells that are not there yet."""
    done = path.read_text().splitlines() if path.exists() else []
    names = {json.loads(line)["cell"] for line in done}
    for name, made in cells(n_logs).items():
        if name not in names:
            found = {"cell": name, **made()}
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else N_LOGS)
