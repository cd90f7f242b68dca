"""What files of other systems are made of: numbers of a version, and its names."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.operations.tree_files.tree_file import joined, one_leaf
from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import (
    Snapshot,
    intervention_of,
    names_of,
    pointer_of,
)
from rankstream.wire.models.forests import Forest, unpack_forest

Floats = npt.NDArray[np.float64]

Nested = dict[str, Any]

MOST_NESTED = 200
"""Splits between a root and a leaf, where a file nests them: parsers go no deeper."""


class ExportRefused(RuntimeError):
    """A version cannot be a file of another system.

    Operator action: what the message says; `docs/how-to/search-engine.md` has what
    each system can express.
    """


class LinearModel(NamedTuple):
    """A linear ranker of features on a fixed scale.

    A score is the sum of `weights * (x - mean) / deviation`.

    Parameters
    ----------
    weights, mean, deviation : [n_features]
        A deviation is finite and above 0.
    """

    weights: Floats
    mean: Floats
    deviation: Floats

    @property
    def is_scaled(self) -> npt.NDArray[np.bool_]:
        """Which features are not taken as they are, [n_features]."""
        scaled: npt.NDArray[np.bool_] = (self.mean != 0.0) | (self.deviation != 1.0)
        return scaled


def version_name(snapshot: Snapshot) -> str:
    """What a version is called where its lists are logged, `MODEL@EPOCH.VERSION`."""
    own = intervention_of(snapshot.model, pointer_of(snapshot))
    return snapshot.intervention or own


def feature_names(snapshot: Snapshot) -> list[str]:
    """Names of its features; `f1`, `f2` ... where it only counts them."""
    return names_of(snapshot.feature_names or snapshot.n_features)


def linear_model(snapshot: Snapshot) -> LinearModel:
    """The numbers of a linear ranker; a scale of 0 makes a weight 0.

    Raises
    ------
    ExportRefused
        Where a feature's range is beyond single precision.
    SnapshotError
        Where one is not finite.
    """
    checked = checked_weights(snapshot, None)
    weights = checked.weights.astype(np.float64)
    shift, scale = (
        np.full(len(weights), neutral) if found is None else found.astype(np.float64)
        for found, neutral in ((checked.shift, 0.0), (checked.scale, 1.0))
    )
    is_used = scale != 0.0
    deviation = np.ones(len(weights))
    deviation[is_used] = 1.0 / np.abs(scale[is_used])
    if deviation.max() > np.finfo(np.float32).max:
        name = feature_names(snapshot)[int(deviation.argmax())]
        raise ExportRefused(
            "features must have ranges of single precision to be exported; that of "
            f"{name!r} is {deviation.max():.3g} wide: let the service give smaller "
            "numbers"
        )
    # A turned scale is a turned weight: systems take deviations above 0 alone.
    return LinearModel(weights * np.sign(scale), np.where(is_used, shift, 0), deviation)


def forest_of(snapshot: Snapshot) -> Forest:
    """Its trees, and where there are none a leaf of 0: no system takes none."""
    forest = unpack_forest(snapshot.weights)
    return forest if len(forest.roots) else joined([one_leaf(0.0)])


def nested(
    forest: Forest,
    root: int,
    leaf: Callable[[int, int], Nested],
    split: Callable[[int, int, Nested, Nested], Nested],
) -> Nested:
    """A tree as objects in objects, made without recursion.

    Parameters
    ----------
    leaf
        Makes one, of its number and its depth.
    split
        Makes one, of its node, its depth, and what is left and right of it.

    Raises
    ------
    ExportRefused
        Where it is too deep for that.
    """
    order, waiting = [], [(root, 0)]
    while waiting:
        at, deep = waiting.pop()
        order.append((at, deep))
        if at >= 0:
            waiting += [(child, deep + 1) for child in forest.children[at].tolist()]
    if (deepest := max(deep for _, deep in order)) > MOST_NESTED:
        raise ExportRefused(
            f"trees must have at most {MOST_NESTED} splits above a leaf where a file "
            f"nests them; one has {deepest}: export it to ranklib, or train others"
        )
    made: dict[int, Nested] = {}
    for at, deep in reversed(order):
        if at < 0:
            made[at] = leaf(-1 - at, deep)
            continue
        left, right = forest.children[at].tolist()
        made[at] = split(at, deep, made[left], made[right])
    return made[root]
