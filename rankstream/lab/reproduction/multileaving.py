"""Binary error of multileaving: runs, and the table beside the printed one."""

import argparse
import itertools
import json
import math
import zlib
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from models.click_models.cascade import TABLES
from models.evaluation.ndcg import ndcg_of_ranking
from models.interleaving.simulated import (
    NAMES,
    Queries,
    Users,
    binary_error,
    preferences_after,
    rank_by_features,
)
from producers.formats.letor import LetorData, read_fold
from rankstream.lab.reproduction.data import digest_of, n_folds_of
from rankstream.lab.reproduction.engine import run_over
from rankstream.operations.terminal.progress_line import ProgressLine

USERS = ("perfect", "navigational", "informational")
LENGTH = 10
CHECKPOINTS = (100, 300, 1_000, 3_000, 10_000)
WIDE = 110

FEATURES = {
    "MQ2007": (*range(11, 16), *range(21, 41)),
    "MQ2008": (*range(11, 16), *range(21, 41)),
    "OHSUMED": (*range(9, 13), *range(15, 29)),
    "MSLR": (*range(71, 91), *range(106, 126)),
}
"""Features, from 1, that are rankers: those known to work alone; elsewhere all."""

PUBLISHED: dict[str, dict[tuple[int, str], tuple[float, ...]]] = {
    "MQ2007": {
        (5, "perfect"): (0.19, 0.22, 0.16, 0.18, 0.16),
        (5, "navigational"): (0.21, 0.33, 0.18, 0.29, 0.17),
        (5, "informational"): (0.23, 0.41, 0.23, 0.37, 0.17),
        (15, "perfect"): (0.20, 0.25, 0.18, 0.15, 0.19),
        (15, "navigational"): (0.24, 0.33, 0.20, 0.22, 0.21),
        (15, "informational"): (0.28, 0.42, 0.26, 0.28, 0.21),
    },
    "MQ2008": {
        (5, "perfect"): (0.15, 0.19, 0.16, 0.18, 0.14),
        (5, "navigational"): (0.17, 0.21, 0.17, 0.23, 0.15),
        (5, "informational"): (0.18, 0.28, 0.18, 0.23, 0.17),
        (15, "perfect"): (0.16, 0.17, 0.16, 0.15, 0.15),
        (15, "navigational"): (0.19, 0.21, 0.16, 0.18, 0.16),
        (15, "informational"): (0.23, 0.26, 0.18, 0.20, 0.15),
    },
    "OHSUMED": {
        (5, "perfect"): (0.14, 0.19, 0.11, 0.11, 0.11),
        (5, "navigational"): (0.12, 0.27, 0.14, 0.23, 0.13),
        (5, "informational"): (0.13, 0.37, 0.12, 0.27, 0.12),
        (15, "perfect"): (0.14, 0.18, 0.13, 0.13, 0.11),
        (15, "navigational"): (0.14, 0.25, 0.13, 0.18, 0.13),
        (15, "informational"): (0.15, 0.42, 0.13, 0.25, 0.13),
    },
}
"""Oosterhuis & de Rijke (CIKM 2017), tables 3 and 4, in the order of `NAMES`."""


class Job(NamedTuple):
    """One run of one method."""

    fold: int
    run: int
    n_rankers: int
    users: str
    method: str

    def key(self) -> str:
        """Its name among the results."""
        return "/".join(map(str, self))


