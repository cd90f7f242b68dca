"""Scores that a linear ranker gives, and how far they lie apart."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from models.training.query_chunk import ChunkSource, QueryChunk, Singles
from models.training.training_kernel import fill_scores

Floats = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Scores that differ by less than this share of their size are equal but for rounding.
"""


def scores_of(features: Singles, weights: Floats) -> Floats:
    """Scores of items, [n_items].

    `features` [n_items, n_features]; `weights` [n_features].
    """
    scores = np.empty(len(features))
    fill_scores(features, weights, scores)
    return scores


def mean_deviation(weights: Floats, chunks: ChunkSource) -> float:
    """Mean by weight over queries of the standard deviation of their items' scores.

    0 where scores differ by rounding only, or no query has items; `weights`
    [n_features].
    """
    deviation = size = total = 0.0
    for number in range(len(chunks)):
        chunk = chunks[number]
        scores, shares = scores_of(chunk.features, weights), chunk.weights.tolist()
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
