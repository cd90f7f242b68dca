"""Features as a training sees them."""

import numpy as np
import pytest

from rankstream.ranking.checked_weights import CheckedWeights
from streams.training.feature_records import FeaturesRefused
from streams.training.gathering import Scaling


def scaling(scale: float, normalisation: str = "none") -> Scaling:
    """Of a model of two features, the first of which is scaled."""
    factors = np.array([scale, 1.0], np.float32)
    weights = CheckedWeights(np.zeros(2, np.float32), None, factors)
    return Scaling(weights, normalisation)


@pytest.mark.parametrize("normalisation", ["none", "min-max"])
def test_one_feature_that_overflows_refuses_the_query(normalisation: str) -> None:
    """Though those beside it are finite; with its name."""
    features = np.array([[0.0, 1.0], [3.0, 2.0]], np.float32)
    assert np.isfinite(scaling(1e38, normalisation).of("shoes", features)).all()
    with pytest.raises(FeaturesRefused, match="those of query 'shoes' are not"):
        scaling(3e38, normalisation).of("shoes", features)
