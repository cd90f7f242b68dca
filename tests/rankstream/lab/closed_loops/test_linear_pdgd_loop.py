"""The compiled loop samples, clicks and learns as its parts by themselves do."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from models.click_models.cascade import CascadeModel, cascade_of
from models.click_models.compiled_users import click_on, users_of
from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.plackett_luce.list_sampler import BLOCK, sample_list
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.world import World

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SURE = CascadeModel((0.0, 1.0), (0.0, 0.0))
"""Users who click on what is relevant and on nothing else."""


def small_world(n_features: int = 6, n_grades: int = 2) -> World:
    """Queries of 1 to 23 documents."""
    rng = np.random.default_rng(4)
    sizes = [1, 2, 9, 23, 16, 8]
    features = rng.random((sum(sizes), n_features)).astype(np.float32)
    labels = rng.integers(n_grades, size=sum(sizes))
    return World(features, labels, np.cumsum([0, *sizes]))


def drawn_lists(scores: Floats, k: int, n_draws: int) -> tuple[Integers, Floats]:
    """Lists from the sampler, and what it says is left below the cut."""
    rng = np.random.default_rng(3)
    masses = np.empty(len(scores))
    blocks = np.empty(-(-len(scores) // BLOCK))
    lists = np.empty((n_draws, k), np.int64)
    below = np.array([sample_list(scores, masses, blocks, rows, rng) for rows in lists])
    return lists, below


def list_probability(scores: Floats, rows: tuple[int, ...]) -> float:
    """Plackett-Luce, from its definition, in log-space."""
    total = 0.0
    for x, row in enumerate(rows):
        left = np.delete(scores, rows[:x])
        total += scores[row] - np.logaddexp.reduce(left)
    return float(np.exp(total))


@pytest.mark.parametrize(
    "scores",
    [
        np.array([0.3, -1.0, 1.5, 0.0]),
        np.array([0.0, -800.0, -800.5, -1600.0]),
        np.array([0.0, -40.0, -40.5, -799.0]),
    ],
    ids=["near", "beyond exp", "both"],
)
def test_sampled_lists_are_plackett_luce(scores: Floats) -> None:
    """Frequencies of all lists of three agree with their probabilities."""
    n_draws = 20_000
    lists, below = drawn_lists(scores, 3, n_draws)
    codes = lists @ np.array([100, 10, 1])
    for rows in itertools.permutations(range(4), 3):
        expected = list_probability(scores, rows)
        observed = (codes == rows @ np.array([100, 10, 1])).mean()
        deviation = np.sqrt(max(expected * (1 - expected), 1e-9) / n_draws)
        assert abs(observed - expected) < 4.5 * deviation + 1e-9
    rest = np.exp(scores.sum() - scores[lists].sum(axis=1) - scores.max())
    is_plain = below >= 0.0
    assert below[is_plain] == pytest.approx(rest[is_plain], rel=1e-12)
    assert is_plain.all() == (scores[1] > -700.0)


def test_long_lists_hold_every_document_once() -> None:
    """All of 61 documents are placed, also where their scores are far apart."""
    for spread in (0.0, 30.0, 800.0, 1e5):
        scores = np.linspace(0.0, spread, 61)
        lists, _ = drawn_lists(scores, 61, 50)
        assert (np.sort(lists, axis=1) == np.arange(61)).all()


def test_runs_cut_anywhere_give_the_same_bits() -> None:
    """Impressions lived through at once or in pieces are the same."""
    world, users = small_world(7, 3), cascade_of("informational", 3)
    whole = LinearPdgdLoop(
        PdgdConfig(7), world, users, cutoff=5, rng=np.random.default_rng(1)
    )
    parts = LinearPdgdLoop(
        PdgdConfig(7), world, users, cutoff=5, rng=np.random.default_rng(1)
    )

    at_once = whole.run(500)
    pieces = np.concatenate([parts.run(n) for n in (1, 0, 299, 200)])

    assert (pieces == at_once).all()
    assert parts.parameters.tobytes() == whole.parameters.tobytes()
    assert parts.updates == whole.updates > 100


@pytest.mark.parametrize("n_features", [1, 4, 6, 17])
def test_the_loop_learns_what_the_learner_learns(n_features: int) -> None:
    """Its lists, told to a learner one by one, lead to the same parameters."""
    world = small_world(n_features)
    config = PdgdConfig(n_features, learning_rate=2.0, decay=0.999)
    loop = LinearPdgdLoop(config, world, SURE, cutoff=7, rng=np.random.default_rng(2))
    learner = PdgdLearner(config)
    for query, *shown in loop.run(2_000).tolist():
        rows = np.array([row for row in shown if row >= 0])
        span = slice(world.offsets[query], world.offsets[query + 1])
        features = world.features[span].astype(np.float64)
        scores = learner.ranker.score(learner.parameters(), features)
        clicks = world.labels[span][rows] == 1
        learner.learn(TrainingExample(scores, rows, clicks, features[rows]))

    assert learner.updates == loop.updates > 500
    assert loop.parameters == pytest.approx(learner.parameters(), rel=1e-7, abs=1e-7)


def test_clicks_in_the_loop_follow_the_click_model() -> None:
    """Rates by rank agree with the closed form, with both stop rules."""
    labels = np.array([0, 2, 1, 0, 2, 1])
    rows, clicks = np.arange(6), np.empty(6, np.bool_)
    for requires in (True, False):
        model = cascade_of("navigational", 3, stop_requires_click=requires)
        users = users_of(model)
        rng = np.random.default_rng(8)
        counts = np.zeros(6)
        for _ in range(20_000):
            click_on(labels, rows, users, clicks, rng)
            counts += clicks
        expected = model.click_probabilities(labels)
        deviation = np.sqrt(expected * (1.0 - expected) / 20_000)
        assert (np.abs(counts / 20_000 - expected) < 4.5 * deviation).all()


def test_worlds_that_contradict_themselves_raise() -> None:
    """Empty queries, short labels and labels outside the users' grades."""
    world = small_world(n_grades=3)
    bare, short = np.array([0, 0, 59]), world.labels[1:]

    def loop(world: World, cutoff: int = 10) -> LinearPdgdLoop:
        rng = np.random.default_rng(0)
        return LinearPdgdLoop(PdgdConfig(6), world, SURE, cutoff=cutoff, rng=rng)

    with pytest.raises(ValueError, match="grades 0 to 1 of the click model"):
        loop(world)
    with pytest.raises(ValueError, match="every query must have documents"):
        loop(world._replace(offsets=bare))
    with pytest.raises(ValueError, match="every query must have documents"):
        loop(world._replace(labels=short))
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        loop(small_world(), cutoff=0)
