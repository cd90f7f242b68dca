"""The learner as a fold: cuts, states, and what it refuses."""

import contextlib

import numpy as np
import pytest

from models.learners.learner import TrainingExample
from models.learners.pdgd import Interactions, PdgdConfig, PdgdLearner
from models.learners.registry import learner_of
from rankstream.settings import ModelSettings

LINEAR = PdgdConfig(5, learning_rate=0.3, decay=0.99)
NEURAL = PdgdConfig(5, "neural", (4,), learning_rate=0.3, decay=0.99, seed=9)

Log = list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def made_log(n: int = 60) -> Log:
    """Interactions of many shapes: short lists, no clicks, all clicked, far scores."""
    rng = np.random.default_rng(6)
    log: Log = []
    for number in range(n):
        n_candidates = int(rng.integers(1, 30))
        k = int(rng.integers(0 if number % 9 == 0 else 1, n_candidates + 1))
        log.append(
            (
                (10.0 ** rng.integers(0, 3) * rng.normal(size=n_candidates)).astype(
                    np.float32
                ),
                rng.permutation(n_candidates)[:k],
                rng.random(k) < 0.3,
                rng.random((k, 5)).astype(np.float32),
            )
        )
    return log


def batch_of(log: Log) -> Interactions:
    """The same interactions in flat arrays."""
    return Interactions(
        np.concatenate([scores for scores, _, _, _ in log]),
        np.cumsum([0, *(len(scores) for scores, _, _, _ in log)]),
        np.concatenate([shown for _, shown, _, _ in log]),
        np.concatenate([clicks for _, _, clicks, _ in log]),
        np.concatenate([features for _, _, _, features in log]),
        np.cumsum([0, *(len(shown) for _, shown, _, _ in log)]),
    )


@pytest.mark.parametrize("config", [LINEAR, NEURAL], ids=["linear", "neural"])
def test_batches_cut_anywhere_give_the_same_bits(config: PdgdConfig) -> None:
    """One by one, all at once, or cut at random: one and the same state."""
    log = made_log()
    one_by_one = PdgdLearner(config)
    for interaction in log:
        one_by_one.learn(TrainingExample(*interaction))
    cuts: list[list[int]] = [[], [1], [7, 8, 40]]
    cuts += [sorted(np.random.default_rng(s).integers(1, 60, 6)) for s in range(5)]
    for cut in cuts:
        learner = PdgdLearner(config)
        for begin, end in zip([0, *cut], [*cut, len(log)], strict=True):
            if begin < end:
                learner.learn_batch(batch_of(log[begin:end]))

        assert learner.state() == one_by_one.state()
    assert one_by_one.updates > 20
    assert int(one_by_one.state()["without_preference"]) > 5


@pytest.mark.parametrize("config", [LINEAR, NEURAL], ids=["linear", "neural"])
@pytest.mark.parametrize("is_repeated", [False, True])
def test_what_contradicts_itself_is_left_out_of_many(
    config: PdgdConfig, is_repeated: bool
) -> None:
    """As if each had come alone: the others move the parameters to the same bits."""
    examples = [TrainingExample(*interaction) for interaction in made_log()]
    one, other = examples[3], examples[9]
    examples.insert(4, one._replace(clicks=one.clicks[1:]))
    examples.insert(9, other._replace(features=other.features[:, :2]))
    if is_repeated:  # only looking at rows finds it
        examples.insert(20, one._replace(shown=np.zeros_like(one.shown)))
    one_by_one, learner = PdgdLearner(config), PdgdLearner(config)
    for example in examples:
        with contextlib.suppress(ValueError):
            one_by_one.learn(example)
    assert learner.learn_all(examples) == 2 + is_repeated
    assert learner.learn_all([]) == 0
    assert learner.state() == one_by_one.state()


@pytest.mark.parametrize("config", [LINEAR, NEURAL], ids=["linear", "neural"])
def test_a_restored_learner_goes_on_with_the_same_bits(config: PdgdConfig) -> None:
    """State, restored in the middle into a fresh learner, loses nothing."""
    log = made_log()
    whole, first = PdgdLearner(config), PdgdLearner(config)
    whole.learn_batch(batch_of(log))
    first.learn_batch(batch_of(log[:31]))
    second = PdgdLearner(config)
    second.restore(first.state())
    second.learn_batch(batch_of(log[31:]))

    assert second.state() == whole.state()
    assert second.weights().tobytes() == whole.weights().tobytes()


def test_rate_decays_with_performed_updates_only() -> None:
    """Where nothing or everything was clicked no step is made and none counted."""
    learner = PdgdLearner(LINEAR)
    scores, shown = np.zeros(3), np.array([2, 0])
    features = np.random.default_rng(0).random((2, 5))

    moved = [
        learner.learn(TrainingExample(scores, shown, np.array(clicks), features))
        for clicks in ([False, False], [True, True], [True, False], [False, True])
    ]

    assert moved == [False, False, True, True]
    assert learner.learning_rate == pytest.approx(0.3 * 0.99**2)
    assert learner.state()["without_preference"] == 2
    assert (learner.updates, learner.refused) == (2, 0)


