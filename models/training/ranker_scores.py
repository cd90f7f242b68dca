"""Scores that a ranker gives, how far they lie apart, and what stretches them."""

import itertools
from collections.abc import Iterator

import numpy as np

from models.arrays import Floats, Singles
from models.rankers.layers import Shape
from models.rankers.ranker import Ranker
from models.rankers.registry import LinearRanker
from models.training.query_chunk import ChunkSource, QueryChunk
from models.training.training_kernel import fill_scores

ROUNDING = 1e-9
"""Scores that differ by less than this share of their size are equal but for rounding.
"""


def linear_unless(ranker: Ranker | None, n_parameters: int) -> Ranker:
    """The ranker, or where there is none a linear one of so many parameters."""
    return LinearRanker(n_parameters) if ranker is None else ranker


def last_layer(shape: Shape) -> slice:
    """Where the weights lie that scores are proportional to: of a linear ranker all.

    Examples
    --------
    >>> last_layer(Shape(np.array([3, 2, 1]), 0))
    slice(-2, None, None)
    """
    return slice(-int(shape.sizes[-2]), None)


def scores_of(features: Singles, parameters: Floats, shape: Shape) -> Floats:
    """Scores of items, [n_items].

    `features` [n_items, n_features]; `parameters` [n_parameters].
    """
    scores = np.empty(len(features))
    n_hidden = int(shape.sizes[1:-1].sum())
    fill_scores(
        features, parameters, shape, scores, np.empty((len(features), n_hidden))
    )
    return scores


def mean_deviation(
    parameters: Floats, chunks: ChunkSource, ranker: Ranker | None = None
) -> float:
    """Mean by weight over queries of the standard deviation of their items' scores.

    0 where scores differ by rounding only, or no query has items.

    Parameters
    ----------
    parameters : [n_parameters]
    ranker
        A linear one if not given.
    """
    shape = linear_unless(ranker, len(parameters)).shape
    deviation = size = total = 0.0
    for number in range(len(chunks)):
        chunk = chunks[number]
        scores = scores_of(chunk.features, parameters, shape)
        shares = chunk.weights.tolist()
        for share, (begin, end) in zip(shares, spans(chunk), strict=True):
            if end > begin:
                of_query = scores[begin:end]
                deviation += share * float(of_query.std())
                size += share * float(np.abs(of_query).max())
                total += share
    return deviation / total if deviation > ROUNDING * size else 0.0


def spans(chunk: QueryChunk) -> Iterator[tuple[int, int]]:
    """Where the items of each query begin and end."""
    return itertools.pairwise(chunk.offsets.tolist())
