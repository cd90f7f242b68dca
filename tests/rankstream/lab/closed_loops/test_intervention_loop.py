"""Interventions fall where they should, and PDGD learns from lists of others."""

import numpy as np
import pytest

from models.click_models.cascade import cascade_of
from models.click_models.compiled_users import click_on, users_of
from models.learners.coltr import ColtrConfig
from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.delayed_pdgd_loop import ServedPdgdLoop
from rankstream.lab.closed_loops.intervention_loop import (
    InterventionLoop,
    Learning,
    split_world,
    spread_over,
)
from rankstream.lab.closed_loops.policy_log import AFFINE, AWARE, PolicyLog
from rankstream.lab.closed_loops.policy_training import (
    PolicyPlan,
    PolicyTrainer,
    scores_of,
)
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.closed_loops.world import any_query
from tests.rankstream.lab.closed_loops.kept_trainer import KeptTrainer
from tests.rankstream.lab.closed_loops.worlds import USERS, learnable_world

WORLD = learnable_world(30, 1)
PRODUCTION = np.array([-2.0, 3.0, 0.0, 0.0])


def loop_with(*interventions: int) -> tuple[InterventionLoop, PolicyLog]:
    """A loop that starts from a ranker that is wrong and sure of it."""
    ranker = ranker_of("linear", 4)
    log = PolicyLog(WORLD, USERS)
    plan = PolicyPlan(learning_rate=0.1, epochs=10)
    trainer = PolicyTrainer(ranker, np.array([1.0, 0.8, 0.6]), plan)
    loop = InterventionLoop(
        log,
        20,
        Learning(ranker, trainer, PRODUCTION, AWARE),
        interventions,
        user_rng=np.random.default_rng(1),
        training_rng=np.random.default_rng(2),
    )
    return loop, log


def test_policies_are_replaced_when_interventions_fall_due() -> None:
    """However runs are cut; the last one may come with the last list."""
    loop, log = loop_with(300, 100)
    loop.run(99)
    assert (log.n_policies, loop.deployed.tolist()) == (1, PRODUCTION.tolist())
    loop.run(1)
    assert log.n_policies == 2
    first = loop.deployed
    assert first.tolist() != PRODUCTION.tolist()
    loop.run(500)
    assert log.n_policies == 3
    assert loop.lived == log.lists.sum() == 600
    other, other_log = loop_with(300, 100)
    other.run(600)

    assert other.deployed.tolist() == loop.deployed.tolist()
    assert other_log.values(AWARE) == pytest.approx(log.values(AWARE), nan_ok=True)


def test_a_training_changes_nothing_of_what_users_do() -> None:
    """Not even of the lists that come after it; and it starts from production."""
    loop, log = loop_with()
    other, other_log = loop_with()
    for _ in range(3):
        loop.run(200)
        other.run(200)
        trained = other.train()

    assert log.values(AWARE).tolist() == other_log.values(AWARE).tolist()
    assert loop.deployed.tolist() == PRODUCTION.tolist()
    assert trained.best_epoch > 0
    assert trained.parameters[0] > PRODUCTION[0]


def test_trainings_are_told_clipped_values_and_stopped_by_others() -> None:
    """From production, after interventions too; queries weigh as often as they came."""
    log, ranker = PolicyLog(WORLD, USERS), ranker_of("linear", 4)
    trainer = KeptTrainer(ranker, np.ones(3), PolicyPlan(learning_rate=0.1))
    loop = InterventionLoop(
        log, 20, Learning(ranker, trainer, PRODUCTION, AFFINE), [100, 200],
        user_rng=np.random.default_rng(1), training_rng=np.random.default_rng(2),
    )  # fmt: skip
    loop.run(300)
    assert loop.deployed.tolist() != PRODUCTION.tolist()
    loop.train()
    start, training, held_out = trainer.asked
    at, lists = int(WORLD.offsets[20]), log.lists
    n_lists = int(lists[:20].sum())

    assert start.tolist() == PRODUCTION.tolist()
    expected = log.training_values(AFFINE, n_lists)[:at]
    assert training.values == pytest.approx(expected, nan_ok=True)
    assert held_out.values == pytest.approx(log.values(AFFINE)[at:], nan_ok=True)
    assert training.weights == pytest.approx(lists[:20] / n_lists)
    assert held_out.weights == pytest.approx(lists[20:] / (300 - n_lists))
    assert training.world.labels.tolist() == WORLD.labels[:at].tolist()
    assert held_out.world.labels.tolist() == WORLD.labels[at:].tolist()