def test_ratio_is_of_logged_scores_and_slope_of_present_ones() -> None:
    """One pair at ties of the log: a first step of rate * 1/2 * 1/4 * difference."""
    learner = PdgdLearner(LINEAR)
    features = np.array([[1.0, 0, 0, 0, 0], [0, 2.0, 0, 0, 0]])
    scores = np.zeros(2)
    clicks = np.array([True, False])

    learner.learn(TrainingExample(scores, np.array([0, 1]), clicks, features))
    first = learner.parameters()
    learner.learn(TrainingExample(scores, np.array([0, 1]), clicks, features))
    gap = float(features[0] @ first - features[1] @ first)
    slope = 1.0 / ((1.0 + np.exp(-gap)) * (1.0 + np.exp(gap)))

    assert first == pytest.approx([0.3 / 8, -0.3 / 4, 0, 0, 0])
    assert learner.parameters()[0] - first[0] == pytest.approx(0.297 / 2 * slope)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["scores", "features"])
def test_numbers_that_are_not_finite_are_refused(value: float, place: str) -> None:
    """Nothing moves, nothing decays, and it is counted."""
    learner = PdgdLearner(LINEAR)
    before = learner.state()
    given = {"scores": np.zeros(4), "features": np.ones((2, 5))}
    given[place].flat[1] = value
    clicks = np.array([True, False])

    example = TrainingExample(
        given["scores"], np.array([1, 3]), clicks, given["features"]
    )
    moved = learner.learn(example)

    assert not moved
    assert learner.state() == {**before, "refused": 1}


def test_parameters_stay_what_float32_can_hold() -> None:
    """A step beyond it is refused; the next sound interaction is learned from."""
    learner = PdgdLearner(PdgdConfig(2, learning_rate=100.0))
    features = np.array([[3e38, 0.0], [-3e38, 1.0]], np.float32)
    shown, clicks = np.array([0, 1]), np.array([True, False])

    assert not learner.learn(TrainingExample(np.zeros(2), shown, clicks, features))
    assert (learner.refused, learner.learning_rate) == (1, 100.0)
    assert not learner.weights().any()
    assert learner.learn(
        TrainingExample(np.zeros(2), shown, clicks, features / np.float32(1e37))
    )
    assert np.isfinite(learner.weights()).all()


@pytest.mark.parametrize(
    ("shown", "n_clicks", "shape"),
    [
        ([0, 3], 2, (2, 5)),
        ([-1, 0], 2, (2, 5)),
        ([1, 1], 2, (2, 5)),
        ([0, 1], 3, (2, 5)),
        ([0, 1], 2, (2, 4)),
        ([0, 1], 2, (3, 5)),
    ],
)
def test_arrays_that_contradict_each_other_raise(
    shown: list[int], n_clicks: int, shape: tuple[int, int]
) -> None:
    """Rows out of range, shown twice, or shapes apart are a caller's mistake."""
    learner = PdgdLearner(LINEAR)
    clicks = np.arange(n_clicks) == 0

    with pytest.raises(ValueError, match="shown"):
        learner.learn(
            TrainingExample(np.zeros(3), np.array(shown), clicks, np.ones(shape))
        )
    assert learner.updates == 0


@pytest.mark.parametrize("name", ["score_offsets", "shown_offsets"])
def test_offsets_that_fall_anywhere_raise(name: str) -> None:
    """Though they begin and end where they must, and rise elsewhere."""
    learner, batch = PdgdLearner(LINEAR), batch_of(made_log(4))
    offsets = getattr(batch, name).copy()
    offsets[2] = offsets[1] - 1

    with pytest.raises(ValueError, match=f"{name} must rise from 0 to {offsets[-1]}"):
        learner.learn_batch(batch._replace(**{name: offsets}))
    assert learner.updates == 0


def test_a_state_of_another_shape_is_refused() -> None:
    """A learner does not take the parameters of another ranker."""
    with pytest.raises(ValueError, match="parameters must be 40 bytes"):
        PdgdLearner(LINEAR).restore(PdgdLearner(NEURAL).state())


def test_settings_name_the_learner() -> None:
    """The registry builds what settings say, and names what it does not know."""
    settings = ModelSettings(features=5, kind="neural", hidden=[4], seed=9)

    learner = learner_of(settings)

    assert learner.weights().tobytes() == PdgdLearner(NEURAL).weights().tobytes()
    with pytest.raises(ValueError, match="learner must be one of"):
        learner_of(ModelSettings(features=5, learner="none"))
    with pytest.raises(ValueError, match="options of pdgd must be among"):
        learner_of(ModelSettings(features=5, options={"unit": 1}))
