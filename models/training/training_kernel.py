"""Passes over the queries of a chunk, compiled.

Features are float32, sums of products float64, added in one order: the same bits on
every run.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.kernels.compilation import compiled
from models.optimisers.kernel import Optimiser, step
from models.training.lambda_loss import Room, add_query_loss, fill_order, rooms
from models.training.query_chunk import QueryChunk

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


class Buffers(NamedTuple):
    """Where kernels work.

    Parameters
    ----------
    room
        For the loss of a query.
    scores, slopes : [n]
        Of a query's items.
    gradient : [n_features]
    """

    room: Room
    scores: Floats
    slopes: Floats
    gradient: Floats


def buffers(n_items: int, n_features: int) -> Buffers:
    """Memory for queries of at most so many items."""
    return Buffers(
        Room(*rooms(n_items)), np.empty(n_items), np.empty(n_items),
        np.empty(n_features),
    )  # fmt: skip


class Steps(NamedTuple):
    """How a pass steps.

    Parameters
    ----------
    cutoff
        Ranks that count.
    batch
        Queries of a step.
    n_queries
        Of all chunks.
    """

    cutoff: int
    batch: int
    n_queries: int


@compiled
def fill_scores(features: Singles, weights: Floats, scores: Floats) -> None:
    """Fill `scores` [n] with the products of `features` [n, n_features] and weights.

    `weights` [n_features]. Eight sums side by side, added at the end.
    """
    n_features = weights.shape[0]
    whole = n_features - n_features % 8
    for row in range(features.shape[0]):
        numbers = features[row]
        a = b = c = d = e = f = g = h = 0.0
        for i in range(0, whole, 8):
            a += numbers[i] * weights[i]
            b += numbers[i + 1] * weights[i + 1]
            c += numbers[i + 2] * weights[i + 2]
            d += numbers[i + 3] * weights[i + 3]
            e += numbers[i + 4] * weights[i + 4]
            f += numbers[i + 5] * weights[i + 5]
            g += numbers[i + 6] * weights[i + 6]
            h += numbers[i + 7] * weights[i + 7]
        for i in range(whole, n_features):
            a += numbers[i] * weights[i]
        scores[row] = ((a + e) + (c + g)) + ((b + f) + (d + h))


@compiled
def sum_of_losses(
    chunk: QueryChunk, weights: Floats, cutoff: int, deltas: Floats, buffers: Buffers
) -> float:
    """Losses of a chunk's queries by their weights.

    Parameters
    ----------
    weights : [n_features]
    deltas : [n]
        See `models.training.lambda_loss.pair_discounts`.
    """
    total = 0.0
    for query in range(chunk.weights.shape[0]):
        loss = _slopes(chunk, query, weights, cutoff, deltas, buffers)
        total += chunk.weights[query] * loss
    return total


@compiled
def _slopes(
    chunk: QueryChunk,
    query: int,
    weights: Floats,
    cutoff: int,
    deltas: Floats,
    buffers: Buffers,
) -> float:
    """Loss of a query; its slopes are in the buffers."""
    begin, end = chunk.offsets[query], chunk.offsets[query + 1]
    scores, slopes = buffers.scores[: end - begin], buffers.slopes[: end - begin]
    fill_scores(chunk.features[begin:end], weights, scores)
    slopes[:] = 0.0
    return add_query_loss(
        scores, chunk.values[begin:end], chunk.is_kept[begin:end], cutoff,
        deltas, buffers.room, slopes,
    )  # fmt: skip


@compiled
def pass_over(  # noqa: PLR0913  a kernel takes plain arrays
    chunk: QueryChunk,
    order: Integers,
    weights: Floats,
    steps: Steps,
    deltas: Floats,
    optimiser: Optimiser,
    buffers: Buffers,
) -> float:
    """Step down the loss batch by batch; gives losses by the weights of queries.

    A query's loss counts by its weight over the mean weight. A step takes the sum of a
    batch over its full size, so that the last one of a chunk moves less. NaN where a
    step led to what no snapshot could hold.

    Parameters
    ----------
    order : [n_queries]
        In which queries are taken.
    weights : [n_features]
        Are moved.
    deltas : [n]
        See `models.training.lambda_loss.pair_discounts`.
    """
    n, total = order.shape[0], 0.0
    gradient = buffers.gradient
    for first in range(0, n, steps.batch):
        gradient[:] = 0.0
        for place in range(first, min(first + steps.batch, n)):
            query = order[place]
            loss = _slopes(chunk, query, weights, steps.cutoff, deltas, buffers)
            total += chunk.weights[query] * loss
            factor = chunk.weights[query] * steps.n_queries / steps.batch
            begin, end = chunk.offsets[query], chunk.offsets[query + 1]
            for row in range(end - begin):
                share = -factor * buffers.slopes[row]
                if share != 0.0:
                    numbers = chunk.features[begin + row]
                    for i in range(gradient.shape[0]):
                        gradient[i] += share * numbers[i]
        if not step(weights, gradient, optimiser):
            return np.nan
    return total


@compiled
def sum_of_dcg(
    chunk: QueryChunk, weights: Floats, falling: Floats, buffers: Buffers
) -> float:
    """Estimated DCG of a chunk's queries by their weights.

    Parameters
    ----------
    weights : [n_features]
    falling : [cutoff]
        Discounts by rank.
    """
    cutoff, total = falling.shape[0], 0.0
    order = buffers.room.order
    for query in range(chunk.weights.shape[0]):
        begin, end = chunk.offsets[query], chunk.offsets[query + 1]
        n = end - begin
        scores = buffers.scores[:n]
        fill_scores(chunk.features[begin:end], weights, scores)
        fill_order(scores, order)
        first, found = 0, 0.0
        while first < min(n, cutoff):
            last, gain = first, 0.0
            while last < n and scores[order[last]] == scores[order[first]]:
                row = begin + order[last]
                if chunk.is_kept[row]:
                    gain += chunk.values[row]
                last += 1
            share = 0.0
            for rank in range(first, min(last, cutoff)):
                share += falling[rank]
            found += gain * share / (last - first)
            first = last
        total += chunk.weights[query] * found
    return total
