"""Forests of regression trees as snapshots hold them: arrays, packed and checked.

    numbers of trees, nodes, leaves, and 0 (4 times uint32)
    thresholds [n_nodes], leaves [n_leaves]                  float64
    roots [n_trees], features [n_nodes], children [n_nodes, 2]   int32
    missing [n_nodes]                                        uint8

All are little-endian. A node sends a document to its left child where the feature is at
most the threshold, as LightGBM does, and else to its right one; `missing` says where
the document goes that lacks the feature. A child, or a root, that is negative is the
leaf with the number -1 - child.
"""

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HEADER = struct.Struct("<4I")

NODE_BYTES = 21
LEAF_BYTES = 8
ROOT_BYTES = 4

MOST_DEEP = 512
"""Nodes between a root and a leaf; a ranker passes no more for each tree."""

MOST_FEATURES = 1 << 20
"""Of a model: a snapshot may name no more, as nothing else in it says how many."""

MISSING_LEFT = 1
"""A missing feature goes left; without it, right."""

NAN_IS_ZERO = 0
"""Nothing is missing: a feature that is NaN is taken as 0."""

ZERO_IS_MISSING = 2
"""A feature is missing where it is NaN, or 0 to within `NEAR_ZERO`."""

NAN_IS_MISSING = 4

NEAR_ZERO = float(np.float32(1e-35))
"""What LightGBM takes for 0."""

LARGEST_MISSING = NAN_IS_MISSING + MISSING_LEFT

Floats = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Forest(NamedTuple):
    """Trees whose leaves are summed, in the order of the trees.

    Parameters
    ----------
    roots : [n_trees]
        Where each tree begins: a node, or -1 - leaf of a tree that is one leaf.
    features : [n_nodes]
        Which feature a node looks at.
    thresholds : [n_nodes]
        Up to which a document goes left.
    children : [n_nodes, 2]
        Left and right.
    missing : [n_nodes]
        `NAN_IS_ZERO`, `ZERO_IS_MISSING` or `NAN_IS_MISSING`, and `MISSING_LEFT`.
    leaves : [n_leaves]
        What each adds to a score.
    """

    roots: Int32
    features: Int32
    thresholds: Floats
    children: Int32
    missing: Bytes
    leaves: Floats


NO_TREES = Forest(
    np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0),
    np.zeros((0, 2), np.int32), np.zeros(0, np.uint8), np.zeros(0),
)  # fmt: skip
"""By it all documents score 0: version 0 of a model of trees."""


def packed_bytes(n_trees: int, n_nodes: int, n_leaves: int) -> int:
    """How many bytes a forest of this size takes."""
    parts = n_trees * ROOT_BYTES, n_nodes * NODE_BYTES, n_leaves * LEAF_BYTES
    return HEADER.size + sum(parts)


def pack_forest(forest: Forest) -> bytes:
    """The bytes of a forest; the same forest gives the same bytes."""
    sizes = len(forest.roots), len(forest.features), len(forest.leaves), 0
    return HEADER.pack(*sizes) + b"".join(
        np.ascontiguousarray(values, kind).tobytes()
        for values, kind in (
            (forest.thresholds, "<f8"),
            (forest.leaves, "<f8"),
            (forest.roots, "<i4"),
            (forest.features, "<i4"),
            (forest.children, "<i4"),
            (forest.missing, "u1"),
        )
    )


def unpack_forest(packed: bytes) -> Forest:
    """The forest of bytes in which `fault_of_forest` finds nothing, as copies."""
    n_trees, n_nodes, n_leaves, _ = HEADER.unpack_from(packed)
    at = HEADER.size

    def taken(n: int, kind: str) -> npt.NDArray[np.generic]:
        nonlocal at
        found = np.frombuffer(packed, kind, n, at)
        at += found.nbytes
        return found

    thresholds = taken(n_nodes, "<f8").astype(np.float64)
    leaves = taken(n_leaves, "<f8").astype(np.float64)
    roots = taken(n_trees, "<i4").astype(np.int32)
    features = taken(n_nodes, "<i4").astype(np.int32)
    children = taken(2 * n_nodes, "<i4").astype(np.int32).reshape(n_nodes, 2)
    missing = taken(n_nodes, "u1").astype(np.uint8)
    return Forest(roots, features, thresholds, children, missing, leaves)


def fault_of_forest(packed: bytes, n_features: int) -> str:
    """What is wrong with the bytes of a forest; empty where nothing is.

    Whatever passes can be scored: each node and leaf lies below one tree, within
    `MOST_DEEP`, and no index leaves its array.

    Parameters
    ----------
    n_features
        Of the model.
    """
    if len(packed) < HEADER.size:
        return f"it must have {HEADER.size} bytes at least; got {len(packed)}"
    *sizes, reserved = HEADER.unpack_from(packed)
    if n_features > MOST_FEATURES:
        return f"features must be at most {MOST_FEATURES:,}; got {n_features:,}"
    if reserved or len(packed) != packed_bytes(*sizes):
        trees, nodes, leaves = sizes
        return (
            f"{trees:,} trees of {nodes:,} nodes and {leaves:,} leaves must take "
            f"{packed_bytes(*sizes):,} bytes; got {len(packed):,}"
        )
    forest = unpack_forest(packed)
    return _fault_of_numbers(forest, n_features) or _fault_of_children(forest)


def _fault_of_numbers(forest: Forest, n_features: int) -> str:
    """Which feature, threshold or leaf cannot be; empty where all can."""
    features = forest.features
    if len(features) and not 0 <= features.min() <= features.max() < n_features:
        got = features[(features < 0) | (features >= n_features)][0]
        return f"features must be among the {n_features} of the model; got {got}"
    if np.isnan(forest.thresholds).any():
        return "thresholds must be numbers; one is none"
    if forest.missing.max(initial=0) > LARGEST_MISSING:
        got = forest.missing.max()
        return f"missing must be {LARGEST_MISSING} at most; got {got}"
    if not np.isfinite(forest.leaves).all():
        return "leaves must be finite; one is not"
    return ""


def _fault_of_children(forest: Forest) -> str:
    """What keeps nodes and leaves from being trees; empty where nothing does."""
    children = forest.children
    n_nodes, n_leaves = len(forest.features), len(forest.leaves)
    named = np.concatenate((forest.roots, children.ravel())).astype(np.int64)
    if len(named) and not -n_leaves <= named.min() <= named.max() < n_nodes:
        got = named[(named < -n_leaves) | (named >= n_nodes)][0]
        return (
            f"children must be among {n_nodes:,} nodes and {n_leaves:,} leaves; "
            f"got {got}"
        )
    counts = (
        np.bincount(named[named >= 0], minlength=n_nodes),
        np.bincount(-1 - named[named < 0], minlength=n_leaves),
    )
    for what, count in zip(("node", "leaf"), counts, strict=True):
        if (count != 1).any():
            number = int((count != 1).argmax())
            return (
                f"each {what} must have one parent, or be one tree; {number} has "
                f"{count[number]}"
            )
    # With one parent each, what no root reaches goes round in circles.
    level, n_reached = forest.roots[forest.roots >= 0], 0
    for _ in range(MOST_DEEP):
        if not len(level):
            break
        n_reached += len(level)
        below = children[level].ravel()
        level = below[below >= 0]
    if len(level):
        return f"trees must be {MOST_DEEP} nodes deep at most; one is deeper"
    if n_reached < n_nodes:
        return f"nodes must lie below a root; {n_nodes - n_reached:,} lie in a circle"
    return ""
