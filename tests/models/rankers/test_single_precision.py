"""Single precision scores and gradients are those of double precision."""

import numpy as np
import pytest

from models.rankers.registry import ranker_of
from models.rankers.single_precision import fill_gradient, score_documents


@pytest.mark.parametrize("kind", ["linear", "neural", "neural-tanh", "neural-relu"])
@pytest.mark.parametrize("hidden", [(), (5,), (16,), (9, 4), (8, 16, 3)])
@pytest.mark.parametrize("n_features", [3, 8, 13])
def test_scores_and_gradients_agree(
    kind: str, hidden: tuple[int, ...], n_features: int
) -> None:
    """To the precision of float32, for every activation and depth."""
    if (kind == "linear") != (not hidden):
        return
    ranker = ranker_of(kind, n_features, hidden)
    rng = np.random.default_rng(3)
    parameters = rng.normal(size=ranker.n_parameters)
    features = rng.normal(size=(6, n_features)).astype(np.float32)
    coefficients = rng.normal(size=6)
    weights = parameters.astype(np.float32)
    scores = np.empty(6, np.float32)
    activations = np.empty((6, sum(hidden)), np.float32)
    gradient = np.full(ranker.n_parameters, np.nan, np.float32)

    score_documents(weights, ranker.shape, features, scores, activations, features)
    fill_gradient(
        gradient,
        coefficients.astype(np.float32),
        weights,
        ranker.shape,
        features,
        activations,
    )

    wide = features.astype(np.float64)
    expected = ranker.accumulate(parameters, wide, coefficients)
    assert scores == pytest.approx(ranker.score(parameters, wide), rel=1e-5, abs=1e-5)
    assert gradient == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert np.abs(expected).max() > 0.1
