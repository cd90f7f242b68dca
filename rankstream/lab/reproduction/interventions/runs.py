"""One run: a production ranker, its users, and what is learned by each checkpoint."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from models.arrays import Floats
from models.click_models.trust_bias import TrustBiasModel, trust_bias_of
from models.learners.pdgd import PdgdConfig
from models.rankers.ranker import Ranker
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.delayed_pdgd_loop import ServedPdgdLoop
from rankstream.lab.closed_loops.intervention_loop import (
    InterventionLoop,
    Learning,
    production_ranker,
    sharpened,
)
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.policy_log import PolicyLog
from rankstream.lab.closed_loops.policy_training import PolicyTrainer, scores_of
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.closed_loops.world import World, WorldPlacements
from rankstream.lab.reproduction.data import VALIDATION, world_of
from rankstream.lab.reproduction.engine import Job, Result, Setup, checkpoints_of
from rankstream.lab.reproduction.interventions.plan import (
    CONTINUOUS,
    CUTOFF,
    FIRST_CHANCE,
    ONLINE,
    PRODUCTION,
    Cell,
    learner_of,
    plan_of,
)
from streams.native.placing import placements_of_scores

TRAINED, ORDER, LOGGING, ON_TRAINING = "trained", "order", "logging", "on_training"

FIGURES = (TRAINED, ORDER, LOGGING, ON_TRAINING)
"""NDCG of what is learned, as a policy and as an order, of the policy that shows
lists, and of the learned one on the queries that it learned from."""

CONVENTIONS = Conventions(CUTOFF, "linear", purge=True)


class _Scene(NamedTuple):
    """Queries and users of a run, and the production ranker."""

    train: World
    both: World
    test: World
    users: TrustBiasModel
    ranker: Ranker
    production: Floats


class Learner(Protocol):
    """What a run lives with: it shows lists, and knows something after them."""

    def run(self, n_impressions: int) -> object:
        """Show so many lists."""

    def learned(self) -> Floats:
        """What was learned so far, [n_parameters]."""

    def deployed(self) -> Floats:
        """What shows lists now, [n_parameters]."""


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: NDCG of all `FIGURES` by each checkpoint."""
    seeds = np.random.SeedSequence([setup.seed, job.fold, job.run]).spawn(4)
    # Runs of all cells that share fold and number share their seeds: they are paired.
    production_rng, user_rng, training_rng, tie_rng = map(np.random.default_rng, seeds)
    scene = _scene_of(setup, job, production_rng)
    learner = _learner_of(scene, job.cell, user_rng, training_rng)
    judges = [_PolicyJudge(scene.ranker, world) for world in (scene.test, scene.train)]
    found: dict[str, list[float]] = {name: [] for name in FIGURES}
    before = 0
    for checkpoint in checkpoints_of(job.cell.n_impressions):
        learner.run(checkpoint - before)
        before = checkpoint
        learned = learner.learned()
        found[TRAINED].append(judges[0].policy(learned))
        found[ORDER].append(judges[0].order(learned, rng=tie_rng))
        found[LOGGING].append(judges[0].policy(learner.deployed()))
        found[ON_TRAINING].append(judges[1].policy(learned))
    return {**found, "production": judges[0].policy(scene.production)}


def _scene_of(setup: Setup, job: Job[Cell], rng: np.random.Generator) -> _Scene:
    train, held_out, test = (
        world_of(setup.place, job.fold, split, setup.normalisation)
        for split in ("train", VALIDATION, "test")
    )
    users = trust_bias_of(setup.grades, n_ranks=CUTOFF)
    hidden = job.cell.hidden
    kind = "neural" if hidden else "linear"
    ranker = ranker_of(kind, train.features.shape[1], hidden)
    trainer = PolicyTrainer(
        ranker, _rank_weights(users), PRODUCTION, placements=placements_of_scores
    )
    relevance = np.array(users.relevance)
    rough = production_ranker(ranker, trainer, train, relevance, rng=rng)
    production = sharpened(ranker, rough, train, FIRST_CHANCE[job.cell.part])
    both = _joined(train, held_out)
    return _Scene(train, both, test, users, ranker, production)


