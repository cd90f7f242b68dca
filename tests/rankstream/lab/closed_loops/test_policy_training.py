"""Steps up the expected reward, early stopping, and production rankers."""

import numpy as np
import pytest

from models.losses.registry import LOSSES
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.intervention_loop import (
    chance_of_first,
    production_ranker,
    queries_of,
    sharpened,
)
from rankstream.lab.closed_loops.policy_training import (
    LAMBDA_LOSS,
    POLICY_GRADIENT,
    PolicyPlan,
    PolicyTrainer,
    ValuedQueries,
    scores_of,
)
from rankstream.lab.closed_loops.world import World, WorldPlacements
from tests.rankstream.lab.closed_loops.kept_trainer import KeptTrainer
from tests.rankstream.lab.closed_loops.worlds import USERS, learnable_world

RANK_WEIGHTS = np.array([1.0, 0.8, 0.3])


def valued(world: World, *, noise: float = 0.0, seed: int = 0) -> ValuedQueries:
    """Queries with what labels say, more or less."""
    rng = np.random.default_rng(seed)
    values = world.labels / 2.0 + noise * rng.standard_normal(len(world.labels))
    n_queries = len(world.offsets) - 1
    return ValuedQueries(world, values, np.full(n_queries, 1.0 / n_queries))


def reward(ranker, parameters, queries: ValuedQueries) -> float:
    """Of a policy, by its definition."""
    placed = WorldPlacements(queries.world.offsets, len(RANK_WEIGHTS)).of(
        scores_of(ranker, parameters, queries.world)
    )
    shares = np.repeat(queries.weights, np.diff(queries.world.offsets))
    known = np.nan_to_num(queries.values)
    return float((shares * known) @ (placed @ RANK_WEIGHTS))


@pytest.mark.parametrize("hidden", [(), (3, 2)])
def test_a_step_is_the_gradient_of_the_reward(hidden: tuple[int, ...]) -> None:
    """Many lists: parameters move as finite differences say, by shares over mean."""
    world = learnable_world(2, 5)
    queries = valued(world, noise=0.5)
    queries.values[1] = np.nan
    queries.weights[:] = 0.8, 0.2
    ranker = ranker_of("neural" if hidden else "linear", 4, hidden)
    start = np.random.default_rng(1).standard_normal(ranker.n_parameters)
    plan = PolicyPlan(epochs=1, learning_rate=1e-3, n_samples=200_000)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, plan)
    against = ValuedQueries(world, -queries.values, queries.weights)
    found = trainer.train(start, queries, queries, rng=np.random.default_rng(2))
    away = trainer.train(start, queries, against, rng=np.random.default_rng(2))
    moved = (found.parameters - start) / plan.learning_rate
    expected = np.empty(len(start))
    for i in range(len(start)):
        step = np.zeros(len(start))
        step[i] = 1e-5
        up, down = (reward(ranker, start + s * step, queries) for s in (1, -1))
        expected[i] = (up - down) / 2e-5 / queries.weights.mean()

    assert found.best_epoch == 1
    assert moved == pytest.approx(expected, abs=0.01 * np.abs(expected).max())
    assert away.best_epoch == 0
    assert away.parameters.tolist() == start.tolist()


def test_a_step_of_lambda_loss_goes_down_it() -> None:
    """The slopes of the registered loss, through a linear ranker, by shares."""
    world = learnable_world(2, 5)
    queries = valued(world)
    queries.values[1] = np.nan
    queries.weights[:] = 1.0, 0.0
    ranker, start = ranker_of("linear", 4), np.array([-1.0, 0.4, 0.0, 0.2])
    plan = PolicyPlan(LAMBDA_LOSS, epochs=1, learning_rate=1e-3)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, plan)
    found = trainer.train(start, queries, queries, rng=np.random.default_rng(2))
    first = slice(0, int(world.offsets[1]))
    scores = scores_of(ranker, start, world)[first]
    values = queries.values[first]
    loss = LOSSES["truncated-lambda"].loss(
        scores, np.nan_to_num(values), np.isfinite(values), len(RANK_WEIGHTS)
    )
    expected = -2.0 * loss.gradient @ world.features[first].astype(np.float64)

    assert found.best_epoch == 1
    assert (found.parameters - start) / 1e-3 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", [POLICY_GRADIENT, LAMBDA_LOSS])
def test_a_query_of_no_share_is_no_step(loss: str) -> None:
    """As one of a single document: nothing is drawn, and Adam does not go on."""
    world = learnable_world(2, 5)
    n = int(world.offsets[1]) + 1
    single = World(world.features[:n], world.labels[:n], np.array([0, n - 1, n]))
    ranker = ranker_of("linear", 4)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, PolicyPlan(loss, 1, "adam"))
    found = []
    for each in (world, single):
        queries = valued(each)
        queries.weights[:] = 1.0, 0.0
        trained = trainer.train(
            np.array([-1.0, 0.4, 0.0, 0.2]), queries, queries,
            rng=np.random.default_rng(2),
        )  # fmt: skip
        assert trained.best_epoch == 1
        found.append(trained.parameters.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("loss", [POLICY_GRADIENT, LAMBDA_LOSS])
def test_training_finds_what_was_planted(loss: str) -> None:
    """From a ranker that is wrong; the best epoch is the one that is kept."""
    ranker = ranker_of("linear", 4)
    training, held_out = (valued(learnable_world(60, s), seed=s) for s in (1, 2))
    plan = PolicyPlan(loss, epochs=20, learning_rate=0.1, patience=20)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, plan)
    start = np.array([-1.0, 1.0, 0.0, 0.0])
    found = trainer.train(start, training, held_out, rng=np.random.default_rng(3))
    again = trainer.train(start, training, held_out, rng=np.random.default_rng(3))

    assert found.parameters.tolist() == again.parameters.tolist()
    assert found.rewards[0] == pytest.approx(reward(ranker, start, held_out))
    assert len(found.rewards) == 21
    assert max(found.rewards) == found.rewards[found.best_epoch]
    assert reward(ranker, found.parameters, held_out) == max(found.rewards)
    assert found.rewards[0] + 0.1 < max(found.rewards)
    assert found.parameters[0] > 2.0 * np.abs(found.parameters[1:]).max()


