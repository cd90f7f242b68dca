"""Passes over the queries of a chunk, by any ranker and any loss, compiled.

Features are float32, sums of products float64, added in one order: the same bits on
every run. Hidden units take the system's exponential, as online learning does.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers, Singles
from models.kernels.compilation import compiled
from models.losses.compiled_loss import CompiledLoss, add_query_loss
from models.losses.pair_kernel import Room, room_for
from models.losses.placement_gradient import fill_weights
from models.losses.ranking_worth import ranking_worth
from models.optimisers.kernel import Optimiser, step
from models.rankers.item_scores import fill_scores
from models.rankers.layers import Shape, add_gradient
from models.training.query_chunk import QueryChunk


class Buffers(NamedTuple):
    """Where kernels work.

    Parameters
    ----------
    room
        For the loss of a query.
    scores, slopes : [n]
        Of a query's items.
    activations : [n, n_hidden_units]
        Of the same.
    gradient : [n_parameters]
    """

    room: Room
    scores: Floats
    slopes: Floats
    activations: Floats
    gradient: Floats


def buffers(n_items: int, shape: Shape, n_parameters: int) -> Buffers:
    """Memory for queries of at most so many items."""
    return Buffers(
        room_for(n_items), np.empty(n_items), np.empty(n_items),
        np.empty((n_items, int(shape.sizes[1:-1].sum()))), np.empty(n_parameters),
    )  # fmt: skip


class Steps(NamedTuple):
    """How a pass steps.

    Parameters
    ----------
    batch
        Queries of a step.
    n_queries
        Of all chunks.
    """

    batch: int
    n_queries: int


@compiled
def sum_of_losses(  # noqa: PLR0913  a kernel takes plain arrays
    chunk: QueryChunk,
    parameters: Floats,
    shape: Shape,
    loss: CompiledLoss,
    buffers: Buffers,
    rng: np.random.Generator,
    parents: Floats,
) -> float:
    """Losses of a chunk's queries by their weights; `parameters` [n_parameters].

    `parents` are as in `pass_over`.
    """
    total = 0.0
    for query in range(chunk.weights.shape[0]):
        found = _slopes(chunk, query, parameters, shape, loss, buffers, rng, parents)
        total += chunk.weights[query] * found
    return total


@compiled
def fill_parents(
    chunk: QueryChunk,
    parameters: Floats,
    shape: Shape,
    worths: Floats,
    buffers: Buffers,
    parents: Floats,
) -> None:
    """Fill `parents` [n_items] with expected weights of ranks under a policy.

    `parameters` [n_parameters] are those of its ranker; `worths` [n_ranks] are weights.
    """
    for query in range(chunk.weights.shape[0]):
        begin, end = chunk.offsets[query], chunk.offsets[query + 1]
        n = end - begin
        scores = buffers.scores[:n]
        features = chunk.features[begin:end]
        fill_scores(features, parameters, shape, scores, buffers.activations)
        fill_weights(scores, worths[:n], buffers.room.order, parents[begin:end])


@compiled
def _slopes(  # noqa: PLR0913  a kernel takes plain arrays
    chunk: QueryChunk,
    query: int,
    parameters: Floats,
    shape: Shape,
    loss: CompiledLoss,
    buffers: Buffers,
    rng: np.random.Generator,
    parents: Floats,
) -> float:
    """Loss of a query; its slopes are in the buffers."""
    begin, end = chunk.offsets[query], chunk.offsets[query + 1]
    scores, slopes = buffers.scores[: end - begin], buffers.slopes[: end - begin]
    features = chunk.features[begin:end]
    fill_scores(features, parameters, shape, scores, buffers.activations)
    slopes[:] = 0.0
    return add_query_loss(
        loss, scores, chunk.values[begin:end], chunk.is_kept[begin:end],
        buffers.room, slopes, slopes[:0], rng, parents[begin:end],
    )  # fmt: skip


@compiled
def pass_over(  # noqa: PLR0913  a kernel takes plain arrays
    chunk: QueryChunk,
    order: Integers,
    parameters: Floats,
    shape: Shape,
    loss: CompiledLoss,
    steps: Steps,
    optimiser: Optimiser,
    buffers: Buffers,
    rng: np.random.Generator,
    parents: Floats,
) -> float:
    """Step down the loss batch by batch; gives losses by the weights of queries.

    A query's loss counts by its weight over the mean weight. A step takes the sum of a
    batch over its full size, so that the last one of a chunk moves less. NaN where a
    step led to what no snapshot could hold.

    Parameters
    ----------
    order : [n_queries]
        In which queries are taken.
    parameters : [n_parameters]
        Are moved.
    rng
        Lists are drawn from it where the loss draws any.
    parents : [n_items] or [0]
        Expected weights of ranks under the parent's policy, of losses that compare with
        it; see `fill_parents`.
    """
    n, total = order.shape[0], 0.0
    gradient = buffers.gradient
    for first in range(0, n, steps.batch):
        gradient[:] = 0.0
        for place in range(first, min(first + steps.batch, n)):
            query = order[place]
            found = _slopes(
                chunk, query, parameters, shape, loss, buffers, rng, parents
            )
            total += chunk.weights[query] * found
            factor = chunk.weights[query] * steps.n_queries / steps.batch
            begin, end = chunk.offsets[query], chunk.offsets[query + 1]
            shares = buffers.slopes[: end - begin]
            for row in range(end - begin):
                shares[row] *= -factor
            _add_down(parameters, shape, chunk.features[begin:end], buffers)
        if not step(parameters, gradient, optimiser):
            return np.nan
    return total


@compiled
def _add_down(
    parameters: Floats, shape: Shape, features: Singles, buffers: Buffers
) -> None:
    """Add what a query's items, times their shares in `slopes`, say of the gradient."""
    gradient, shares = buffers.gradient, buffers.slopes[: features.shape[0]]
    if shape.sizes.shape[0] > 2:
        add_gradient(gradient, shares, parameters, shape, features, buffers.activations)
        return
    for row in range(features.shape[0]):
        share = shares[row]
        if share != 0.0:
            numbers = features[row]
            for i in range(gradient.shape[0]):
                gradient[i] += share * numbers[i]


@compiled
def sum_of_worth(
    chunk: QueryChunk,
    parameters: Floats,
    shape: Shape,
    worths: Floats,
    buffers: Buffers,
) -> float:
    """Estimated worth of a chunk's rankings by the weights of queries.

    Parameters
    ----------
    parameters : [n_parameters]
    worths : [n_ranks]
        Of a rank, for each unit of an item's value; ranks beyond are worth nothing.
    """
    total, order = 0.0, buffers.room.order
    for query in range(chunk.weights.shape[0]):
        begin, end = chunk.offsets[query], chunk.offsets[query + 1]
        n = end - begin
        scores = buffers.scores[:n]
        features = chunk.features[begin:end]
        fill_scores(features, parameters, shape, scores, buffers.activations)
        found = ranking_worth(
            scores, chunk.values[begin:end], chunk.is_kept[begin:end], worths, order
        )
        total += chunk.weights[query] * found
    return total
