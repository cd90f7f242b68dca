"""COLTR's risks by their definitions, with the denominators of their own model."""

import numpy as np
import pytest

from models.learners.coltr import (
    ColtrConfig,
    ColtrLearner,
    margin_of,
    placement_logs,
    risks_of,
)
from models.learners.duel_learner import directions_of
from models.learners.learner import TrainingExample


def test_risk_is_what_was_passed_over() -> None:
    """Unclicked documents above the last click, and none below it."""
    clicks = np.array([False, True, False, True, False])

    assert risks_of(clicks).tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert not risks_of(np.zeros(3, np.bool_)).any()


def test_placements_are_plackett_luce() -> None:
    """Each shown document over what is left, at ordinary and far-off scores."""
    scores, shown = np.array([0.5, -1.0, 2.0, 0.0]), np.array([1, 2])
    sizes = np.exp(scores)
    expected = [sizes[1] / sizes.sum(), sizes[2] / (sizes.sum() - sizes[1])]

    assert np.exp(placement_logs(scores, shown)) == pytest.approx(expected)
    far = placement_logs(np.array([0.0, -2_000.0, 900.0]), np.array([1, 0, 2]))
    assert far == pytest.approx([-2_900.0, -900.0, 0.0])


def example_of(seed: int) -> TrainingExample:
    """A list of four out of nine documents with a click at place 3."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(9, 3))
    shown = rng.permutation(9)[:4]
    clicks = np.array([False, False, True, False])
    scores = rng.normal(size=9)
    return TrainingExample(
        scores, shown, clicks, features[shown], seed, candidates=features
    )


def test_a_step_is_the_mean_of_better_candidates() -> None:
    """Each candidate is judged with its own denominators, and not the logged ones."""
    n_different = 0
    for seed in range(20):
        learner = ColtrLearner(ColtrConfig(3, learning_rate=1.0, n_candidates=8))
        example = example_of(seed)
        directions = directions_of(seed, 8, 3, 1.0)
        risk = risks_of(example.clicks)
        threshold = margin_of(risk, np.ones(4), 1.0)
        sizes = np.exp(example.scores)
        better, wrongly_better = [], []
        for direction in directions:
            own = np.exp(example.candidates @ direction)
            ratios, wrong = np.ones(4), np.ones(4)
            below = np.setdiff1d(np.arange(9), example.shown)
            for x in range(4):
                left = example.shown[x:]
                row = example.shown[x]
                logged = sizes[row] / (sizes[left].sum() + sizes[below].sum())
                ratios[x] = own[row] / (own[left].sum() + own[below].sum()) / logged
                wrong[x] = own[row] / (own[left].sum() + sizes[below].sum()) / logged
            better.append(margin_of(risk, ratios, 1.0) < threshold)
            wrongly_better.append(margin_of(risk, wrong, 1.0) < threshold)
        n_different += better != wrongly_better
        moved = learner.learn(example)
        assert moved == any(better)
        if moved:
            expected = directions[better].mean(axis=0)
            assert learner.parameters() == pytest.approx(expected, rel=1e-9)
    assert n_different > 0


def test_margins_are_risks_and_their_deviations() -> None:
    """Self-normalised, with the mean's deviation as often as asked for."""
    risk, ratios = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.5, 0.5])
    mean = (1.0 + 0.5) / 4.0
    squares = [1.0 - mean, 2.0 * mean, 0.5 * (1.0 - mean), 0.5 * mean]
    variance = sum(square**2 for square in squares) / 4.0**2

    assert margin_of(risk, ratios, 0.0) == pytest.approx(mean, rel=1e-14)
    for weight in (1.0, 2.5):
        expected = mean + weight * np.sqrt(variance / 4.0)
        assert margin_of(risk, ratios, weight) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("unit", [0.3, 2.0])
@pytest.mark.parametrize(
    ("kind", "hidden"), [("linear", ()), ("neural", (4,))], ids=["linear", "neural"]
)
def test_candidates_lie_around_what_was_learned(
    kind: str, hidden: tuple[int, ...], unit: float
) -> None:
    """Candidates are the present ranker plus vectors of the length asked for."""
    config = ColtrConfig(
        3, kind, hidden, learning_rate=0.5, n_candidates=8, unit=unit, seed=3
    )
    learner = ColtrLearner(config)
    n_moved = n_alone = 0
    for seed in range(30):
        example = example_of(seed)
        before = learner.parameters()
        directions = directions_of(seed, 8, len(before), unit)
        risk = risks_of(example.clicks)
        threshold = margin_of(risk, np.ones(4), 1.0)

        shown = example.shown.astype(np.int64)
        candidates = example.candidates.astype(np.float64)
        logged = placement_logs(example.scores.astype(np.float64), shown)
        found = []
        for origin in (before, 0.0):
            margins = []
            for direction in directions:
                scores = learner.ranker.score(origin + direction, candidates)
                ratios = np.exp(placement_logs(scores, shown) - logged)
                margins.append(margin_of(risk, ratios, 1.0))
            found.append([margin < threshold for margin in margins])
        better = found[0]
        n_alone += better != found[1]
        assert learner.learn(example) == any(better)
        if any(better):
            n_moved += 1
            step = 0.5 * directions[better].mean(axis=0)
            assert learner.parameters() - before == pytest.approx(step, rel=1e-9)
    assert n_moved > 5
    assert n_alone > 0


def test_a_restored_learner_goes_on_with_the_same_bits() -> None:
    """State, restored in the middle into a fresh learner, loses nothing."""
    config = ColtrConfig(3, "neural", (4,), n_candidates=10, optimiser="adam")
    whole, first, second = (ColtrLearner(config) for _ in range(3))
    for seed in range(30):
        whole.learn(example_of(seed))
    for seed in range(13):
        first.learn(example_of(seed))
    second.restore(first.state())
    for seed in range(13, 30):
        second.learn(example_of(seed))

    assert second.state() == whole.state()
    assert whole.updates > 10


def test_examples_without_all_features_raise() -> None:
    """Candidates cannot be judged without the features of what was not shown."""
    learner = ColtrLearner(ColtrConfig(3))
    example = example_of(1)

    with pytest.raises(ValueError, match="candidates must be 9 documents by 3"):
        learner.learn(example._replace(candidates=example.features))
    assert not learner.learn(example._replace(clicks=np.ones(4, np.bool_)))
    for settings in ({"n_candidates": 0}, {"unit": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            ColtrConfig(3, **settings)