def test_training_stops_without_gain_on_held_out_queries() -> None:
    """After as many epochs as it has patience for."""
    ranker = ranker_of("linear", 4)
    training = valued(learnable_world(20, 1))
    against = valued(learnable_world(20, 2))
    against.values[:] = 1.0 - against.values
    trainer = PolicyTrainer(
        ranker, RANK_WEIGHTS, PolicyPlan(learning_rate=0.1, patience=2)
    )
    found = trainer.train(np.zeros(4), training, against, rng=np.random.default_rng(0))

    assert found.best_epoch == 0
    assert len(found.rewards) == 3


def test_small_gains_do_not_keep_training_on() -> None:
    """The best epoch is kept all the same."""
    ranker = ranker_of("linear", 4)
    training, held_out = (valued(learnable_world(60, s), seed=s) for s in (1, 2))
    plan = PolicyPlan(learning_rate=0.02, epochs=9, least_gain=0.5, patience=4)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, plan)
    start = np.array([-1.0, 1.0, 0.0, 0.0])
    found = trainer.train(start, training, held_out, rng=np.random.default_rng(3))

    assert len(found.rewards) == 5
    assert found.best_epoch == np.argmax(found.rewards) > 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss": "hinge"}, "loss must be policy-gradient or truncated-lambda"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"n_samples": 0}, "n_samples must be at least 1; got 0"),
        ({"patience": 0}, "patience must be at least 1; got 0"),
    ],
)
def test_plans_refuse_what_makes_no_sense(change, says: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=says):
        PolicyPlan(**change)


@pytest.mark.parametrize("hidden", [(), (3, 2)])
def test_a_production_ranker_is_as_sure_as_it_is_asked_to_be(
    hidden: tuple[int, ...],
) -> None:
    """Better than chance, with the same order however sure it is."""
    world = learnable_world(400, 3)
    ranker = ranker_of("neural" if hidden else "linear", 4, hidden)
    plan = PolicyPlan(optimiser="adam", learning_rate=0.05, epochs=40, patience=10)
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, plan)
    rough = production_ranker(
        ranker, trainer, world, np.array(USERS.relevance), rng=np.random.default_rng(1)
    )
    orders = []
    for chance in (0.5, 0.84, 0.99):
        parameters = sharpened(ranker, rough, world, chance)
        scores = scores_of(ranker, parameters, world)
        assert chance_of_first(scores, world.offsets) == pytest.approx(chance, abs=1e-6)
        orders.append(scores.argsort().tolist())

    assert orders[0] == orders[1] == orders[2]
    assert np.corrcoef(scores_of(ranker, rough, world), world.labels)[0, 1] > 0.3


def test_a_production_ranker_has_one_query_of_a_hundred_that_tells() -> None:
    """And one more; those without a relevant document are left out."""
    world = learnable_world(300, 3)
    labels = world.labels.copy()
    labels[int(world.offsets[8]) :] = 0
    world = world._replace(labels=labels)
    trainer = KeptTrainer(ranker_of("linear", 4), RANK_WEIGHTS, PolicyPlan(epochs=1))
    production_ranker(
        ranker_of("linear", 4), trainer, world, np.array([0.0, 0.5, 1.0]),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    _, training, held_out = trainer.asked

    assert training is held_out
    assert len(training.weights) == len(training.world.offsets) - 1 == 4
    assert training.values.tolist() == (training.world.labels / 2.0).tolist()
    assert np.add.reduceat(training.values, training.world.offsets[:-1]).min() > 0.0


def test_chances_and_labels_that_cannot_be_are_refused() -> None:
    """A ranker that knows nothing is never sure; nor can one learn from nothing."""
    world = learnable_world(10, 3)
    ranker = ranker_of("linear", 4)
    with pytest.raises(ValueError, match="the chance of the first document must be"):
        sharpened(ranker, np.zeros(4), world, 0.8)
    with pytest.raises(ValueError, match="the chance of the first document must be"):
        sharpened(ranker, np.ones(4), world, 0.05)
    none = world._replace(labels=np.zeros_like(world.labels))
    trainer = PolicyTrainer(ranker, RANK_WEIGHTS, PolicyPlan())
    with pytest.raises(
        ValueError, match="some query must have a relevant document; got 10"
    ):
        production_ranker(
            ranker, trainer, none, np.array([0.0, 0.5, 1.0]),
            rng=np.random.default_rng(0),
        )  # fmt: skip


def test_chance_of_first_is_the_softmax_of_the_top() -> None:
    """Two queries by hand: 1/2, and e over e + 1."""
    scores = np.array([700.0, 700.0, 1.0, 0.0])
    expected = 0.5 * (0.5 + np.e / (np.e + 1.0))
    assert chance_of_first(scores, np.array([0, 2, 4])) == pytest.approx(expected)


def test_some_queries_of_a_world_keep_their_documents() -> None:
    """In the order that is asked for."""
    world = learnable_world(5, 3)
    part, rows = queries_of(world, np.array([3, 1]))
    spans = [slice(*world.offsets[query : query + 2]) for query in (3, 1)]

    assert part.labels.tolist() == [*world.labels[spans[0]], *world.labels[spans[1]]]
    assert part.features.tolist() == world.features[rows].tolist()
    assert part.offsets[1] == spans[0].stop - spans[0].start
