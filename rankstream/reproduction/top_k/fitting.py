"""Linear rankers from values of documents, by any loss."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.losses.ranking_worth import query_worths, worths_of
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.reproduction.top_k.plan import ARP_LOSSES, METRIC_CUTOFF

Floats = npt.NDArray[np.float64]

EPOCHS, PATIENCE, RATE = 100, 15, 0.01
"""Passes over the training queries at most, those without a gain, and their steps."""


class Fitted(NamedTuple):
    """A ranker, and what it took.

    Parameters
    ----------
    weights : [n_features]
    epochs
        Passes over the training queries.
    """

    weights: Floats
    epochs: int


def fitted(
    loss: str, training: QueryChunk, held_out: QueryChunk, *, seed: int
) -> Fitted:
    """Train from zero, until held-out queries say that there is no more to gain.

    They judge by what the loss is for: DCG of the first ranks, or all ranks.

    Parameters
    ----------
    loss
        One of `models.losses.registry.LOSSES`.
    training, held_out
        Values of both by the same estimator.
    seed
        Of the order of queries.
    """
    n_features = training.features.shape[1]
    plan = TrainingPlan(
        METRIC_CUTOFF,
        EPOCHS,
        learning_rate=RATE,
        patience=PATIENCE,
        seed=seed,
        loss=loss,
    )
    trained = train_ranker(
        ranker_of("linear", n_features, ()),
        np.zeros(n_features),
        [training],
        [held_out],
        plan,
        worths=_worths(loss, held_out),
    )
    return Fitted(trained.weights, len(trained.epochs) - 1)


def dcg_of_queries(weights: Floats, chunk: QueryChunk) -> Floats:
    """DCG of the first ranks by values of documents, [n_queries].

    `weights` [n_features].
    """
    return query_worths(
        chunk.features @ weights,
        chunk.values,
        chunk.is_kept,
        chunk.offsets,
        worths_of("dcg", METRIC_CUTOFF),
    )


def _worths(loss: str, chunk: QueryChunk) -> Floats:
    """What a rank is worth for each unit of value, [n_ranks], by what a loss is for."""
    if loss in ARP_LOSSES:
        return worths_of("arp", int(np.diff(chunk.offsets).max()))
    return worths_of("dcg", METRIC_CUTOFF)
