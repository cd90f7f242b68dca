"""Weights of a snapshot as a service can use them, or why it cannot."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.ranking.scoring import scores_of
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.envelope import CURVE, TREES, Snapshot, SnapshotError, pointer_of
from rankstream.wire.models.forests import unpack_forest

Floats = npt.NDArray[np.float32]


class GivenFeatures(NamedTuple):
    """What a service gives of each document: how many features, and which list."""

    number: int
    list_hash: bytes | None = None


class CheckedWeights(NamedTuple):
    """Copies of a snapshot's numbers; `shift` and `scale` are None where it has none.

    `weights` [n_weights], `shift` and `scale` [n_features]. Of trees there are none of
    these, and `trees` instead.
    """

    weights: Floats
    shift: Floats | None
    scale: Floats | None
    trees: TreeScorer | None = None

    def scores(self, features: Floats, snapshot: Snapshot) -> Floats:
        """Scores of documents by the snapshot that these numbers are of, [n_documents].

        Parameters
        ----------
        features : [n_documents, n_features]
            Shifted and normalised; of trees as they are, NaN where one is missing.
        """
        if self.trees is not None:
            return self.trees.scores(features).astype(np.float32)
        return scores_of(features, self.weights, snapshot.hidden, snapshot.kind)


def checked_weights(snapshot: Snapshot, given: GivenFeatures | None) -> CheckedWeights:
    """The weights, and by what features are shifted and scaled.

    Parameters
    ----------
    given
        None where that is not known yet.

    Raises
    ------
    SnapshotError
        With the reason kind, features or weights.
    """
    pointer = pointer_of(snapshot)
    if snapshot.kind == CURVE:
        raise SnapshotError(
            "kind",
            f"a model must rank; version {pointer} of {snapshot.model!r} is a curve of "
            "bias: name a model whose learner is another",
        )
    if given is not None and given.number != snapshot.n_features:
        raise SnapshotError(
            "features",
            f"features must number {given.number}; version {pointer} needs "
            f"{snapshot.n_features}: let the service give as many, and start it again",
        )
    if given is not None and given.list_hash not in (None, snapshot.features_hash):
        raise SnapshotError(
            "features",
            f"features must be those that the service gives; version {pointer} needs "
            f"another list of {snapshot.n_features}, {_told(snapshot.feature_names)}: "
            "let the service give that, and start it again",
        )
    if snapshot.kind == TREES:
        trees = TreeScorer(unpack_forest(snapshot.weights))
        return CheckedWeights(np.zeros(0, np.float32), None, None, trees)
    found = [
        _finite(name, getattr(snapshot, name), snapshot)
        for name in ("weights", "shift", "scale")
    ]
    weights, shift, scale = found
    return CheckedWeights(
        weights,
        shift if len(shift) else None,
        scale if len(scale) else None,
    )


def _finite(name: str, packed: bytes, snapshot: Snapshot) -> Floats:
    numbers = np.frombuffer(packed, "<f4").astype(np.float32)
    if not np.isfinite(numbers).all():
        pointer = pointer_of(snapshot)
        raise SnapshotError("weights", f"{name} of {pointer} must be finite")
    return numbers


def _told(names: list[str]) -> str:
    if not names:
        return "without names"
    more = " ..." if len(names) > 3 else ""
    return f"beginning {', '.join(names[:3])}{more}"
