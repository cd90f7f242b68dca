"""Trees that were grown, as arrays: what a snapshot of them is made from."""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers


class GrownTrees(NamedTuple):
    """Trees as arrays.

    Parameters
    ----------
    roots : [n_trees]
        A node, or -1 - leaf where the tree is one leaf.
    features, thresholds : [n_nodes]
        Which feature a node looks at, and up to which number an item goes left.
    children : [n_nodes, 2]
        Left and right; -1 - leaf of leaves.
    is_zero_missing, missing_goes_left : [n_nodes]
        Whether 0 is a feature that is missing, and where such an item goes.
    leaves : [n_leaves]
        What each adds to a score.
    """

    roots: Integers
    features: Integers
    thresholds: Floats
    children: Integers
    is_zero_missing: Flags
    missing_goes_left: Flags
    leaves: Floats


NO_TREES = GrownTrees(
    roots=np.zeros(0, np.int64),
    features=np.zeros(0, np.int64),
    thresholds=np.zeros(0),
    children=np.zeros((0, 2), np.int64),
    is_zero_missing=np.zeros(0, np.bool_),
    missing_goes_left=np.zeros(0, np.bool_),
    leaves=np.zeros(0),
)
