"""Small snapshots for tests: everything has a default, everything can be set."""

from typing import Any

import numpy as np

from rankstream.snapshots import Snapshot, encode_snapshot, features_hash, n_weights


def snapshot(version: int = 1, **fields: Any) -> Snapshot:
    """A snapshot whose weights all equal its version: a mixture of two would show."""
    hidden = fields.get("hidden", [])
    n_features = fields.get("n_features", 3)
    weights = np.full(n_weights(n_features, hidden), version, "<f4")
    values: dict[str, Any] = {
        "model": "m",
        "epoch": 0,
        "version": version,
        "parent": max(version - 1, 0),
        "created_ms": 1_700_000_000_000 + version,
        "kind": "neural" if hidden else "linear",
        "hidden": hidden,
        "normalisation": "none",
        "n_features": n_features,
        "features_hash": features_hash(n_features),
        "sources": [(0, version)],
        "updates": version,
        "weights": weights.tobytes(),
    }
    return Snapshot(**(values | fields))


def envelope(version: int = 1, **fields: Any) -> bytes:
    """The envelope of `snapshot`."""
    return encode_snapshot(snapshot(version, **fields))
