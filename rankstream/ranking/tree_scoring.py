"""Scores of documents by a forest, compiled or in numpy, to the same bits.

Both add the leaves of a document tree by tree, so that each sum rounds alike.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.ranking.compiled_trees import compiled_scores
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NAN_IS_MISSING,
    NEAR_ZERO,
    ZERO_IS_MISSING,
    Forest,
)

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

NODE = np.dtype(
    [
        ("threshold", np.float64),
        ("feature", np.int32),
        ("children", np.int32, (2,)),
        ("missing", np.int32),
    ],
    align=True,
)
"""`struct tree_node` of `streams/native/trees.h`."""

PATHS_AT_ONCE = 1 << 16
"""Documents times trees that numpy follows at once: they stay in the cache."""


class TreeScorer:
    """A forest made ready to score; safe to use from several threads.

    Parameters
    ----------
    forest
        One in which `rankstream.wire.models.forests.fault_of_forest` finds nothing.
    """

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self._takes_zero = bool((forest.missing & ZERO_IS_MISSING).any())
        self._nodes = np.zeros(len(forest.features), NODE)
        self._nodes["threshold"] = forest.thresholds
        self._nodes["feature"] = forest.features
        self._nodes["children"] = forest.children
        self._nodes["missing"] = forest.missing

    def scores(self, features: Singles) -> Floats:
        """The sum of each document's leaves, [n_documents].

        Parameters
        ----------
        features : [n_documents, n_features]
            NaN where a document lacks one.
        """
        compiled = compiled_scores()
        if compiled is None:
            return self.scores_in_numpy(features)
        return self._scores_by(compiled, features)

    def _scores_by(self, compiled: Any, features: Singles) -> Floats:
        rows = np.ascontiguousarray(features, np.float32)
        roots, leaves = self.forest.roots, self.forest.leaves
        scores = np.empty(len(rows))
        compiled(
            roots.ctypes.data, len(roots), self._nodes.ctypes.data, leaves.ctypes.data,
            rows.ctypes.data, *rows.shape, self._is_plain(rows), scores.ctypes.data,
        )  # fmt: skip
        return scores

    def scores_in_numpy(self, features: Singles) -> Floats:
        """What `scores` returns, without the library.

        Parameters
        ----------
        features : [n_documents, n_features]
        """
        n_documents, is_plain = len(features), self._is_plain(features)
        total = np.zeros(n_documents)
        step = max(1, PATHS_AT_ONCE // max(1, n_documents))
        for start in range(0, len(self.forest.roots), step):
            roots = self.forest.roots[start : start + step]
            reached = self._reached(roots, features, is_plain=is_plain)
            leaves = self.forest.leaves[-1 - reached]
            for of_tree in leaves.reshape(len(roots), n_documents):
                total += of_tree
        return total

    def _is_plain(self, features: Singles) -> bool:
        return not (self._takes_zero or np.isnan(features).any())

    def _reached(
        self, roots: npt.NDArray[np.int32], features: Singles, *, is_plain: bool
    ) -> Int64:
        """Where each document ends in each tree, [n_trees * n_documents]."""
        forest, (n_documents, n_features) = self.forest, features.shape
        values, children = features.ravel(), forest.children.ravel()
        # Places in int64, and flat: numpy looks up nothing faster.
        ends = np.repeat(roots.astype(np.int64), n_documents)
        first_of_row = np.tile(np.arange(n_documents) * n_features, len(roots))
        paths = np.flatnonzero(ends >= 0)
        at, rows = ends[paths], first_of_row[paths]
        while len(paths):
            found = values[rows + forest.features[at]]
            goes_right = ~(found <= forest.thresholds[at])
            if not is_plain:
                goes_right = self._goes_right(at, found, goes_right)
            at = children[2 * at + goes_right].astype(np.int64)
            goes_on = at >= 0
            ends[paths[~goes_on]] = at[~goes_on]
            paths, at, rows = paths[goes_on], at[goes_on], rows[goes_on]
        return ends

    def _goes_right(
        self, at: Int64, found: Singles, otherwise: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """The same where features may be missing."""
        missing, is_nan = self.forest.missing[at], np.isnan(found)
        takes_zero = (missing & ZERO_IS_MISSING) != 0
        is_zero = np.abs(found) <= np.float32(NEAR_ZERO)
        lacks = is_nan & (takes_zero | ((missing & NAN_IS_MISSING) != 0))
        lacks |= takes_zero & is_zero
        as_zero = ~(self.forest.thresholds[at] >= 0.0)
        goes_right = np.where(is_nan, as_zero, otherwise)
        return np.where(lacks, (missing & MISSING_LEFT) == 0, goes_right)
