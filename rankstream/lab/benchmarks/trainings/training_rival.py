"""Training by the truncated LambdaLoss as it is written down: numpy, query by query.

The same pairs, weights, batches, order and steps as `models.training`, so that the same
ranker comes out but for rounding: the rival of the benchmark, and an independent check.
Networks have one layer of sigmoid units; all items of a query go through it at once.
"""

import itertools

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Singles
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan

Queries = list[QueryChunk]

KEEP_MEAN, KEEP_SQUARE, EPSILON = 0.9, 0.999, 1e-8


def train_in_numpy(
    start: Floats,
    training: Queries,
    held_out: Queries,
    plan: TrainingPlan,
    n_units: int = 0,
) -> tuple[Floats, list[tuple[float, float]]]:
    """The weights of the best epoch, and loss and held-out DCG of each from 1 on.

    All epochs are run. `start` [n_parameters]; `n_units` of the hidden layer, 0 of a
    linear ranker.
    """
    rng = np.random.default_rng(plan.seed)
    ranker, weights = _Ranker(n_units), start.copy()
    # Of a linear ranker, with no units, all of them.
    weights[-n_units:] /= _deviation(ranker, start, training) or 1.0
    best_dcg = _dcg(ranker, weights, held_out, plan.cutoff)
    best = weights.copy()
    adam = _Adam(len(weights), plan.learning_rate)
    n_queries = sum(chunk.n_queries for chunk in training)
    epochs = []
    for _ in range(plan.epochs):
        loss = 0.0
        for number in rng.permutation(len(training)).tolist():
            chunk = training[number]
            order = rng.permutation(chunk.n_queries)
            for first in range(0, len(order), plan.batch):
                gradient = np.zeros(len(weights))
                for query in order[first : first + plan.batch].tolist():
                    span = slice(chunk.offsets[query], chunk.offsets[query + 1])
                    features = chunk.features[span]
                    scores, hidden = ranker.scored(features, weights)
                    found, slopes = loss_in_numpy(
                        scores,
                        chunk.values[span],
                        chunk.is_kept[span],
                        plan.cutoff,
                    )
                    loss += chunk.weights[query] * found
                    share = chunk.weights[query] * n_queries / plan.batch
                    gradient += share * ranker.gradient(
                        slopes, features, hidden, weights
                    )
                weights = adam.moved(weights, gradient)
        dcg = _dcg(ranker, weights, held_out, plan.cutoff)
        if dcg > best_dcg:
            best, best_dcg = weights.copy(), dcg
        epochs.append((float(loss), dcg))
    return best, epochs


def loss_in_numpy(
    scores: Floats, values: Floats, is_kept: npt.NDArray[np.bool_], cutoff: int
) -> tuple[float, Floats]:
    """The loss of a query and its slopes [n_items], by a matrix of all pairs.

    `scores`, `values`, `is_kept` [n_items].
    """
    order = np.argsort(-scores, kind="stable")
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(1, len(scores) + 1)
    apart = np.abs(ranks[:, None] - ranks[None, :])
    with np.errstate(divide="ignore", over="ignore"):
        delta = np.abs(1.0 / np.log2(1.0 + apart) - 1.0 / np.log2(2.0 + apart))
        gaps = scores[:, None] - scores[None, :]
        wrong = 1.0 / (1.0 + np.exp(gaps))
    gains = values[:, None] - values[None, :]
    is_top = ranks <= cutoff
    is_pair = (gains > 0.0) & is_kept[:, None] & is_kept[None, :]
    is_pair &= is_top[:, None] | is_top[None, :]
    weight = np.where(is_pair, delta, 0.0) * np.where(is_pair, gains, 0.0)
    slopes = weight * wrong / np.log(2.0)
    loss = (weight * np.logaddexp(0.0, -gaps)).sum() / np.log(2.0)
    return float(loss), slopes.sum(axis=0) - slopes.sum(axis=1)


class _Ranker:
    """A linear one, or one with a layer of sigmoid units; all items of a query at once.

    Weights of the layer lie feature by feature, then come its biases, then the weights
    of the score.
    """

    def __init__(self, n_units: int) -> None:
        self._n_units = n_units

    def scored(self, features: Singles, weights: Floats) -> tuple[Floats, Floats]:
        """Scores [n_items], and what hidden units give [n_items, n_units]."""
        if not self._n_units:
            return features @ weights, np.empty((len(features), 0))
        layer, biases, last = self._parts(weights)
        hidden = 1.0 / (1.0 + np.exp(-(features @ layer + biases)))
        return hidden @ last, hidden

    def gradient(
        self, slopes: Floats, features: Singles, hidden: Floats, weights: Floats
    ) -> Floats:
        """Of the loss by weights, [n_parameters]; `slopes` [n_items] by scores."""
        if not self._n_units:
            return np.asarray(slopes @ features)
        last = self._parts(weights)[2]
        of_sums = slopes[:, None] * last * hidden * (1.0 - hidden)
        parts = (features.T @ of_sums).ravel(), of_sums.sum(axis=0), slopes @ hidden
        return np.concatenate(parts)

    def _parts(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        n = self._n_units
        layer = weights[: -2 * n].reshape(-1, n)
        return layer, weights[-2 * n : -n], weights[-n:]


def _dcg(ranker: _Ranker, weights: Floats, queries: Queries, cutoff: int) -> float:
    """Estimated DCG, where scores differ; `weights` [n_parameters]."""
    discounts = 1.0 / np.log2(np.arange(2.0, cutoff + 2.0))
    total = 0.0
    for chunk in queries:
        gains = np.where(chunk.is_kept, chunk.values, 0.0)
        shares = chunk.weights.tolist()
        spans = itertools.pairwise(chunk.offsets.tolist())
        for share, (begin, end) in zip(shares, spans, strict=True):
            scores, _ = ranker.scored(chunk.features[begin:end], weights)
            top = np.argsort(-scores, kind="stable")[:cutoff]
            total += share * float(gains[begin:end][top] @ discounts[: len(top)])
    return total


def _deviation(ranker: _Ranker, weights: Floats, queries: Queries) -> float:
    """Mean by weight of the standard deviation of scores."""
    total = 0.0
    for chunk in queries:
        shares = chunk.weights.tolist()
        spans = itertools.pairwise(chunk.offsets.tolist())
        for share, (begin, end) in zip(shares, spans, strict=True):
            scores, _ = ranker.scored(chunk.features[begin:end], weights)
            total += share * float(scores.std())
    return total


class _Adam:
    """Kingma & Ba (ICLR 2015), algorithm 1, on whole vectors."""

    def __init__(self, n: int, learning_rate: float) -> None:
        self._rate = learning_rate
        self._mean, self._square, self._steps = np.zeros(n), np.zeros(n), 0

    def moved(self, weights: Floats, gradient: Floats) -> Floats:
        """Weights after a step down; `weights`, `gradient` [n]."""
        self._steps += 1
        self._mean = KEEP_MEAN * self._mean + (1.0 - KEEP_MEAN) * gradient
        squared = (1.0 - KEEP_SQUARE) * gradient**2
        self._square = KEEP_SQUARE * self._square + squared
        mean = self._mean / (1.0 - KEEP_MEAN**self._steps)
        square = self._square / (1.0 - KEEP_SQUARE**self._steps)
        moved: Floats = weights - self._rate * mean / (np.sqrt(square) + EPSILON)
        return moved
