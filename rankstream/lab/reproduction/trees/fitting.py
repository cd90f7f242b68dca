"""Rankers of each kind, as what scores documents."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Singles
from models.losses.ranking_worth import query_worths, worths_of
from models.losses.selection import select
from models.training.boosting import boosted
from models.training.query_chunk import QueryChunk
from rankstream.lab.reproduction.top_k.fitting import fitted
from rankstream.lab.reproduction.trees.plan import CUTOFF, PLAN
from rankstream.ranking.tree_scoring import TreeScorer
from streams.training.versions.forest_ranker import forest_of


class Trained(NamedTuple):
    """A ranker, and what it took.

    Parameters
    ----------
    scores
        Of documents by features [n_documents, n_features], [n_documents].
    rounds
        Trees, or passes over the training queries.
    """

    scores: Callable[[Singles], Floats]
    rounds: int


Fit = Callable[[QueryChunk, QueryChunk], Trained]
"""Training queries and held-out ones as a ranker."""


def by_trees(training: QueryChunk, held_out: QueryChunk) -> Trained:
    """Trees from nothing, by our loss."""
    found = boosted(lambda x: np.zeros(len(x)), [training], [held_out], PLAN)
    return Trained(TreeScorer(forest_of(found.trees)).scores, found.best_epoch)


def linear_by(seed: int) -> Fit:
    """A linear ranker from nothing, by the same; `seed` of the order of queries."""

    def fit(training: QueryChunk, held_out: QueryChunk) -> Trained:
        found = fitted(PLAN.loss, training, held_out, seed=seed, cutoff=CUTOFF)
        return Trained(lambda x: np.asarray(x @ found.weights), found.epochs)

    return fit


def best_of(
    trainings: Mapping[str, QueryChunk], held_out: QueryChunk, fit: Fit
) -> tuple[Trained, str]:
    """The one of several values of the same documents that held-out queries choose.

    `trainings` by the name of a setting, which is given back.
    """
    found = {name: fit(training, held_out) for name, training in trainings.items()}
    worths = {name: dcg_of_queries(each, held_out) for name, each in found.items()}
    chosen = select(worths, held_out.weights).chosen
    return found[chosen], chosen


def dcg_of_queries(ranker: Trained, chunk: QueryChunk) -> Floats:
    """DCG of the first ranks by values of documents, [n_queries]."""
    return query_worths(
        ranker.scores(chunk.features),
        chunk.values,
        chunk.is_kept,
        chunk.offsets,
        worths_of("dcg", CUTOFF),
    )
