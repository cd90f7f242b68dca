"""Trees by our loss beside LightGBM's own `lambdarank`, on equal labels and features.

Both make bins of the same matrix, and grow as many trees of as many leaves, with the
same rate and least items of a leaf. Ours judges held-out queries after each round as
well. Time is what a core was busy.
"""

import time
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Floats
from models.evaluation.ndcg import mean_ndcg
from models.losses.gains import exponential_gains
from models.training.boosting import boosted
from models.training.boosting_plan import BoostingPlan
from models.training.query_chunk import QueryChunk
from rankstream.lab.benchmarks.harness import Figure, new_figure, timed
from rankstream.lab.benchmarks.trainings.training import (
    CPU,
    CUTOFF,
    N_ITEMS,
    N_QUERIES,
    Graded,
    generated,
)
from rankstream.ranking.tree_scoring import TreeScorer
from streams.training.versions.forest_ranker import forest_of

if TYPE_CHECKING:
    from lightgbm import Booster

N_ROUNDS, N_LEAVES = 100, 31
LEAST_ITEMS, LEARNING_RATE = 20, 0.1
BOUNDS = (1.5, 2.5)
"""A goal and a floor of our time over theirs."""

LARGEST_GAP = 0.01
"""Of NDCG by true grades: further apart they are not of equal quality."""


def training_figure(*, quick: bool = False) -> Figure:
    """Our CPU beside theirs."""
    n_queries, n_rounds = (80, 4) if quick else (N_QUERIES, N_ROUNDS)
    training, held_out = generated(n_queries, rng=np.random.default_rng(1))
    # Kernels are compiled before the clock runs.
    _ours(training, held_out, 1)
    ours = timed(lambda: _ours(training, held_out, n_rounds), time.process_time)
    theirs = timed(lambda: _theirs(training, n_rounds), time.process_time)
    features = np.concatenate([chunk.features for chunk in held_out.chunks])
    raw = np.asarray(theirs.result.predict(features, num_threads=1), np.float64)
    gap = _ndcg(held_out, ours.result.scores(features)) - _ndcg(held_out, raw)
    ratio = ours.seconds / theirs.seconds if quick or gap > -LARGEST_GAP else None
    return new_figure(
        f"{n_rounds} rounds of {N_LEAVES} leaves, {n_queries:,} queries of {N_ITEMS}",
        ours.seconds, CPU, theirs.seconds, ratio, BOUNDS, less_is_better=True,
        ndcg_above=gap,
    )  # fmt: skip


def _ours(training: Graded, held_out: Graded, n_rounds: int) -> TreeScorer:
    plan = BoostingPlan(
        cutoff=CUTOFF, rounds=n_rounds, patience=n_rounds, leaves=N_LEAVES,
        learning_rate=LEARNING_RATE, least_items=LEAST_ITEMS,
    )  # fmt: skip
    found = boosted(_nothing, _labelled(training), _labelled(held_out), plan)
    return TreeScorer(forest_of(found.trees))


def _nothing(features: np.ndarray) -> Floats:
    return np.zeros(len(features))


def _labelled(side: Graded) -> list[QueryChunk]:
    """The same queries with gains of grades as values, all of them known."""
    gains, first, found = exponential_gains(5), 0, []
    for chunk in side.chunks:
        end = first + len(chunk.values)
        known = np.ones(len(chunk.values), np.bool_)
        values = gains[side.grades[first:end]]
        found.append(chunk._replace(values=values, is_kept=known))
        first = end
    return found


def _theirs(training: Graded, n_rounds: int) -> "Booster":
    import lightgbm  # noqa: PLC0415  of the extra `trees`

    plan = {
        "objective": "lambdarank", "num_leaves": N_LEAVES, "verbosity": -1,
        "learning_rate": LEARNING_RATE, "min_data_in_leaf": LEAST_ITEMS,
        "lambdarank_truncation_level": CUTOFF, "num_threads": 1,
        "deterministic": True, "force_col_wise": True,
    }  # fmt: skip
    features = np.concatenate([chunk.features for chunk in training.chunks])
    sizes = np.full(len(features) // N_ITEMS, N_ITEMS)
    dataset = lightgbm.Dataset(features, training.grades, group=sizes, params=plan)
    return lightgbm.train(plan, dataset, n_rounds)


def _ndcg(side: Graded, scores: Floats) -> float:
    offsets = np.arange(0, len(side.grades) + 1, N_ITEMS)
    return mean_ndcg(side.grades, scores, offsets, CUTOFF)
