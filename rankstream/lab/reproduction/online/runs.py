"""One run of a closed loop: what was learned and shown by each checkpoint."""

import numpy as np

from models.click_models.registry import click_model_of
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.performance import Conventions, Judge, discounted_sum
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.reproduction.data import world_of
from rankstream.lab.reproduction.engine import Job, Result, Setup, checkpoints_of
from rankstream.lab.reproduction.online.plan import (
    PUBLISHED,
    Cell,
    config_of,
    lag_of,
)

GRADES = (2, 3, 5)
"""Numbers of grades for which there are tables of users."""

LAST = 1_000
"""Lists whose mean NDCG says what users see now."""


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


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: what was learned and shown by each checkpoint."""
    conventions = setup.conventions or Conventions()
    train, test = (
        world_of(setup.place, job.fold, split, setup.normalisation)
        for split in ("train", "test")
    )
    cell = job.cell
    # Runs of all cells that share fold and number share their seed: they are paired.
    streams = np.random.SeedSequence([setup.seed, job.fold, job.run]).spawn(3)
    loop_rng, tie_rng, init_rng = map(np.random.default_rng, streams)
    config = config_of(
        cell, train.features.shape[1], seed=int(init_rng.integers(2**31))
    )
    users = click_model_of(
        cell.users, setup.grades, stop_requires_click=cell.form != PUBLISHED
    )
    loop = loop_of(
        config,
        train,
        users,
        lag=lag_of(cell),
        cutoff=conventions.cutoff,
        rng=loop_rng,
    )
    ranker = ranker_of(config.kind, config.n_features, config.hidden)
    shown_judge, judge = Judge(train, conventions), Judge(test, conventions)
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
        "offline": offline,
        "online": online,
        "recent": recent,
        "updates": int(loop.updates),
    }
