"""DBGD and MGD as folds: directions from seeds, winners from ranks or teams."""

import numpy as np
import pytest

from models.learners.duel_learner import DuelConfig, DuelLearner, directions_of
from models.learners.learner import TrainingExample

N, K, F = 7, 4, 3


def example(seed: int, n_rankers: int, **changes: object) -> TrainingExample:
    """A multileaved list of four out of seven documents."""
    rng = np.random.default_rng(seed)
    ranks = np.stack([rng.permutation(N)[:K] + 1 for _ in range(n_rankers)], axis=1)
    made = TrainingExample(
        rng.normal(size=N),
        rng.permutation(N)[:K],
        rng.random(K) < 0.6,
        rng.random((K, F)),
        seed,
        ranks,
        rng.integers(-1, n_rankers, K),
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def test_a_win_moves_towards_the_candidate() -> None:
    """The candidate put the clicked document first, the ranker last."""
    learner = DuelLearner(DuelConfig(F, learning_rate=0.5))
    clicks = np.array([True, False, False, False])
    ranks = np.array([[7, 1], [2, 3], [3, 2], [1, 7]])
    told = example(11, 2, clicks=clicks, ranks=ranks)

    assert learner.learn(told)
    expected = 0.5 * directions_of(11, 1, F, 1.0)[0]
    assert learner.parameters() == pytest.approx(expected, rel=1e-12)
    assert np.linalg.norm(learner.parameters()) == pytest.approx(0.5)
    assert not learner.learn(told._replace(ranks=ranks[:, ::-1]))
    assert not learner.learn(told._replace(ranks=ranks[:, [0, 0]]))
    assert not learner.learn(told._replace(clicks=np.zeros(K, np.bool_)))
    assert (learner.updates, learner.state()["without_preference"]) == (1, 3)


def test_teams_decide_by_their_clicks() -> None:
    """Candidate 2 of 3 got two clicks, the ranker one: only it wins."""
    config = DuelConfig(F, learning_rate=1.0, n_candidates=3, comparison="team-draft")
    learner = DuelLearner(config)
    teams = np.array([2, 0, 2, 1])

    assert learner.learn(example(5, 4, clicks=np.ones(K, np.bool_), teams=teams))
    expected = directions_of(5, 3, F, 1.0)[1]
    assert learner.parameters() == pytest.approx(expected, rel=1e-12)


def test_several_winners_move_it_to_their_mean() -> None:
    """MGD steps along the mean of the winners' directions."""
    learner = DuelLearner(DuelConfig(F, learning_rate=1.0, n_candidates=3))
    clicks = np.array([True, False, False, False])
    ranks = np.array([[3, 1, 7, 2], [1, 3, 1, 1], [2, 2, 2, 3], [4, 4, 3, 4]])

    assert learner.learn(example(5, 4, clicks=clicks, ranks=ranks))
    expected = directions_of(5, 3, F, 1.0)[[0, 2]].mean(axis=0)
    assert learner.parameters() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "config",
    [
        DuelConfig(F, n_candidates=4),
        DuelConfig(F, n_candidates=4, comparison="team-draft"),
        DuelConfig(F, "neural", (2,), n_candidates=4, n_samples=50, decay=0.9),
    ],
    ids=["probabilistic", "team draft", "neural by sample"],
)
def test_a_restored_learner_goes_on_with_the_same_bits(config: DuelConfig) -> None:
    """State, restored in the middle into a fresh learner, loses nothing."""
    log = [example(seed, 5) for seed in range(60)]
    whole, first = DuelLearner(config), DuelLearner(config)
    for told in log:
        whole.learn(told)
    for told in log[:31]:
        first.learn(told)
    second = DuelLearner(config)
    second.restore(first.state())
    for told in log[31:]:
        second.learn(told)

    assert second.state() == whole.state()
    assert whole.updates > 20


def test_sampled_winners_come_from_the_seed_of_the_impression() -> None:
    """Even chances fall otherwise for another seed, and the same for the same."""
    config = DuelConfig(F, n_samples=1)
    ranks = np.stack([np.arange(1, K + 1)] * 2, axis=1)
    clicks = np.array([True, False, False, False])

    def wins() -> list[bool]:
        told = (example(s, 2, clicks=clicks, ranks=ranks) for s in range(60))
        return [DuelLearner(config).learn(each) for each in told]

    assert 10 < sum(wins()) < 50
    assert wins() == wins()


def test_directions_are_uniform_and_come_from_the_seed() -> None:
    """Unit vectors with mean 0; the same seed draws the same again."""
    drawn = directions_of(3, 4_000, 5, 2.0)

    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.full(4_000, 2.0))
    assert np.abs(drawn.mean(axis=0)).max() < 4.5 * 2.0 / np.sqrt(5 * 4_000)
    assert directions_of(3, 4_000, 5, 2.0).tobytes() == drawn.tobytes()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"ranks": np.ones((K, 3), np.int64)}, "ranks must be of 4 shown"),
        ({"ranks": np.full((K, 2), 8)}, "ranks must lie in 1..7"),
        ({"ranks": np.ones((K, 2), np.int64)}, "a ranker must rank documents apart"),
        ({"clicks": np.ones(3, np.bool_)}, "must share their documents"),
        ({"shown": np.array([0, 1, 1, 2])}, "shown must hold different rows"),
    ],
)
def test_examples_that_contradict_themselves_raise(
    changes: dict[str, object], match: str
) -> None:
    """Nothing is learned from what cannot be."""
    learner = DuelLearner(DuelConfig(F))
    told = example(1, 2, clicks=np.ones(K, np.bool_))._replace(**changes)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=match):
        learner.learn(told)
    assert not learner.parameters().any()


def test_wrong_settings_and_teams_raise() -> None:
    """Also an oracle, which nobody has where users decide."""
    for settings in (
        {"n_candidates": 0},
        {"n_samples": -1},
        {"comparison": "coin"},
        {"unit": 0.0},
        {"tau": np.inf},
    ):
        with pytest.raises(ValueError, match="must be"):
            DuelConfig(F, **settings)
    with pytest.raises(ValueError, match="needs labels"):
        DuelLearner(DuelConfig(F, comparison="oracle"))
    learner = DuelLearner(DuelConfig(F, comparison="team-draft"))
    clicks = np.ones(K, np.bool_)
    with pytest.raises(ValueError, match=r"teams must lie in -1\.\.1"):
        learner.learn(example(1, 2, clicks=clicks, teams=np.array([0, 1, 2, 0])))
    with pytest.raises(ValueError, match="teams must be of 4 shown documents"):
        learner.learn(example(1, 2, clicks=clicks, teams=np.array([0, 1])))