def _rank_weights(users: TrustBiasModel) -> Floats:
    """How often what is relevant is clicked at each rank, [cutoff]."""
    return np.asarray(np.array(users.alpha) + np.array(users.beta))


def _joined(one: World, other: World) -> World:
    """The queries of both, end to end."""
    return World(
        np.concatenate([one.features, other.features]),
        np.concatenate([one.labels, other.labels]),
        np.concatenate([one.offsets, other.offsets[1:] + one.offsets[-1]]),
    )


def _learner_of(
    scene: _Scene,
    cell: Cell,
    user_rng: np.random.Generator,
    training_rng: np.random.Generator,
) -> Learner:
    if cell.method not in ONLINE:
        return _Counterfactual(scene, cell, user_rng, training_rng)
    return _Online(scene, cell, user_rng)


class _Counterfactual:
    """An estimator whose policies are trained from sums."""

    def __init__(
        self,
        scene: _Scene,
        cell: Cell,
        user_rng: np.random.Generator,
        training_rng: np.random.Generator,
    ) -> None:
        trainer = PolicyTrainer(
            scene.ranker,
            _rank_weights(scene.users),
            plan_of(cell),
            placements=placements_of_scores,
        )
        log = PolicyLog(scene.both, scene.users, placements=placements_of_scores)
        self._loop = InterventionLoop(
            log,
            len(scene.train.offsets) - 1,
            Learning(scene.ranker, trainer, scene.production, cell.method),
            cell.interventions(),
            user_rng=user_rng,
            training_rng=training_rng,
        )

    def run(self, n_impressions: int) -> None:
        self._loop.run(n_impressions)

    def learned(self) -> Floats:
        return self._loop.train().parameters

    def deployed(self) -> Floats:
        return self._loop.deployed


class _Online:
    """A method that learns at each list, and serves now and then or always."""

    def __init__(self, scene: _Scene, cell: Cell, rng: np.random.Generator) -> None:
        config = learner_of(cell, scene.ranker.sizes[0])
        self._is_continuous = cell.n_interventions == CONTINUOUS
        self._waiting = cell.interventions()
        self._lived = 0
        if not self._is_continuous and isinstance(config, PdgdConfig):
            self._served = ServedPdgdLoop(
                config, scene.both, scene.users, cutoff=CUTOFF, rng=rng
            )
            self._loop: Any = self._served
        else:
            self._loop = loop_of(
                config, scene.both, scene.users, cutoff=CUTOFF, rng=rng
            )
        self._loop.begin_at(scene.production)
        self._deployed = scene.production

    def run(self, n_impressions: int) -> None:
        end = self._lived + n_impressions
        while self._waiting and self._waiting[0] <= end:
            self._live(self._waiting.pop(0))
            self._served.serve()
            self._deployed = self.learned()
        self._live(end)

    def _live(self, until: int) -> None:
        self._loop.run(until - self._lived)
        self._lived = until

    def learned(self) -> Floats:
        return np.array(self._loop.parameters)

    def deployed(self) -> Floats:
        return self.learned() if self._is_continuous else self._deployed


class _PolicyJudge:
    """NDCG of policies on one world."""

    def __init__(self, ranker: Ranker, world: World) -> None:
        self._ranker, self._world = ranker, world
        self._judge = Judge(world, CONVENTIONS)
        self._placed = WorldPlacements(world.offsets, CUTOFF, placements_of_scores)

    def policy(self, parameters: Floats) -> float:
        scores = scores_of(self._ranker, parameters, self._world)
        return self._judge.policy(self._placed.of(scores))

    def order(self, parameters: Floats, *, rng: np.random.Generator) -> float:
        scores = scores_of(self._ranker, parameters, self._world)
        return self._judge.held_out(scores, rng=rng)