class Plan(NamedTuple):
    """What all runs share."""

    data: Path
    digest: str
    features: tuple[int, ...]
    n_impressions: int
    published: bool
    seed: int


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, then print all there is; 1 if a cell is off."""
    name = arguments.name or arguments.data.resolve().name
    form = "published" if arguments.published else "exact"
    folder = arguments.out or Path("reproduction") / name
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"multileaving-{form}.jsonl"
    plan = Plan(
        arguments.data,
        digest_of(arguments.data),
        _features_of(name, arguments.data),
        arguments.impressions or CHECKPOINTS[-1],
        arguments.published,
        arguments.seed,
    )
    jobs = _jobs(arguments)
    results = finished(out, plan)
    missing = [job for job in jobs if job.key() not in results]
    done = len(jobs) - len(missing)
    with ProgressLine("runs", total=len(jobs), start=done, unit="runs") as line:
        work = partial(_with_errors, plan)
        for job, errors in run_over(work, missing, arguments.processes):
            results[job.key()] = errors
            keep(out, plan, job, errors)
            line.show(sum(job.key() in results for job in jobs))
    is_compared = arguments.published and plan.n_impressions == CHECKPOINTS[-1]
    published = PUBLISHED.get(name, {}) if is_compared else {}
    cells = cells_of(jobs, results, published, checkpoints_of(plan))
    if arguments.json:
        Console(soft_wrap=True).print_json(data=cells)
    else:
        console = Console()
        console = console if console.is_terminal else Console(width=WIDE)
        console.print(table_of(f"{name}, {form}", cells))
        console.print(curves_table(f"{name}, {form}", cells))
    return int(any(cell["is_near"] is False for cell in cells))


def _features_of(name: str, data: Path) -> tuple[int, ...]:
    if name in FEATURES:
        return FEATURES[name]
    train, _ = _parts(data, 1)
    return tuple(range(1, train.features.shape[1] + 1))


def _jobs(arguments: argparse.Namespace) -> list[Job]:
    users = arguments.users or USERS
    n_folds = min(n_folds_of(arguments.data), arguments.folds or 5)
    if not set(users) <= set(USERS):
        raise ValueError(f"--users must be some of {USERS}; got {users}")
    if n_folds < 1 or arguments.runs < 1:
        raise ValueError("--folds and --runs must be at least 1")
    everything = itertools.product(
        range(1, n_folds + 1),
        range(arguments.runs),
        arguments.rankers,
        users,
        arguments.methods,
    )
    # By run: what is stopped early has all folds.
    return sorted((Job(*parts) for parts in everything), key=lambda job: job.run)


def checkpoints_of(plan: Plan) -> list[int]:
    """Impressions after which the error is measured."""
    earlier = [point for point in CHECKPOINTS if point < plan.n_impressions]
    return [*earlier, plan.n_impressions]


def _with_errors(plan: Plan, job: Job) -> tuple[Job, list[float]]:
    return job, errors_of(plan, job)


def errors_of(plan: Plan, job: Job) -> list[float]:
    """Binary error of one run at each checkpoint.

    Methods and users of a run compare the same rankers; their draws are their own.
    """
    train, test = _parts(plan.data, job.fold)
    seeds = [plan.seed, job.fold, job.run, job.n_rankers]
    rng = np.random.default_rng(seeds)
    chosen = rng.choice(plan.features, job.n_rankers, replace=False) - 1
    queries = rank_by_features(
        train.features[:, chosen], train.labels, train.offsets, rng=rng
    )
    held_out = rank_by_features(
        test.features[:, chosen], test.labels, test.offsets, rng=rng
    )
    quality = mean_quality(held_out)
    n_grades = max(3, int(train.labels.max()) + 1)
    click, stop = TABLES[n_grades][job.users]
    users = Users(np.array(click), np.array(stop), not plan.published)
    own = [*seeds, USERS.index(job.users), NAMES.index(job.method)]
    found = preferences_after(
        NAMES.index(job.method),
        queries,
        users,
        np.array(checkpoints_of(plan)),
        length=LENGTH,
        rng=np.random.default_rng(own),
        published=plan.published,
    )
    truth = quality[:, None] - quality[None, :]
    return [binary_error(each.round(9), truth) for each in found]


def mean_quality(queries: Queries) -> Any:
    """NDCG@10 of each ranker, queries with nothing relevant counting 0."""
    n = queries.n_rankers
    total = np.zeros(n)
    for begin, end in itertools.pairwise(queries.offsets.tolist()):
        lists = queries.rankings[n * begin : n * end].reshape(n, end - begin)
        labels = queries.labels[begin:end]
        if labels.max() > 0:
            total += [ndcg_of_ranking(labels, row, LENGTH) for row in lists]
    return total / (len(queries.offsets) - 1)


@lru_cache(maxsize=5)
def _parts(data: Path, fold: int) -> tuple[LetorData, LetorData]:
    """Training with validation split, and test split."""
    read = read_fold(data, fold)
    first, second = read.train, read.validation
    together = LetorData(
        first.query_ids + second.query_ids,
        np.concatenate([first.labels, second.labels]),
        np.concatenate([first.features, second.features]),
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
    )
    return together, read.test


def finished(path: Path, plan: Plan) -> dict[str, list[float]]:
    """Errors of the runs in a file that were run under the same plan."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        kept = json.loads(line)
        if kept["plan"] == _signature(plan):
            found[kept["job"]] = kept["errors"]
    return found


