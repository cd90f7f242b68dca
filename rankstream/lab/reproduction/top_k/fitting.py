"""Linear rankers from values of documents, by any loss."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.losses.ranking_worth import query_worths, worths_of
from models.losses.selection import select
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.reproduction.top_k.plan import ARP_LOSSES, METRIC_CUTOFF

EPOCHS, PATIENCE, RATE = 150, 15, 0.01
"""Passes over the training queries at most, those without a gain, and their steps."""

SETTINGS = METRIC_CUTOFF, EPOCHS, PATIENCE, RATE
"""What of this tells results apart."""


class Fitted(NamedTuple):
    """A ranker, and what it took.

    Parameters
    ----------
    weights : [n_features]
    epochs
        Passes over the training queries.
    setting
        With which values it was trained, where there were several.
    """

    weights: Floats
    epochs: int
    setting: str = ""


def fitted(
    loss: str,
    training: QueryChunk,
    held_out: QueryChunk,
    *,
    seed: int,
    cutoff: int = METRIC_CUTOFF,
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
    cutoff
        Ranks that DCG counts.
    """
    n_features = training.features.shape[1]
    plan = TrainingPlan(
        cutoff,
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
        worths=worths_for(loss, held_out, cutoff),
    )
    return Fitted(trained.weights, len(trained.epochs) - 1)


def tuned(
    loss: str, trainings: Mapping[str, QueryChunk], held_out: QueryChunk, *, seed: int
) -> Fitted:
    """Train with several values of the same documents; held-out queries choose.

    They judge by what the loss is for, and by values that nobody clipped.

    Parameters
    ----------
    trainings
        By the name of a setting.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 7.5.2: hyperparameters by estimated
    performance on unclipped validation clicks.
    """
    found = {
        name: fitted(loss, training, held_out, seed=seed)
        for name, training in trainings.items()
    }
    if len(found) == 1:
        return next(iter(found.values()))
    worths = {
        name: worth_of_queries(each.weights, held_out, worths_for(loss, held_out))
        for name, each in found.items()
    }
    chosen = select(worths, held_out.weights).chosen
    return found[chosen]._replace(setting=chosen)


def dcg_of_queries(weights: Floats, chunk: QueryChunk) -> Floats:
    """DCG of the first ranks by values of documents, [n_queries].

    `weights` [n_features].
    """
    return worth_of_queries(weights, chunk, worths_of("dcg", METRIC_CUTOFF))


def worth_of_queries(weights: Floats, chunk: QueryChunk, worths: Floats) -> Floats:
    """Values of documents times worths of their ranks, summed by query, [n_queries].

    `weights` [n_features]; `worths` [n_ranks].
    """
    return query_worths(
        chunk.features @ weights,
        chunk.values,
        chunk.is_kept,
        chunk.offsets,
        worths,
    )


def worths_for(loss: str, chunk: QueryChunk, cutoff: int = METRIC_CUTOFF) -> Floats:
    """What a rank is worth for each unit of value, [n_ranks], by what a loss is for."""
    if loss in ARP_LOSSES:
        return worths_of("arp", int(np.diff(chunk.offsets).max()))
    return worths_of("dcg", cutoff)
