"""Generated queries for tests of training, and a linear ranker trained on some."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from models.rankers.registry import LinearRanker
from models.training.query_chunk import ChunkSource, QueryChunk
from models.training.ranker_training import Trained, TrainingPlan, train_ranker

Floats = npt.NDArray[np.float64]


def queries(
    n_queries: int, truth: Floats, rng: np.random.Generator, *, noise: float = 0.0
) -> QueryChunk:
    """Queries of 4 to 12 items whose values rise with their features times a truth."""
    sizes = rng.integers(4, 13, n_queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    features = rng.random((offsets[-1], len(truth))).astype(np.float32)
    values = np.empty(offsets[-1])
    for begin, end in itertools.pairwise(offsets):
        scores = features[begin:end] @ truth
        values[begin:end] = (scores.argsort().argsort() + 1.0) / (end - begin)
    values += noise * rng.standard_normal(len(values))
    weights = rng.random(n_queries) + 0.5
    return QueryChunk(
        offsets, features, values, np.ones(len(values), bool), weights / weights.sum()
    )


def cut(chunk: QueryChunk, *places: int) -> list[QueryChunk]:
    """The same queries in several chunks."""
    found = []
    for first, last in itertools.pairwise([0, *places, chunk.n_queries]):
        begin, end = chunk.offsets[first], chunk.offsets[last]
        found.append(
            QueryChunk(
                chunk.offsets[first : last + 1] - begin,
                chunk.features[begin:end],
                chunk.values[begin:end],
                chunk.is_kept[begin:end],
                chunk.weights[first:last],
            )
        )
    return found


def train(
    start: Floats,
    training: ChunkSource,
    held_out: ChunkSource,
    plan: TrainingPlan,
    **options: Any,
) -> Trained:
    """A linear ranker, trained from a weight for each feature."""
    ranker = LinearRanker(len(start))
    return train_ranker(ranker, start, training, held_out, plan, **options)
