"""Weights of a snapshot as a service can use them, or why it cannot."""

import numpy as np
import numpy.typing as npt

from rankstream.wire.envelope import Snapshot, SnapshotError, pointer_of


def checked_weights(
    snapshot: Snapshot, n_features: int | None
) -> npt.NDArray[np.float32]:
    """The weights, a copy.

    Parameters
    ----------
    n_features
        What the service gives of each document; None where that is not known yet.

    Raises
    ------
    SnapshotError
        With the reason features or weights.
    """
    pointer = pointer_of(snapshot)
    if n_features not in (None, snapshot.n_features):
        raise SnapshotError(
            "features",
            f"features must number {n_features}; version {pointer} needs "
            f"{snapshot.n_features}: let the service give as many, and start it again",
        )
    weights = np.frombuffer(snapshot.weights, "<f4").astype(np.float32)
    if not np.isfinite(weights).all():
        raise SnapshotError("weights", f"weights of {pointer} must be finite")
    return weights
