"""Runs of closed loops: one of them, and all of them over the cores."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.click_models.registry import click_model_of
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.performance import Conventions, Judge, discounted_sum
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.reproduction.data import world_of
from rankstream.lab.reproduction.kept_runs import kept_runs
from rankstream.lab.reproduction.plan import (
    PUBLISHED,
    Job,
    checkpoints_of,
    config_of,
    lag_of,
)

GRADES = (2, 3, 5)
"""Numbers of grades for which there are tables of users."""

LAST = 1_000
"""Lists whose mean NDCG says what users see now."""


@dataclass(frozen=True)
class Bed:
    """What all runs share.

    Parameters
    ----------
    place
        Where prepared data lie; its name tells them from all others.
    normalisation
        Of features, within each query.
    n_grades
        Of the users' tables.
    seed
        From which each run derives its own.
    """

    place: Path
    normalisation: str
    n_grades: int
    seed: int
    conventions: Conventions

    def key(self) -> str:
        """What of it changes results."""
        conventions = "/".join(map(str, asdict(self.conventions).values()))
        what = f"{self.place.name}/{self.normalisation}/{self.n_grades}"
        return f"{what}/{self.seed}/{conventions}"


def n_grades_of(largest_label: int) -> int:
    """The smallest tables of users that know all labels.

    Raises
    ------
    ValueError
        For a label beyond all of them.
    """
    for n_grades in GRADES:
        if largest_label < n_grades:
            return n_grades
    raise ValueError(
        f"labels must be grades 0 to {GRADES[-1] - 1}; got {largest_label}"
    )


def live_once(bed: Bed, job: Job) -> dict[str, Any]:
    """One run: what was learned and shown by each checkpoint."""
    train = world_of(bed.place, job.fold, "train", bed.normalisation)
    test = world_of(bed.place, job.fold, "test", bed.normalisation)
    cell = job.cell
    # Runs of all cells that share fold and number share their seed: they are paired.
    streams = np.random.SeedSequence([bed.seed, job.fold, job.run]).spawn(3)
    loop_rng, tie_rng, init_rng = map(np.random.default_rng, streams)
    config = config_of(
        cell, train.features.shape[1], seed=int(init_rng.integers(2**31))
    )
    users = click_model_of(
        cell.users, bed.n_grades, stop_requires_click=cell.form != PUBLISHED
    )
    loop = loop_of(
        config,
        train,
        users,
        lag=lag_of(cell),
        cutoff=bed.conventions.cutoff,
        rng=loop_rng,
    )
    ranker = ranker_of(config.kind, config.n_features, config.hidden)
    shown_judge, judge = Judge(train, bed.conventions), Judge(test, bed.conventions)
    wide = test.features.astype(np.float64)
    offline, online, recent, cumulative, before = [], [], [], 0.0, 0
    for checkpoint in checkpoints_of(cell.n_impressions):
        values = shown_judge.shown(loop.run(checkpoint - before))
        cumulative += discounted_sum(values, already=before)
        before = checkpoint
        recent.append(float(values[-LAST:].mean()))
        scores = ranker.score(loop.parameters, wide)
        offline.append(judge.held_out(scores, rng=tie_rng))
        online.append(cumulative)
    return {
        "key": f"{bed.key()}/{job.key()}",
        "offline": offline,
        "online": online,
        "recent": recent,
        "updates": int(loop.updates),
    }


def run_all(
    bed: Bed, jobs: Sequence[Job], path: Path, *, n_processes: int
) -> Iterator[dict[str, Any]]:
    """Run jobs over processes; each result is on disk before it is handed on."""
    return kept_runs(partial(live_once, bed), jobs, path, n_processes=n_processes)
