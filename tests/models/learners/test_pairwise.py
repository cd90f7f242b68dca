"""The pairwise baseline: how its lists are filled, and what its pairs weigh."""

import numpy as np
import pytest

from models.learners.learner import TrainingExample
from models.learners.pairwise import PairwiseConfig, PairwiseLearner, draw_exploring
from tests.session.cases import n_cases


@pytest.mark.parametrize("exploration", [0.0, 0.3, 0.8, 1.0])
def test_places_are_explored_as_often_as_asked_for(exploration: float) -> None:
    """The best that is left stands there but for the share of random documents."""
    rng, n_draws = np.random.default_rng(1), n_cases(6_000, 20_000)
    ranking, rows = np.array([3, 1, 4, 0, 2]), np.empty(3, np.int64)
    n_best = np.zeros(3)
    for _ in range(n_draws):
        draw_exploring(ranking, exploration, rows, rng)
        assert len({*rows.tolist()}) == 3
        for place in range(3):
            left = [d for d in ranking if d not in rows[:place]]
            n_best[place] += rows[place] == left[0]
    expected = 1.0 - exploration + exploration / np.array([5.0, 4.0, 3.0])
    deviation = np.sqrt(expected * (1.0 - expected) / n_draws)

    assert (np.abs(n_best / n_draws - expected) <= 4.5 * deviation).all()


def test_random_documents_are_any_of_those_left() -> None:
    """Each as likely as any other."""
    rng, n_draws = np.random.default_rng(2), 20_000
    rows, counts = np.empty(2, np.int64), np.zeros((4, 4))
    for _ in range(n_draws):
        draw_exploring(np.arange(4), 1.0, rows, rng)
        counts[tuple(rows)] += 1
    expected = np.where(np.eye(4) > 0.0, 0.0, 1.0 / 12.0)
    deviation = np.sqrt(expected * (1.0 - expected) / n_draws)

    assert (np.abs(counts / n_draws - expected) <= 4.5 * deviation).all()


def test_every_pair_counts_alike() -> None:
    """The clicked document wins against those above it and the next one only."""
    learner = PairwiseLearner(PairwiseConfig(2, learning_rate=0.5))
    features = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [9.0, 9.0]])
    clicks = np.array([False, True, False, False])

    assert learner.learn(TrainingExample(np.zeros(4), np.arange(4), clicks, features))
    expected = 0.5 * (2.0 * features[1] - features[0] - features[2])
    assert learner.parameters() == pytest.approx(expected)
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="exploration must lie in"):
            PairwiseConfig(2, exploration=wrong)
    for least_and_most in (0.0, 1.0):
        PairwiseConfig(2, exploration=least_and_most)
