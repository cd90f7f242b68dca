"""One run: a production ranker, clicks on what it showed, what is learned of them."""

import zlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.evaluation.relevant_position import average_relevant_position
from models.losses.selection import select
from models.training.query_chunk import QueryChunk
from rankstream.lab.closed_loops.intervention_loop import queries_of
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.data import SPLITS, VALIDATION, world_of
from rankstream.lab.reproduction.engine import Job, Result, Setup
from rankstream.lab.reproduction.top_k.clicks import (
    ClickSums,
    Shown,
    click_chances,
    drawn_clicks,
    estimated_chunk,
    labelled_chunk,
    ranks_of,
    shown_by,
)
from rankstream.lab.reproduction.top_k.fitting import (
    SETTINGS,
    Fitted,
    dcg_of_queries,
    fitted,
    tuned,
)
from rankstream.lab.reproduction.top_k.plan import (
    CANDIDATES,
    LABELS,
    LEAST,
    METRIC_CUTOFF,
    PRODUCTION,
    PRODUCTION_LOSS,
    SELECTED,
    Cell,
    logging_seed,
)

PRODUCTION_SHARE = 0.01
"""Of the queries of a split, that the production ranker is trained on."""

VALIDATION_SHARE = 0.15
"""Clicks on validation queries, over those on training queries."""


def settings_digest() -> str:
    """Of the settings of rankers, which are the same for all cells."""
    settings = repr((*SETTINGS, LEAST, PRODUCTION_SHARE, VALIDATION_SHARE))
    return f"{zlib.crc32(settings.encode()):08x}"


class Fold(NamedTuple):
    """Splits whose labels are 0 and 1."""

    train: World
    test: World
    validation: World


@lru_cache(maxsize=5)
def fold_of(setup: Setup, fold: int) -> Fold:
    """The splits of a fold."""
    found = []
    for split in (*SPLITS, VALIDATION):
        world = world_of(setup.place, fold, split, setup.normalisation)
        labels = (world.labels >= setup.grades).astype(np.int64)
        found.append(World(world.features, labels, world.offsets))
    return Fold(*found)


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: what a ranker is worth on test queries."""
    found = selected if job.cell.loss == SELECTED else learned
    return {"kind": kind_of(job), **found(setup, job)}


def worth(
    weights: Floats, test: World, *, rng: np.random.Generator
) -> dict[str, float]:
    """What a ranker is worth by true labels, 0 and 1; `weights` [n_features]."""
    scores = test.features @ weights
    judge = Judge(test, Conventions(METRIC_CUTOFF))
    position = average_relevant_position(test.labels > 0, scores, test.offsets)
    return {"ndcg": judge.held_out(scores, rng=rng), "arp": position}


def learned(setup: Setup, job: Job[Cell]) -> Result:
    """What a cell's ranker is worth, and the epochs that it took."""
    fold = fold_of(setup, job.fold)
    found = Fitted(production_weights(setup, job.fold, job.run), 0)
    if job.cell.estimator != PRODUCTION:
        if job.cell.estimator == LABELS:
            chunks = {"": labelled_chunk(fold.train)}
            judged = labelled_chunk(fold.validation)
        else:
            chunks, judged = logged_chunks(setup, job, found.weights)
        found = tuned(job.cell.loss, chunks, judged, seed=order_seed(setup, job))
    return {
        "epochs": found.epochs,
        "setting": found.setting,
        **worth(found.weights, fold.test, rng=rng_of(setup, job, "ties")),
    }


def selected(setup: Setup, job: Job[Cell]) -> Result:
    """Rankers by each candidate of the losses, and the one that clicks choose.

    Each has its NDCG on test queries, and DCG on validation queries as it is estimated
    from clicks and as it is: both in clicks of users who look at all documents.
    """
    fold = fold_of(setup, job.fold)
    production = production_weights(setup, job.fold, job.run)
    trainings, held_out = logged_chunks(setup, job, production)
    truth = labelled_chunk(fold.validation, as_clicks=True)
    found: dict[str, dict[str, Any]] = {}
    estimated: dict[str, Floats] = {}
    for loss in CANDIDATES:
        each = tuned(loss, trainings, held_out, seed=order_seed(setup, job))
        estimated[loss] = dcg_of_queries(each.weights, held_out)
        found[loss] = {
            "epochs": each.epochs,
            "setting": each.setting,
            **worth(each.weights, fold.test, rng=rng_of(setup, job, "ties")),
            "true": float(dcg_of_queries(each.weights, truth).mean()),
        }
    chosen = select(estimated, held_out.weights)
    for loss, value in zip(chosen.names, chosen.values.tolist(), strict=True):
        found[loss]["estimated"] = value
    best = max(found, key=lambda loss: found[loss]["true"])
    at = chosen.names.index(best)
    return {
        "losses": found,
        "chosen": chosen.chosen,
        "best": best,
        "lost": found[best]["true"] - found[chosen.chosen]["true"],
        "behind": float(chosen.behind[at]),
        "behind_error": float(chosen.behind_errors[at]),
    }


