"""Rankers as they may be compared in practice, and pairs of them.

Each is linear, sees half of the features, and is trained by LambdaLoss on the labels of
100 queries. They are compared on queries that they never saw.
"""

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.closed_loops.intervention_loop import queries_of
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.data import world_of
from rankstream.lab.reproduction.engine import Job, Setup
from rankstream.lab.reproduction.logopt.plan import (
    CLOSE,
    HIGHEST,
    LEAST_CHANCE,
    LENGTH,
    PER_GRADE,
    Cell,
)
from rankstream.lab.reproduction.top_k.clicks import ranks_of

N_RANKERS = 40
"""Of each fold."""

N_TRAINED_ON, LOSS, EPOCHS, RATE = 100, "lambda-loss", 20, 0.01
"""Queries of a ranker, what it minimises, passes over them, and their steps."""

SETTINGS = N_RANKERS, N_TRAINED_ON, LOSS, EPOCHS, RATE
"""What of this tells results apart."""


class Scene(NamedTuple):
    """Queries on which rankers are compared, and how users are.

    Parameters
    ----------
    features : [n_items, n_features]
    relevance : [n_items]
        P(click | looked at).
    offsets : [n_queries + 1]
    examination : [n_ranks]
    rankers : [n_rankers, n_items]
        Ranks by each, from 1.
    """

    features: Floats
    relevance: Floats
    offsets: Integers
    examination: Floats
    rankers: Integers

    def looked(self, rankers: Integers, examination: Floats | None = None) -> Floats:
        """P(looked at) in the lists of some rankers, [n, n_items].

        Parameters
        ----------
        rankers : [n]
            By number.
        examination : [n_ranks]
            That of the users if not given.
        """
        theta = self.examination if examination is None else examination
        known = np.append(theta, 0.0)
        ranks = np.minimum(self.rankers[rankers], len(known))
        return np.asarray(known[ranks - 1])

    def click_rates(self) -> Floats:
        """Clicks per list of each ranker, [n_rankers]."""
        looked = self.looked(np.arange(len(self.rankers)))
        return np.asarray(looked @ self.relevance / (len(self.offsets) - 1))


class Pair(NamedTuple):
    """Two rankers, and the difference of their click rates.

    Parameters
    ----------
    rankers : [2]
        By number.
    difference
        Clicks per list of the first, less those of the second.
    """

    rankers: Integers
    difference: float


@lru_cache(maxsize=5)
def scene_of(setup: Setup, fold: int) -> Scene:
    """Rankers of a fold's training queries, on its test queries."""
    train, test = (
        world_of(setup.place, fold, split, setup.normalisation)
        for split in ("train", "test")
    )
    rng = np.random.default_rng([setup.seed, fold])
    weights = np.stack([_trained(train, rng) for _ in range(N_RANKERS)])
    scores = weights @ test.features.T
    grades = HIGHEST * test.labels / setup.grades
    return Scene(
        test.features.astype(np.float64),
        LEAST_CHANCE + PER_GRADE * grades,
        test.offsets,
        1.0 / np.arange(1.0, LENGTH + 1.0),
        np.stack([ranks_of(each, test.offsets) for each in scores]),
    )


def _trained(train: World, rng: np.random.Generator) -> Floats:
    """A ranker of half of the features, [n_features]; the others have weight 0."""
    n_queries, n_features = len(train.offsets) - 1, train.features.shape[1]
    n_taken = min(N_TRAINED_ON, n_queries)
    numbers = np.sort(rng.choice(n_queries, n_taken, replace=False))
    seen = np.sort(rng.choice(n_features, (n_features + 1) // 2, replace=False))
    few = queries_of(train, numbers)[0]
    chunk = QueryChunk(
        few.offsets,
        np.ascontiguousarray(few.features[:, seen]),
        np.exp2(few.labels.astype(np.float64)) - 1.0,
        np.ones(len(few.labels), np.bool_),
        np.full(n_taken, 1.0 / n_taken),
    )
    plan = TrainingPlan(
        LENGTH, EPOCHS, learning_rate=RATE, patience=EPOCHS, loss=LOSS,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    ranker = ranker_of("linear", len(seen))
    start = rng.normal(size=len(seen))
    weights = np.zeros(n_features)
    weights[seen] = train_ranker(ranker, start, [chunk], [chunk], plan).weights
    return weights


def pair_of(setup: Setup, job: Job[Cell]) -> Pair:
    """The pair of a run: no other run of its fold and cell has it.

    Raises
    ------
    ValueError
        Where a fold has fewer such pairs.
    """
    scene = scene_of(setup, job.fold)
    rates = scene.click_rates()
    found = [
        (one, other)
        for one, other in itertools.combinations(range(N_RANKERS), 2)
        if rates[one] != rates[other]
        and (abs(rates[one] - rates[other]) <= CLOSE) == job.cell.is_close
    ]
    if job.run >= len(found):
        raise ValueError(
            f"--runs must be at most {len(found)}, the pairs {job.cell.name} of fold "
            f"{job.fold}; got more"
        )
    seed = [setup.seed, job.fold, int(job.cell.is_close)]
    order = np.random.default_rng(seed).permutation(len(found))
    rankers = np.array(found[order[job.run]])
    return Pair(rankers, float(rates[rankers[0]] - rates[rankers[1]]))
