"""PL-Rank's estimate has the exact gradient as its mean."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from models.learners.learner import TrainingExample
from models.learners.pl_rank import (
    PlRankConfig,
    PlRankLearner,
    rank_weights,
)
from models.plackett_luce.list_gradient import add_list_gradient, score_gradient

Floats = npt.NDArray[np.float64]


def list_probability(scores: Floats, rows: tuple[int, ...]) -> float:
    """Plackett-Luce, from its definition, in log-space."""
    total = 0.0
    for x, row in enumerate(rows):
        total += scores[row] - np.logaddexp.reduce(np.delete(scores, rows[:x]))
    return float(np.exp(total))


def expected_utility(scores: Floats, relevance: Floats, k: int) -> float:
    """Over all lists of k documents."""
    weights = rank_weights(k)
    return sum(
        list_probability(scores, rows) * float(weights @ relevance[list(rows)])
        for rows in itertools.permutations(range(len(scores)), k)
    )


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_the_mean_over_all_lists_is_the_gradient(k: int, spread: float) -> None:
    """Central differences of the expected utility, cut and whole."""
    rng = np.random.default_rng(2)
    scores, relevance = spread * rng.normal(size=5), rng.random(5)
    mean = np.zeros(5)
    for rows in itertools.permutations(range(5), k):
        one = np.zeros(5)
        add_list_gradient(scores, relevance, rank_weights(k), np.array(rows), one)
        mean += list_probability(scores, rows) * one
    differences = [
        (
            expected_utility(scores + step, relevance, k)
            - expected_utility(scores - step, relevance, k)
        )
        / 2e-5
        for step in 1e-5 * np.eye(5)
    ]

    assert mean == pytest.approx(differences, abs=1e-9)
    assert np.abs(mean).max() > 1e-4


def test_scores_far_apart_stay_finite() -> None:
    """No factor leaves the range of floats, where sums over places would."""
    scores = np.array([0.0, -400.0, 900.0, -1200.0])
    gradient = np.zeros(4)
    rows = np.array([3, 1, 0])
    add_list_gradient(scores, np.ones(4), rank_weights(3), rows, gradient)

    assert np.isfinite(gradient).all()


def test_sampling_converges_to_the_mean() -> None:
    """Many samples come near the exact gradient."""
    scores, relevance = np.array([0.3, -0.5, 0.8, 0.0]), np.array([0.0, 1.0, 0.2, 0.5])
    exact = np.array(
        [
            (
                expected_utility(scores + step, relevance, 2)
                - expected_utility(scores - step, relevance, 2)
            )
            / 2e-5
            for step in 1e-5 * np.eye(4)
        ]
    )
    found = score_gradient(
        scores,
        relevance,
        rank_weights(2),
        n_samples=200_000,
        rng=np.random.default_rng(1),
    )

    assert found == pytest.approx(exact, abs=0.01)


def test_the_learner_steps_by_reweighted_clicks() -> None:
    """One click at rank 2 counts twice; a seed gives the same step again."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(5, 3))
    example = TrainingExample(
        np.zeros(5),
        np.array([4, 1, 0]),
        np.array([False, True, False]),
        features[[4, 1, 0]],
        seed=9,
        candidates=features,
    )
    learner, again = (
        PlRankLearner(PlRankConfig(3, learning_rate=1.0, n_samples=50_000))
        for _ in range(2)
    )
    assert learner.learn(example)
    assert again.learn(example)
    relevance = np.array([0.0, 2.0, 0.0, 0.0, 0.0])
    slopes = [
        (expected_utility(step, relevance, 5) - expected_utility(-step, relevance, 5))
        / 2e-5
        for step in 1e-5 * np.eye(5)
    ]

    assert learner.parameters() == pytest.approx(slopes @ features, abs=0.02)
    assert again.state() == learner.state()
    assert not learner.learn(example._replace(clicks=np.zeros(3, np.bool_)))
    with pytest.raises(ValueError, match="candidates must be 5 documents by 3"):
        learner.learn(example._replace(candidates=features[:3]))


def test_samples_come_from_the_seed_of_the_impression() -> None:
    """Another impression is another sample, and the same one the same."""
    features = np.random.default_rng(4).normal(size=(5, 3))
    example = TrainingExample(
        np.zeros(5),
        np.array([4, 1, 0]),
        np.array([False, True, False]),
        features[[4, 1, 0]],
        candidates=features,
    )
    steps = []
    for seed in (1, 2, 1):
        learner = PlRankLearner(PlRankConfig(3, n_samples=3, seed=7))
        assert learner.learn(example._replace(seed=seed))
        steps.append(learner.parameters().tobytes())

    assert steps[0] == steps[2] != steps[1]


def test_a_list_of_the_only_candidate_tells_nothing() -> None:
    """Not even an optimiser with a momentum moves, and the rate stays."""
    rng = np.random.default_rng(8)
    learner = PlRankLearner(PlRankConfig(3, optimiser="adam", decay=0.5))
    clicks = np.array([True, False, False])
    several, one = rng.random((3, 3)), rng.random((1, 3))
    told = TrainingExample(
        np.zeros(3), np.arange(3), clicks, several, candidates=several
    )
    assert learner.learn(told)
    before, rate = learner.parameters(), learner.learning_rate
    alone = TrainingExample(np.zeros(1), np.arange(1), clicks[:1], one, candidates=one)

    assert not learner.learn(alone)
    assert (learner.updates, learner.state()["without_preference"]) == (1, 1)
    assert learner.learning_rate == rate
    assert learner.parameters().tobytes() == before.tobytes()


def test_known_looks_replace_those_by_rank() -> None:
    """The first ranks are given, the others are 1 / r."""
    config = PlRankConfig(3, n_samples=50, examination=(0.5, 0.25), learning_rate=1.0)
    features = np.random.default_rng(9).random((3, 3))
    for rank, chance in enumerate((0.5, 0.25, 1.0 / 3.0)):
        learner = PlRankLearner(config)
        clicks = np.arange(3) == rank
        example = TrainingExample(
            np.zeros(3), np.arange(3), clicks, features, candidates=features
        )
        assert learner.learn(example)
        slopes = score_gradient(
            np.zeros(3),
            clicks / chance,
            rank_weights(3),
            n_samples=50,
            rng=np.random.Generator(np.random.PCG64([0, 2])),
        )
        assert learner.parameters() == pytest.approx(slopes @ features, rel=1e-9)