def order_seed(setup: Setup, job: Job[Cell]) -> int:
    """Of the order of queries, the same for all cells of a fold and run."""
    return int(rng_of(setup, job, "order").integers(2**31))


@lru_cache(maxsize=50)
def production_weights(setup: Setup, fold: int, run: int) -> Floats:
    """A ranker trained from the labels of a few queries, [n_features].

    The same for all cells of a fold and run.
    """
    rng = np.random.default_rng([setup.seed, fold, run])
    worlds = fold_of(setup, fold)
    few = [
        labelled_chunk(queries_of(world, _some_queries(world, rng))[0])
        for world in (worlds.train, worlds.validation)
    ]
    seed = int(rng.integers(2**31))
    return fitted(PRODUCTION_LOSS, few[0], few[1], seed=seed).weights


def _some_queries(world: World, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """One in a hundred, and one more, of those with something relevant and not."""
    n_queries = len(world.offsets) - 1
    relevant = np.add.reduceat(world.labels, world.offsets[:-1])
    usable = np.flatnonzero((relevant > 0) & (relevant < np.diff(world.offsets)))
    if not len(usable):
        raise ValueError(
            "queries must have documents that are relevant and others; got none that "
            "do: choose another --relevant-from"
        )
    n_wanted = min(int(PRODUCTION_SHARE * n_queries) + 1, len(usable))
    return np.sort(rng.choice(usable, n_wanted, replace=False))


def logged_chunks(
    setup: Setup, job: Job[Cell], production: Floats
) -> tuple[dict[str, QueryChunk], QueryChunk]:
    """Training queries with what an estimator makes of clicks, by how it is clipped.

    And validation queries, of which nothing is clipped. `production` [n_features] are
    the weights of what logged.
    """
    cell = job.cell
    fold = fold_of(setup, job.fold)
    is_clipped = cell.estimator == "policy-aware"
    least = LEAST if is_clipped else {"": 0.0}
    trained_on, judged_by = logged_clicks(setup, job, production)
    training = {
        name: estimated_chunk(cell.estimator, fold.train, *trained_on, least=floor)
        for name, floor in least.items()
    }
    return training, estimated_chunk(cell.estimator, fold.validation, *judged_by)


def logged_clicks(
    setup: Setup, job: Job[Cell], production: Floats
) -> tuple[tuple[Shown, ClickSums], tuple[Shown, ClickSums]]:
    """Clicks on training queries, and on validation queries.

    `production` [n_features] are the weights of what logged.
    """
    fold, logging = fold_of(setup, job.fold), job.cell.logging

    def logged(world: World, share: float, name: str) -> tuple[Shown, ClickSums]:
        ranks = ranks_of(world.features @ production, world.offsets)
        shown = shown_by(ranks, world.offsets, logging)
        return shown, drawn_clicks(
            shown,
            click_chances(world.labels > 0),
            world.offsets,
            share * logging.n_clicks,
            rng=rng_of(setup, job, f"{name}/{logging_seed(logging)}"),
        )

    return (
        logged(fold.train, 1.0, "train"),
        logged(fold.validation, VALIDATION_SHARE, VALIDATION),
    )


def rng_of(setup: Setup, job: Job[Cell], what: str) -> np.random.Generator:
    """Draws of one thing, the same for all cells of a fold and run."""
    letters = list(what.encode())
    return np.random.default_rng([setup.seed, job.fold, job.run, *letters])


def kind_of(job: Job[Cell]) -> str:
    """Jobs of one kind take about as long."""
    cell = job.cell
    return f"{cell.loss}/{cell.estimator}/{cell.logging.cutoff}"