def keep(path: Path, plan: Plan, job: Job, errors: list[float]) -> None:
    """Add one run to the file."""
    kept = {"plan": _signature(plan), "job": job.key(), "errors": errors}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept) + "\n")


def _signature(plan: Plan) -> str:
    features = zlib.crc32(repr(plan.features).encode())
    what = f"{plan.digest}/{features:08x}/{LENGTH}"
    return f"{what}/{plan.n_impressions}/{plan.published}/{plan.seed}"


def cells_of(
    jobs: Iterable[Job],
    results: dict[str, list[float]],
    published: dict[tuple[int, str], tuple[float, ...]],
    checkpoints: list[int],
) -> list[dict[str, Any]]:
    """Mean, deviation and curve of every cell, beside what was published.

    A cell is near where it is within three standard errors plus 0.01.
    """
    runs: dict[tuple[int, str, str], list[list[float]]] = {}
    for job in jobs:
        place = job.n_rankers, job.users, job.method
        runs.setdefault(place, []).append(results[job.key()])
    cells = []
    for (n_rankers, users, method), errors in runs.items():
        last = np.array(errors)[:, -1]
        deviation = float(last.std(ddof=1)) if len(last) > 1 else math.nan
        row = published.get((n_rankers, users))
        wanted = row[NAMES.index(method)] if row else None
        allowed = 3.0 * deviation / math.sqrt(len(last)) + 0.01
        cells.append(
            {
                "rankers": n_rankers,
                "users": users,
                "method": method,
                "runs": len(last),
                "error": float(last.mean()),
                "deviation": deviation,
                "published": wanted,
                "is_near": wanted and bool(abs(last.mean() - wanted) <= allowed),
                "nearest_at": wanted and _nearest(errors, checkpoints, wanted),
                "checkpoints": checkpoints,
                "curve": np.array(errors).mean(axis=0).round(4).tolist(),
            }
        )
    return cells


def _nearest(errors: list[list[float]], checkpoints: list[int], wanted: float) -> int:
    """Impressions after which the error was nearest to what was published."""
    curve = np.array(errors).mean(axis=0)
    return checkpoints[int(np.abs(curve - wanted).argmin())]


def table_of(title: str, cells: list[dict[str, Any]]) -> Table:
    """The cells as people read them: ours (deviation), then what was published."""
    table = Table(title=f"binary error: {title}", title_justify="left")
    for heading in ("rankers", "users", *NAMES):
        table.add_column(heading)
    for place in dict.fromkeys((cell["rankers"], cell["users"]) for cell in cells):
        row = {c["method"]: c for c in cells if (c["rankers"], c["users"]) == place}
        texts = [_text(row[name]) if name in row else "" for name in NAMES]
        table.add_row(str(place[0]), place[1], *texts)
    return table


def curves_table(title: str, cells: list[dict[str, Any]]) -> Table:
    """The error of every cell by the number of impressions."""
    table = Table(title=f"binary error by impressions: {title}", title_justify="left")
    for heading in ("rankers", "users", "method"):
        table.add_column(heading)
    for point in cells[0]["checkpoints"]:
        table.add_column(f"{point:,}", justify="right")
    for cell in cells:
        errors = [f"{error:.3f}" for error in cell["curve"]]
        table.add_row(str(cell["rankers"]), cell["users"], cell["method"], *errors)
    return table


def _text(cell: dict[str, Any]) -> str:
    text = f"{cell['error']:.3f} ({cell['deviation']:.2f})"
    if cell["published"] is None:
        return text
    colour = "green" if cell["is_near"] else "red"
    return f"[{colour}]{text}[/] {cell['published']:.2f}"