def test_interventions_bring_better_lists_than_a_wrong_ranker() -> None:
    """A loop that replaces its ranker learns more of what was hidden."""
    gains = WORLD.labels / 2.0
    shown = []
    for interventions in ((), (200, 400, 800, 1_600)):
        loop, log = loop_with(*interventions)
        loop.run(3_000)
        before = log._shown.sum(axis=1)
        loop.run(1_000)
        shown.append((log._shown.sum(axis=1) - before) @ gains)

    assert shown[1] > 1.1 * shown[0]


def test_a_world_is_split_between_queries() -> None:
    """Every document is in one of both parts, with its features."""
    first, rest = split_world(WORLD, 20)
    assert len(first.offsets) == 21
    assert rest.offsets[0] == 0
    assert [*first.labels, *rest.labels] == WORLD.labels.tolist()
    assert rest.features.tolist() == WORLD.features[len(first.labels) :].tolist()


def test_interventions_are_spread_over_logarithms() -> None:
    """From the first on, and none at the end; none where none is asked for."""
    assert spread_over(0, 100, 10**5) == []
    assert spread_over(1, 100, 10**5) == [100]
    assert spread_over(6, 100, 10**5)[::2] == [100, 1_000, 10_000]
    many = spread_over(50, 100, 10**5)
    assert len(many) == 50
    assert max(many) < 10**5
    assert len(spread_over(50, 10, 20)) == 11


def test_training_queries_are_some_and_not_all() -> None:
    """Else there is nothing to learn from, or nothing to stop by."""
    loop, log = loop_with()
    for n_training in (0, 30):
        with pytest.raises(ValueError, match="must be some and not all of 30"):
            InterventionLoop(
                log,
                n_training,
                loop._learning,
                user_rng=np.random.default_rng(1),
                training_rng=np.random.default_rng(2),
            )
    with pytest.raises(ValueError, match="impressions of the training split"):
        loop.train()


@pytest.mark.parametrize("is_counterfactual", [True, False])
def test_pdgd_learns_from_lists_of_what_was_served(*, is_counterfactual: bool) -> None:
    """Its lists, told to a learner with the served scores, lead to the same."""
    config = PdgdConfig(4, learning_rate=0.5, counterfactual=is_counterfactual)
    loop = ServedPdgdLoop(config, WORLD, USERS, cutoff=3, rng=np.random.default_rng(2))
    loop.begin_at(PRODUCTION)
    learner = PdgdLearner(config)
    learner.restore({**learner.state(), "parameters": PRODUCTION.tobytes()})
    n_lists = 0
    for is_first in (True, False):
        if not is_first:
            loop.serve()
        rng = _rng_after(loop)
        scores = scores_of(learner.ranker, loop.parameters, WORLD)
        for row, clicks in _lists_with_clicks(loop, 200, rng):
            span = slice(*WORLD.offsets[row[0] : row[0] + 2])
            shown = row[1 : 1 + len(clicks)]
            features = WORLD.features[span][shown].astype(np.float64)
            learner.learn(TrainingExample(scores[span], shown, clicks, features))
            n_lists += 1
        assert loop.parameters == pytest.approx(learner.parameters(), rel=1e-9)

    assert n_lists == 400
    assert loop.updates == learner.updates > 200


def _rng_after(loop: ServedPdgdLoop) -> np.random.Generator:
    """A generator that will draw what the loop's does."""
    rng = np.random.default_rng(0)
    rng.bit_generator.state = loop._rng.bit_generator.state
    return rng


def _lists_with_clicks(loop, n_lists, rng):
    """Lists of a loop and their clicks, drawn once more by the same numbers."""
    scores = loop._served.copy()
    shown = loop.run(n_lists)
    found = []
    for row in shown:
        query = any_query(WORLD.offsets, rng)
        assert query == row[0]
        begin, end = WORLD.offsets[query : query + 2]
        n = int(end - begin)
        rows, clicks = np.empty(3, np.int64), np.empty(3, np.bool_)
        blocks = np.empty((n + BLOCK - 1) // BLOCK)
        sample_list(scores[begin:end], np.empty(n), blocks, rows, rng)
        assert rows.tolist() == row[1:].tolist()
        click_on(WORLD.labels[begin:end], rows, users_of(USERS), clicks, rng)
        found.append((row, clicks))
    return found


@pytest.mark.parametrize(
    "config",
    [PdgdConfig(4), PdgdConfig(4, biased=True), ColtrConfig(4)],
    ids=["linear", "general", "examples"],
)
def test_loops_begin_where_they_are_told_to(config) -> None:
    """And go on from there."""
    loop = loop_of(
        config, WORLD, cascade_of("perfect", 3), rng=np.random.default_rng(1)
    )
    loop.begin_at(PRODUCTION)
    assert loop.parameters.tolist() == PRODUCTION.tolist()
    loop.run(3)
    assert np.abs(loop.parameters - PRODUCTION).max() < 2.0
    assert np.linalg.norm(loop.parameters) > 2.0
