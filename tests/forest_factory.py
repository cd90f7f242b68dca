"""Forests for tests: drawn, and scored node by node in plain Python."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.operations.tree_files.tree_file import Tree, joined
from rankstream.wire.models.forests import (
    NAN_IS_MISSING,
    NAN_IS_ZERO,
    ZERO_IS_MISSING,
    Forest,
    pack_forest,
)

KINDS_OF_MISSING = (NAN_IS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING)


def drawn_tree(
    rng: np.random.Generator,
    n_leaves: int,
    n_features: int,
    kinds: Sequence[int] = KINDS_OF_MISSING,
) -> Tree:
    """A tree that grew by splitting a leaf that was drawn, again and again."""
    left, right = [], []
    hangs: list[tuple[list[int], int]] = []
    root = [-1]
    hangs.append((root, 0))
    for node in range(n_leaves - 1):
        column, at = hangs.pop(int(rng.integers(len(hangs))))
        column[at] = node
        left.append(0)
        right.append(0)
        hangs += [(left, node), (right, node)]
    for number, (column, at) in enumerate(hangs):
        column[at] = -1 - number
    n = n_leaves - 1
    return Tree(
        root[0],
        rng.integers(n_features, size=n),
        np.round(rng.normal(size=n), 1),
        left,
        right,
        rng.choice(kinds, n) + rng.integers(2, size=n),
        rng.normal(size=n_leaves),
    )


def drawn_forest(
    seed: int,
    *,
    n_trees: int = 20,
    n_leaves: int = 15,
    n_features: int = 6,
    kinds: Sequence[int] = KINDS_OF_MISSING,
) -> Forest:
    """Trees of one size, drawn from a seed."""
    rng = np.random.default_rng(seed)
    return joined(drawn_tree(rng, n_leaves, n_features, kinds) for _ in range(n_trees))


def packed(seed: int = 1, **sizes: Any) -> bytes:
    """The weights of a snapshot of trees."""
    return pack_forest(drawn_forest(seed, **sizes))


def small_forests() -> list[bytes]:
    """The same of one leaf, of one split and of three in each tree, of 4 features."""
    return [packed(n_trees=2, n_leaves=n, n_features=4) for n in (1, 2, 4)]


def telling_documents(
    forest: Forest, n_documents: int, n_features: int, seed: int = 0
) -> npt.NDArray[np.float32]:
    """Documents on thresholds and beside them, without some features, and at the ends.

    Every third number is a threshold or its neighbour of single precision; some are
    NaN, 0, -0, infinite, or almost 0.
    """
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n_documents, n_features)).astype(np.float32)
    odd = np.array(
        [np.nan, 0.0, -0.0, np.inf, -np.inf, 1e-35, -1e-35, 2e-35, 1e-45], np.float32
    )
    with np.errstate(over="ignore"):  # a threshold may be beyond single precision
        near = forest.thresholds.astype(np.float32) if len(forest.thresholds) else odd
    near = np.concatenate(
        [near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))]
    )
    which = rng.integers(6, size=found.shape)
    found[which < 2] = rng.choice(near, int((which < 2).sum()))
    found[which == 2] = rng.choice(odd, int((which == 2).sum()))
    return found


def scored_by_hand(forest: Forest, features: npt.NDArray[np.float32]) -> list[float]:
    """The sum of leaves, node by node, by LightGBM's rule of decisions."""
    scores = []
    for document in features.tolist():
        total = 0.0
        for root in forest.roots.tolist():
            at = root
            while at >= 0:
                at = int(forest.children[at, _side(forest, at, document)])
            total += float(forest.leaves[-1 - at])
        scores.append(total)
    return scores


def _side(forest: Forest, at: int, document: list[float]) -> int:
    value, missing = document[int(forest.features[at])], int(forest.missing[at])
    kind, default = missing & ~1, 0 if missing & 1 else 1
    if math.isnan(value) and kind != NAN_IS_MISSING:
        value = 0.0
    if kind == ZERO_IS_MISSING and abs(value) <= float(np.float32(1e-35)):
        return default
    if kind == NAN_IS_MISSING and math.isnan(value):
        return default
    return 0 if value <= float(forest.thresholds[at]) else 1
