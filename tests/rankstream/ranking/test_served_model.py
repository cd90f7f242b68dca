"""What a list keeps of the snapshot that made it."""

import numpy as np

from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.multileaving import Multileaving
from rankstream.ranking.served_model import ServedModel
from rankstream.wire.envelope import pointer_of
from tests.snapshot_factory import snapshot

FEATURES = np.array([[1.0, 2.0, 3.0], [4.0, 6.0, 5.0]], np.float32)


def test_features_as_given_are_kept_only_where_the_model_has_them_logged() -> None:
    """Whatever the model makes of them; else the list is all that is logged."""
    for is_logged in (True, False):
        made = snapshot(1, normalisation="min-max", log_candidates=is_logged)
        served = ServedModel(made, checked_weights(made, None), pointer_of(made), 0.0)
        ranking = served.rank(
            FEATURES, cutoff=2, policy="deterministic", seed=1,
            multileaving=Multileaving(),
        )  # fmt: skip
        assert ranking.features.tolist() == [[0.0] * 3, [1.0] * 3]
        assert (ranking.raw is not None) == is_logged
        assert ranking.raw is None or ranking.raw.tolist() == FEATURES.tolist()
