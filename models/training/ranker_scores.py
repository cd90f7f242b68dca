"""How far the scores lie apart that a ranker gives the items of queries."""

import itertools
from collections.abc import Iterator

import numpy as np

from models.arrays import Floats
from models.rankers.ranker import Scorer
from models.rankers.registry import LinearRanker
from models.training.query_chunk import ChunkSource, QueryChunk

ROUNDING = 1e-9
"""Scores that differ by less than this share of their size are equal but for rounding.
"""


def linear_unless(ranker: Scorer | None, n_parameters: int) -> Scorer:
    """The ranker, or where there is none a linear one of so many parameters."""
    return LinearRanker(n_parameters) if ranker is None else ranker


def mean_deviation(
    parameters: Floats, chunks: ChunkSource, ranker: Scorer | None = None
) -> float:
    """Mean by weight over queries of the standard deviation of their items' scores.

    0 where scores differ by rounding only, or no query has items.

    Parameters
    ----------
    parameters : [n_parameters]
    ranker
        A linear one if not given.
    """
    ranker = linear_unless(ranker, len(parameters))
    deviation = size = total = 0.0
    for number in range(len(chunks)):
        chunk = chunks[number]
        scores = ranker.item_scores(parameters, chunk.features)
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
