"""Slopes and curvatures of all queries by the scores of their items, compiled."""

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.losses.compiled_loss import CompiledLoss, add_query_loss
from models.losses.pair_kernel import Room


@compiled
def fill_slopes(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    values: Floats,
    is_kept: Flags,
    offsets: Integers,
    weights: Floats,
    loss: CompiledLoss,
    room: Room,
    rng: np.random.Generator,
    parents: Floats,
    slopes: Floats,
    curvatures: Floats,
) -> float:
    """Fill slopes and curvatures, by the weights of queries; gives their losses so.

    Parameters
    ----------
    scores, values, is_kept, slopes, curvatures : [n_items]
        Scores are finite, and values where they are kept.
    offsets, weights : [n_queries + 1], [n_queries]
        As those of `models.training.query_chunk.QueryChunk`.
    loss
        One that is convex, for the longest query; it draws no lists.
    room
        Of at least as many items.
    parents : [n_items] or [0]
        None, as a loss that is convex compares with no other policy.
    """
    total = 0.0
    for query in range(weights.shape[0]):
        begin, end = offsets[query], offsets[query + 1]
        own_slopes, own_curvatures = slopes[begin:end], curvatures[begin:end]
        own_slopes[:] = 0.0
        own_curvatures[:] = 0.0
        found = add_query_loss(
            loss, scores[begin:end], values[begin:end], is_kept[begin:end],
            room, own_slopes, own_curvatures, rng, parents,
        )  # fmt: skip
        weight = weights[query]
        total += weight * found
        for row in range(end - begin):
            own_slopes[row] *= weight
            own_curvatures[row] *= weight
    return total
