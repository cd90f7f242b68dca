"""Versions that are exported in tests, and their live scores."""

from typing import Any

import numpy as np

from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.scoring import shifted
from rankstream.snapshots import Snapshot
from rankstream.wire.envelope import features_hash, n_weights
from rankstream.wire.models.forests import (
    NAN_IS_MISSING,
    NAN_IS_ZERO,
    Forest,
    pack_forest,
)
from tests.forest_factory import drawn_forest, telling_documents
from tests.snapshot_factory import snapshot
from tests.trained_elsewhere import N_FEATURES, NAMES

N_DOCUMENTS = 1_000

NEAR = 1e-6
"""Of the largest score: single precision rounds each of some twenty terms."""

FOREST = drawn_forest(1, n_features=N_FEATURES, kinds=[NAN_IS_ZERO, NAN_IS_MISSING])


def of_layers(kind: str = "linear", hidden: tuple[int, ...] = (), **more: Any) -> Any:
    """A version with drawn weights, shifted and scaled; one scale is 0, one below."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=n_weights(N_FEATURES, [*hidden])).astype("<f4")
    own: dict[str, Any] = {
        "n_features": N_FEATURES, "feature_names": NAMES,
        "features_hash": features_hash(NAMES), "kind": kind, "hidden": [*hidden],
        "weights": weights.tobytes(),
        "shift": np.array([0, 1, -2, 0.5, 3, 0], "<f4").tobytes(),
        "scale": np.array([1, 0.25, 3, 0, -2, 0.1], "<f4").tobytes(),
    }  # fmt: skip
    return snapshot(**(own | more))


def of_trees(forest: Forest = FOREST, **more: Any) -> Any:
    """A version of drawn trees."""
    own: dict[str, Any] = {
        "n_features": N_FEATURES, "feature_names": NAMES,
        "features_hash": features_hash(NAMES), "kind": "trees",
        "weights": pack_forest(forest),
    }  # fmt: skip
    return snapshot(**(own | more))


def documents(*, has_missing: bool = False) -> Any:
    """Documents on thresholds and beside them, [N_DOCUMENTS, N_FEATURES]."""
    found = telling_documents(FOREST, N_DOCUMENTS, N_FEATURES)
    if has_missing:
        return np.where(np.isinf(found), np.float32(0), found)
    return np.where(np.isfinite(found), found, np.float32(0))


def live(version: Snapshot, features: Any) -> Any:
    """Scores as rankers compute them, [n_documents]."""
    checked = checked_weights(version, None)
    return checked.scores(shifted(features, checked.shift, checked.scale), version)


def assert_near(found: Any, expected: Any) -> None:
    """Scores of as many documents are the same to `NEAR` of the largest."""
    assert found.shape == expected.shape == (N_DOCUMENTS,)
    assert np.ptp(expected) > 0.1
    largest = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=NEAR * largest)
