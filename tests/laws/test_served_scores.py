"""What a ranker serves is what the learner means."""

import numpy as np
import pytest

from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from rankstream.ranking.scoring import scores_of


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3)])
def test_served_weights_score_as_the_learner_scores(hidden: tuple[int, ...]) -> None:
    """Both sides read the same layout, to the precision of float32."""
    rng = np.random.default_rng(0)
    kind = "neural" if hidden else "linear"
    learner = PdgdLearner(PdgdConfig(7, kind, hidden, learning_rate=1.0, seed=1))
    features = rng.random((6, 7)).astype(np.float32)
    clicks = np.array([False, True, False])
    for _ in range(20):
        rows = rng.permutation(6)[:3]
        learner.learn(TrainingExample(rng.normal(size=6), rows, clicks, features[rows]))
    meant = learner.ranker.score(learner.parameters(), features.astype(np.float64))

    served = scores_of(features, learner.weights(), list(hidden))

    assert served == pytest.approx(meant, rel=1e-5, abs=1e-5)
    assert np.ptp(meant) > 1e-4
