"""One run: what each ranker of a source of knowledge is worth on test queries."""

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.losses.selection import select
from models.training.query_chunk import QueryChunk
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.engine import Job, Result, Setup
from rankstream.lab.reproduction.top_k.clicks import ClickSums, labelled_chunk
from rankstream.lab.reproduction.top_k.plan import LABELS, PRODUCTION, Cell
from rankstream.lab.reproduction.top_k.runs import (
    fold_of,
    logged_chunks,
    logged_clicks,
    order_seed,
    production_weights,
    rng_of,
)
from rankstream.lab.reproduction.top_k.runs import settings_digest as digest_of_top_k
from rankstream.lab.reproduction.trees import lambdarank
from rankstream.lab.reproduction.trees.click_lists import click_lists
from rankstream.lab.reproduction.trees.fitting import (
    Fit,
    Trained,
    best_of,
    by_trees,
    dcg_of_queries,
    linear_by,
)
from rankstream.lab.reproduction.trees.plan import (
    CUTOFF,
    LINEAR,
    LINEAR_OF_LABELS,
    LISTS,
    OF_LABELS,
    OF_LISTS,
    OF_RATES,
    OURS,
    OURS_OF_LABELS,
    PLAN,
    RATES,
    ROUNDS_ON_CLICKS,
    SELECTED,
    VALUES,
)

WITHIN = 2.0
"""Errors of a difference that a selection may miss the better one by."""


class Learned(NamedTuple):
    """Rankers by name, and what else is told of them.

    Parameters
    ----------
    rankers
        As lines of the table are called.
    told
        Figures of the selection, settings.
    """

    rankers: Mapping[str, Trained]
    told: Mapping[str, float | str]


def settings_digest() -> str:
    """Of the settings of rankers, which are the same for all cells."""
    settings = repr((PLAN, ROUNDS_ON_CLICKS, digest_of_top_k()))
    return f"{zlib.crc32(settings.encode()):08x}"


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: NDCG on test queries by the name of each ranker, and their rounds."""
    found = LEARNED[job.cell.estimator](setup, job)
    test = fold_of(setup, job.fold).test
    judge = Judge(test, Conventions(CUTOFF))
    worths = {
        name: judge.held_out(
            ranker.scores(test.features), rng=rng_of(setup, job, "ties")
        )
        for name, ranker in found.rankers.items()
    }
    rounds = {name: ranker.rounds for name, ranker in found.rankers.items()}
    return {"kind": kind_of(job), **worths, "rounds": rounds, **found.told}


def kind_of(job: Job[Cell]) -> str:
    """Jobs of one kind take about as long."""
    cell = job.cell
    return f"{cell.estimator}/{cell.logging.n_clicks}"


def _produced(setup: Setup, job: Job[Cell]) -> Learned:
    weights = production_weights(setup, job.fold, job.run)
    return Learned({PRODUCTION: Trained(lambda x: np.asarray(x @ weights), 0)}, {})


def _of_labels(setup: Setup, job: Job[Cell]) -> Learned:
    fold = fold_of(setup, job.fold)
    chunks = labelled_chunk(fold.train), labelled_chunk(fold.validation)
    rankers = {
        OF_LABELS: lambdarank.on_labels(fold.train, fold.validation),
        OURS_OF_LABELS: by_trees(*chunks),
        LINEAR_OF_LABELS: linear_by(order_seed(setup, job))(*chunks),
    }
    return Learned(rankers, {})


def _of_values(setup: Setup, job: Job[Cell]) -> Learned:
    """Linear and trees, and the one that has more DCG by held-out clicks.

    Whether that is right, labels of the same queries say.
    """
    fold = fold_of(setup, job.fold)
    production = production_weights(setup, job.fold, job.run)
    trainings, held_out = logged_chunks(setup, job, production)
    truth = labelled_chunk(fold.validation, as_clicks=True)
    fits: dict[str, Fit] = {LINEAR: linear_by(order_seed(setup, job)), OURS: by_trees}
    rankers, settings = {}, {}
    for name, fit in fits.items():
        rankers[name], settings[f"setting of {name}"] = best_of(
            trainings, held_out, fit
        )
    chosen = select(
        {name: dcg_of_queries(each, held_out) for name, each in rankers.items()},
        held_out.weights,
    )
    true = {
        name: float(dcg_of_queries(each, truth).mean())
        for name, each in rankers.items()
    }
    best = max(true, key=lambda name: true[name])
    at = chosen.names.index(best)
    lost = true[best] - true[chosen.chosen]
    is_within = chosen.behind[at] <= WITHIN * chosen.behind_errors[at]
    return Learned(
        {**rankers, SELECTED: rankers[chosen.chosen]},
        {
            **settings,
            "chosen": chosen.chosen,
            "is_right": float(lost <= 0.0),  # of equal ones either is
            "is_within": float(is_within),
            "lost": lost,
        },
    )


def _of_rates(setup: Setup, job: Job[Cell]) -> Learned:
    fold = fold_of(setup, job.fold)
    production = production_weights(setup, job.fold, job.run)
    (_, trained_on), (_, judged_by) = logged_clicks(setup, job, production)
    ranker = by_trees(
        rates_of(fold.train, trained_on), rates_of(fold.validation, judged_by)
    )
    return Learned({OF_RATES: ranker}, {})


def rates_of(world: World, clicks: ClickSums) -> QueryChunk:
    """Clicks on documents by how often they were shown; others are not known."""
    is_kept = clicks.shown > 0
    rates: Floats = clicks.clicked / np.maximum(clicks.shown, 1)
    return QueryChunk(
        world.offsets,
        world.features,
        rates,
        is_kept,
        clicks.impressions / clicks.impressions.sum(),
    )


def _of_lists(setup: Setup, job: Job[Cell]) -> Learned:
    fold = fold_of(setup, job.fold)
    production = production_weights(setup, job.fold, job.run)
    (shown, clicks), _ = logged_clicks(setup, job, production)
    rng = rng_of(setup, job, f"lists/{job.cell.logging.n_clicks}")
    lists = click_lists(clicks, shown, fold.train.offsets, rng=rng)
    return Learned({OF_LISTS: lambdarank.on_clicks(fold.train, lists)}, {})


LEARNED: dict[str, Callable[[Setup, Job[Cell]], Learned]] = {
    PRODUCTION: _produced,
    LABELS: _of_labels,
    VALUES: _of_values,
    RATES: _of_rates,
    LISTS: _of_lists,
}
"""By what is learned from."""
