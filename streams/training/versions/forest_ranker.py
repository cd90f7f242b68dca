"""Trees of a parent and trees beside them, as a ranker whose parameters are leaves.

A score is a sum of leaves, so that all parameters scale it alike: how far a version
explores, and how far it leaves its parent, is said of leaves as it is of weights.
"""

import numpy as np

from models.arrays import Floats, Singles
from models.training.grown_trees import GrownTrees
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NAN_IS_ZERO,
    ZERO_IS_MISSING,
    Forest,
)


class ForestRanker:
    """What scores items by leaves: those of the parent, and then those beside them.

    Parameters
    ----------
    parent
        Trees of the version that training goes on from.
    grown
        Those that training gave.
    """

    def __init__(self, parent: Forest, grown: Forest) -> None:
        self._parent, self._grown = parent, grown
        self._whole = beside(parent, grown)

    @property
    def n_parameters(self) -> int:
        """Leaves of all trees."""
        return len(self._whole.leaves)

    @property
    def proportional(self) -> slice:
        """All of them."""
        return slice(None)

    @property
    def start(self) -> Floats:
        """The parent as it was served: beside it all leaves are 0, [n_leaves]."""
        return np.concatenate([self._parent.leaves, np.zeros(len(self._grown.leaves))])

    def item_scores(self, parameters: Floats, features: Singles) -> Floats:
        """Scores of items, [n_items], as `models.rankers.ranker.Scorer` says.

        `parameters` [n_parameters]; `features` [n_items, n_features].
        """
        return TreeScorer(self._whole._replace(leaves=parameters)).scores(features)

    def forest(self, parameters: Floats) -> Forest:
        """The trees that are served, without a side whose leaves are all 0.

        `parameters` [n_parameters].
        """
        n_own = len(self._parent.leaves)
        own, new = parameters[:n_own], parameters[n_own:]
        if not own.any():
            return self._grown._replace(leaves=new)
        if not new.any():
            return self._parent._replace(leaves=own)
        return self._whole._replace(leaves=parameters)


def beside(first: Forest, second: Forest) -> Forest:
    """The trees of one forest, and then those of another."""
    n_nodes, n_leaves = len(first.features), len(first.leaves)

    def moved(places: np.ndarray) -> np.ndarray:
        return np.where(places < 0, places - n_leaves, places + n_nodes)

    return Forest(
        np.concatenate([first.roots, moved(second.roots)]).astype(np.int32),
        np.concatenate([first.features, second.features]),
        np.concatenate([first.thresholds, second.thresholds]),
        np.concatenate([first.children, moved(second.children)]).astype(np.int32),
        np.concatenate([first.missing, second.missing]),
        np.concatenate([first.leaves, second.leaves]),
    )


def forest_of(grown: GrownTrees) -> Forest:
    """Trees that were grown, as snapshots hold them."""
    goes_left = grown.missing_goes_left * MISSING_LEFT
    missing = np.where(grown.is_zero_missing, ZERO_IS_MISSING + goes_left, NAN_IS_ZERO)
    return Forest(
        grown.roots.astype(np.int32),
        grown.features.astype(np.int32),
        grown.thresholds,
        grown.children.astype(np.int32),
        missing.astype(np.uint8),
        grown.leaves,
    )
