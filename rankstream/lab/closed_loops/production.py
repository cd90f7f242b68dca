"""The ranker that is in production before anything is learned from clicks.

It is trained on the labels of a few queries, and made as sure of itself as is asked
for: scores times a factor at which the document that is first most often is first with
a given probability, as a mean over queries. A sure ranker explores little, so that
what it hides is learned late; one that is not, explores by itself.

References
----------
Joachims, Swaminathan & Schnabel (WSDM 2017) for a ranker of 1 % of the queries.
"""

import numpy as np

from models.rankers.ranker import Ranker
from rankstream.lab.closed_loops.policy_training import (
    PolicyTrainer,
    ValuedQueries,
    scores_of,
)
from rankstream.lab.closed_loops.world import Floats, Integers, World

SHARE = 0.01
"""Of the queries, whose labels the ranker is trained on, and one more."""

DOUBLINGS = 60


def production_ranker(
    ranker: Ranker,
    trainer: PolicyTrainer,
    world: World,
    relevance: Floats,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Train a ranker from scratch on the labels of a few queries, [n_parameters].

    Queries without a relevant document say nothing and are not drawn. The ranker is
    stopped by the queries that it is trained on, as in the published code.

    Parameters
    ----------
    relevance : [n_grades]
        P(relevant) by grade.

    Raises
    ------
    ValueError
        Where no query has a relevant document.
    """
    values = np.asarray(relevance, np.float64)[world.labels]
    told = np.flatnonzero(np.add.reduceat(values, world.offsets[:-1]) > 0.0)
    if not len(told):
        raise ValueError(
            "some query must have a relevant document; got "
            f"{len(world.offsets) - 1} without"
        )
    n_queries = int(SHARE * (len(world.offsets) - 1)) + 1
    part, rows = queries_of(world, rng.permutation(told)[:n_queries])
    n = len(part.offsets) - 1
    few = ValuedQueries(part, values[rows], np.full(n, 1.0 / n))
    start = ranker.initial_parameters(rng=rng)
    return trainer.train(start, few, few, rng=rng).parameters


def queries_of(world: World, queries: Integers) -> tuple[World, Integers]:
    """`queries` [n_drawn] of a world as a world, and where their documents were."""
    spans = [np.arange(*world.offsets[query : query + 2]) for query in queries]
    rows = np.concatenate(spans)
    offsets = np.concatenate([[0], np.cumsum([len(span) for span in spans])])
    return World(world.features[rows], world.labels[rows], offsets), rows


def chance_of_first(scores: Floats, offsets: Integers) -> float:
    """Mean over queries of the chance of the document that is first most often.

    `scores` [n_documents], `offsets` [n_queries + 1].
    """
    top = np.maximum.reduceat(scores, offsets[:-1])
    odds = np.exp(scores - np.repeat(top, np.diff(offsets)))
    return float((1.0 / np.add.reduceat(odds, offsets[:-1])).mean())


def sharpened(
    ranker: Ranker, parameters: Floats, world: World, chance: float
) -> Floats:
    """The order of `parameters` [n_parameters] with `chance_of_first` as asked for.

    The weights of the last layer are multiplied, and scores with them.

    Raises
    ------
    ValueError
        Where no factor gives that chance, as where all documents score alike.
    """
    scores = scores_of(ranker, parameters, world)

    def found(factor: float) -> float:
        return chance_of_first(factor * scores, world.offsets)

    low, high = 0.0, 1.0
    for _ in range(DOUBLINGS):
        if found(high) >= chance:
            break
        high *= 2.0
    if not found(low) <= chance <= found(high):
        raise ValueError(
            "the chance of the first document must be one that scores of this order "
            f"can give, {found(low):.3f} to {found(high):.3f}; got {chance}"
        )
    for _ in range(DOUBLINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found(middle) < chance else (low, middle)
    result = np.array(parameters, np.float64)
    result[-ranker.sizes[-2] :] *= high
    return result
