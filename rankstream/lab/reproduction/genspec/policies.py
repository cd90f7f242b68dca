"""The policies that are served, and what they are worth.

A policy is told by the discounts that items have on average over the lists that it
draws: what a reward and DCG ask for.
"""

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.decisions.tied_orders import expected_weights, tied_orders
from models.losses.discounts import discounts
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.closed_loops.world import World

LOSS, EPOCHS, PATIENCE, RATE = "lambda-loss", 100, 10, 0.01
"""What the general policy minimises, passes over queries at most, those without a gain,
and their steps."""

SETTINGS = LOSS, EPOCHS, PATIENCE, RATE
"""What of this tells results apart."""


def expected_discounts(scores: Floats, offsets: Integers) -> Floats:
    """Mean over the lists that a policy draws of 1 / log2(1 + rank), [n_items].

    Parameters
    ----------
    scores : [n_items]
        Of equal ones any order is as likely.
    offsets : [n_queries + 1]
        Of items, from 0.
    """
    falling = discounts(int(np.diff(offsets).max()))
    return expected_weights(tied_orders(scores, offsets), falling)


def valued_queries(
    world: World, clicked: Floats, lists: Integers, ranks: Integers
) -> QueryChunk:
    """Queries with clicks over propensities, which rankers are trained on.

    Parameters
    ----------
    clicked : [n_items]
        Lists on which an item was clicked.
    lists : [n_queries]
        That came.
    ranks : [n_items]
        At which users looked by chance 1 / rank.
    """
    each = np.repeat(lists, np.diff(world.offsets))
    return QueryChunk(
        world.offsets,
        world.features,
        clicked * ranks / np.maximum(each, 1),
        np.ones(len(clicked), np.bool_),
        lists / max(int(lists.sum()), 1),
    )


def general_ranker(training: QueryChunk, held_out: QueryChunk, *, seed: int) -> Floats:
    """A linear ranker of clicks, [n_features]; all 0 where nothing was clicked.

    Parameters
    ----------
    held_out
        Queries that say when it is trained enough, by the same estimates.
    seed
        Of the order of queries.
    """
    n_features = training.features.shape[1]
    longest = max(int(np.diff(each.offsets).max()) for each in (training, held_out))
    plan = TrainingPlan(
        longest, EPOCHS, learning_rate=RATE, patience=PATIENCE, seed=seed, loss=LOSS
    )
    ranker, start = ranker_of("linear", n_features, ()), np.zeros(n_features)
    return train_ranker(ranker, start, [training], [held_out], plan).weights


class Worth:
    """Mean NDCG of policies over all ranks, by the labels of a world.

    Gains are 2^grade - 1. Queries without a relevant item do not count.

    Parameters
    ----------
    grades : [n_items]
    offsets : [n_queries + 1]
        Of items.
    """

    def __init__(self, grades: Floats, offsets: Integers) -> None:
        self._gains, self._offsets = 2.0**grades - 1.0, offsets
        ideals = self._sums(expected_discounts(self._gains, offsets))
        self.is_counted: Flags = ideals > 0.0
        self._ideals = ideals[self.is_counted]

    def _sums(self, shown: Floats) -> Floats:
        return np.add.reduceat(shown * self._gains, self._offsets[:-1])

    def ndcg(self, shown: Floats) -> float:
        """Of a policy; `shown` [n_items] are the discounts that it gives on average."""
        return float(np.mean(self._sums(shown)[self.is_counted] / self._ideals))
