"""Scores of documents from a snapshot's weights, and lists from scores, in numpy.

A learner computes the same function in `models.rankers`; tests hold them together.
"""

import numpy as np
import numpy.typing as npt

from rankstream.wire.envelope import NETWORKS
from rankstream.wire.events import DETERMINISTIC, PLACKETT_LUCE, POLICIES, TAIL_SHUFFLE

Floats = npt.NDArray[np.float32]

LAYERED = ("linear", *NETWORKS)
"""Kinds whose scores are made layer by layer; trees are in `tree_scoring`."""

DRAWN = tuple(POLICIES[n] for n in (PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE))
"""Policies by which one ranker's list is drawn here."""


def shifted(features: Floats, shift: Floats | None, scale: Floats | None) -> Floats:
    """Features as a snapshot moves them, all queries alike: (x - shift) * scale.

    Parameters
    ----------
    features : [n_documents, n_features]
    shift, scale : [n_features]
        None: no shift, or a scale of 1.
    """
    if shift is None and scale is None:
        return features
    # In float32 a feature that is far off would round to its shift.
    values = features.astype(np.float64)
    if shift is not None:
        values -= shift
    if scale is not None:
        values *= scale
    moved: Floats = values.astype(np.float32)
    return moved


def normalised(features: Floats, how: str) -> Floats:
    """Features of one query's candidates on one scale.

    Parameters
    ----------
    features : [n_documents, n_features]
    how
        `min-max` (a constant feature becomes 0), `standard`, or `none`.

    Raises
    ------
    ValueError
        For another name.
    """
    if how == "none":
        return features
    # In float32 wide or far-off features would overflow or round to one another.
    values = features.astype(np.float64)
    least, most = values.min(axis=0), values.max(axis=0)
    if how == "min-max":
        shifted, width = values - least, most - least
    elif how == "standard":
        shifted = values - values.mean(axis=0)
        width = np.where(least == most, 0.0, values.std(axis=0))
    else:
        raise ValueError(
            f"normalisation must be min-max, standard or none; got {how!r}"
        )
    width[width == 0.0] = np.inf
    scaled: Floats = (shifted / width).astype(np.float32)
    return scaled


def scores_of(
    features: Floats, weights: Floats, hidden: list[int], kind: str = "neural"
) -> Floats:
    """Scores of normalised documents.

    Parameters
    ----------
    features : [n_documents, n_features]
    weights : [n_weights]
        Layer by layer: weights [inputs, outputs], then biases; the last layer has
        one output and no bias.
    hidden
        Units of each hidden layer.
    kind
        Of the ranker: it says which activation hidden units have.

    Returns
    -------
    [n_documents]

    Raises
    ------
    ValueError
        For a kind that is not known here.
    """
    if kind not in LAYERED:
        raise ValueError(f"kind must be one of {LAYERED}; got {kind!r}")
    start, layer = 0, features
    for width in hidden:
        end = start + layer.shape[1] * width
        matrix = weights[start:end].reshape(layer.shape[1], width)
        reach = layer @ matrix + weights[end : end + width]
        layer = _activated(reach, kind)
        start = end + width
    scores: Floats = (layer @ weights[start:]).astype(np.float32)
    return scores


def _activated(reach: Floats, kind: str) -> Floats:
    if kind == "neural-relu":
        return np.maximum(reach, np.float32(0.0))
    if kind == "neural-tanh":
        return np.tanh(reach)
    active: Floats = 0.5 * (1.0 + np.tanh(0.5 * reach))
    return active


def draw_list(
    scores: Floats, *, cutoff: int, policy: str, seed: int
) -> npt.NDArray[np.int64]:
    """Rows in displayed order, drawn from PCG64 of the seed.

    Plackett-Luce by the Gumbel trick; ties of the other policies by row. `scores`
    [n_documents].

    Raises
    ------
    ValueError
        For another policy, or a cutoff below 1.
    """
    if policy not in DRAWN:
        raise ValueError(f"policy must be one of {DRAWN}; got {policy!r}")
    if cutoff < 1:
        raise ValueError(f"cutoff must be at least 1; got {cutoff}")
    rng = np.random.Generator(np.random.PCG64(seed))
    if policy == "plackett-luce":
        keys = _below_the_largest(scores) + rng.gumbel(size=len(scores))
        return np.argsort(-keys, kind="stable")[:cutoff]
    order = np.argsort(-scores, kind="stable")
    if policy == "tail-shuffle" and len(order) > cutoff:
        last = cutoff - 1 + int(rng.integers(len(order) - cutoff + 1))
        order[cutoff - 1], order[last] = order[last], order[cutoff - 1]
    return order[:cutoff]


def _below_the_largest(scores: Floats) -> npt.NDArray[np.float64]:
    """Scores less the largest: beside numbers far from 0 the noise would be lost."""
    wide = scores.astype(np.float64)
    largest = wide.max(initial=-np.inf)
    # NaN and infinite ones keep their places, and move nobody else's.
    return wide - largest if np.isfinite(largest) else wide
