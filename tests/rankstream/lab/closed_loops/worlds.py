"""Small worlds for tests of loops that learn from sums of clicks."""

import numpy as np

from models.click_models.trust_bias import TrustBiasModel, trust_bias_of
from rankstream.lab.closed_loops.world import World

USERS: TrustBiasModel = trust_bias_of(3, n_ranks=3)


def learnable_world(n_queries: int, seed: int, n_features: int = 4) -> World:
    """Queries of 3 to 7 documents whose first feature tells their grade, 0 to 2."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 8, n_queries))])
    features = rng.random((int(offsets[-1]), n_features)).astype(np.float32)
    labels = np.floor(features[:, 0] * 2.999).astype(np.int64)
    return World(features, labels, offsets)
