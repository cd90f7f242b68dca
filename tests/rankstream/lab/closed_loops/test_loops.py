"""Closed loops do what their parts by themselves do, and are cut anywhere."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from models.click_models.cascade import CascadeModel, cascade_of
from models.learners.coltr import ColtrConfig
from models.learners.duel_learner import DuelConfig
from models.learners.learner import TrainingExample
from models.learners.pairwise import PairwiseConfig, PairwiseLearner
from models.learners.parameters import LearnerConfig
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.learners.pl_rank import PlRankConfig, PlRankLearner
from models.learners.registry import LEARNERS
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.delayed_pdgd_loop import LaggingLoop
from rankstream.lab.closed_loops.duel_loop import DuelLoop
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.pair_loop import PairLoop
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.ranker_loop import ExampleLoop
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.closed_loops.world import World

SURE = CascadeModel((0.0, 1.0, 1.0), (0.0, 0.0, 0.0))
"""Users who click on what is relevant and on nothing else."""

CONFIGS: dict[str, LearnerConfig] = {
    "pdgd": PdgdConfig(6),
    "pdgd neural": PdgdConfig(6, "neural", (5, 3), seed=2),
    "pdgd adam": PdgdConfig(6, "neural-tanh", (5,), optimiser="adam"),
    "pdgd biased": PdgdConfig(6, biased=True),
    "pdgd all observed": PdgdConfig(6, all_observed=True),
    "pdgd counterfactual": PdgdConfig(6, counterfactual=True),
    "pairwise": PairwiseConfig(6),
    "pairwise worst first": PairwiseConfig(6, worst_first=True),
    "dbgd": DuelConfig(6),
    "dbgd neural": DuelConfig(6, "neural", (5,), seed=3),
    "dbgd oracle": DuelConfig(6, comparison="oracle"),
    "td-dbgd": DuelConfig(6, comparison="team-draft"),
    "mgd": DuelConfig(6, n_candidates=9),
    "td-mgd": DuelConfig(6, n_candidates=9, comparison="team-draft"),
    "mgd by sample": DuelConfig(6, n_candidates=9, n_samples=1_000, own_ties=True),
    "coltr": ColtrConfig(6, n_candidates=20),
    "pl-rank": PlRankConfig(6, n_samples=10, cutoff=5),
}


def small_world(n_queries: int = 30) -> World:
    """Queries of 1 to 23 documents with three grades that features tell of."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 24, n_queries)
    features = rng.random((int(sizes.sum()), 6)).astype(np.float32)
    hidden = features @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.2])
    labels = np.digitize(hidden, np.quantile(hidden, [0.6, 0.85]))
    return World(features, labels, np.concatenate([[0], np.cumsum(sizes)]))


@pytest.mark.parametrize("name", CONFIGS)
def test_loops_cut_anywhere_give_the_same_bits(name: str) -> None:
    """Impressions lived through at once or in pieces are the same, and teach."""
    world, users = small_world(), cascade_of("informational", 3)
    whole, parts = (
        loop_of(CONFIGS[name], world, users, cutoff=5, rng=np.random.default_rng(1))
        for _ in range(2)
    )
    at_once = whole.run(300)
    pieces = np.concatenate([parts.run(n) for n in (1, 0, 199, 100)])

    assert (pieces == at_once).all()
    assert parts.parameters.tobytes() == whole.parameters.tobytes()
    assert parts.updates == whole.updates > 10


@pytest.mark.parametrize("name", CONFIGS)
def test_lists_hold_documents_once(name: str) -> None:
    """Every list holds different rows of its query, as many as fit."""
    world, users = small_world(), cascade_of("perfect", 3)
    loop = loop_of(CONFIGS[name], world, users, cutoff=5, rng=np.random.default_rng(1))
    for query, *shown in loop.run(200).tolist():
        n = int(world.offsets[query + 1] - world.offsets[query])
        rows = [row for row in shown if row >= 0]
        assert len({*rows}) == len(rows) == min(n, 5)
        assert max(rows) < n


@pytest.mark.parametrize(
    "config",
    [
        PdgdConfig(6, learning_rate=0.5, decay=0.999),
        PdgdConfig(6, "neural", (5,), learning_rate=0.5, seed=3),
        PdgdConfig(6, "neural-relu", (7, 4), learning_rate=0.1, seed=3),
        PdgdConfig(6, biased=True),
        PdgdConfig(6, all_observed=True),
        PairwiseConfig(6, "neural", (5,), learning_rate=0.01),
    ],
    ids=["linear", "neural", "relu", "biased", "all observed", "pairwise"],
)
def test_pair_loops_learn_what_the_learners_learn(
    config: PdgdConfig | PairwiseConfig,
) -> None:
    """Their lists, told to a learner one by one, lead to the same parameters."""
    world = small_world()
    loop = PairLoop(config, world, SURE, cutoff=7, rng=np.random.default_rng(2))
    learner: PdgdLearner | PairwiseLearner
    if isinstance(config, PdgdConfig):
        learner = PdgdLearner(config)
    else:
        learner = PairwiseLearner(config)
    for query, *shown in loop.run(400).tolist():
        rows = np.array([row for row in shown if row >= 0])
        span = slice(world.offsets[query], world.offsets[query + 1])
        features = world.features[span].astype(np.float64)
        scores = learner.ranker.score(learner.parameters(), features)
        clicks = world.labels[span][rows] > 0
        learner.learn(TrainingExample(scores, rows, clicks, features[rows]))

    assert learner.updates == loop.updates > 100
    assert loop.parameters == pytest.approx(learner.parameters(), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("lag", [0, 1, 37])
def test_a_lagging_loop_learns_from_old_lists(lag: int) -> None:
    """Its lists, told to a learner so much later, lead to the same parameters."""
    world, config = small_world(), PdgdConfig(6, learning_rate=0.5)
    loop = LaggingLoop(
        config, world, SURE, lag=lag, cutoff=7, rng=np.random.default_rng(2)
    )
    shown = np.concatenate([loop.run(n) for n in (20, 1, 279)])
    learner, waiting = PdgdLearner(config), []
    for query, *places in shown.tolist():
        rows = np.array([row for row in places if row >= 0])
        span = slice(world.offsets[query], world.offsets[query + 1])
        features = world.features[span].astype(np.float64)
        scores = learner.ranker.score(learner.parameters(), features)
        clicks = world.labels[span][rows] > 0
        waiting.append(TrainingExample(scores, rows, clicks, features[rows]))
        if len(waiting) > lag:
            learner.learn(waiting.pop(0))

    assert learner.updates == loop.updates > 100
    assert loop.parameters == pytest.approx(learner.parameters(), rel=1e-9)


def test_the_published_sign_shows_the_worst_documents() -> None:
    """Without exploration one form shows its best documents, the other its worst."""
    world, shown = small_world(), {}
    for worst_first in (False, True):
        config = PairwiseConfig(6, exploration=0.0, worst_first=worst_first)
        loop = PairLoop(config, world, SURE, cutoff=3, rng=np.random.default_rng(2))
        loop.run(500)
        lists = loop.run(500)
        grades = [
            world.labels[world.offsets[query] + row].mean()
            for query, row, *_ in lists.tolist()
        ]
        shown[worst_first] = np.mean(grades)

    assert shown[False] > shown[True] + 0.5


def test_duels_learn_where_users_can_tell() -> None:
    """Every comparison moves its ranker to show relevant documents more often."""
    world = small_world()
    for name in ("dbgd", "dbgd oracle", "td-dbgd", "mgd", "td-mgd"):
        config = replace(CONFIGS[name], learning_rate=0.05)
        loop = loop_of(config, world, SURE, rng=np.random.default_rng(3))
        loop.run(4_000)
        learned = loop.parameters / np.linalg.norm(loop.parameters)
        truth = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.2])
        assert learned @ truth / np.linalg.norm(truth) > 0.8, name


@dataclass(frozen=True)
class TimidConfig(PlRankConfig):
    """Of a learner that no loop has heard of."""


class TimidLearner(PlRankLearner):
    """It has a row among learners, and none anywhere else."""


def test_a_learner_of_examples_needs_no_loop_of_its_own(monkeypatch) -> None:
    """Its row among learners is enough to live with users."""
    row = LEARNERS["pl-rank"]._replace(learner=TimidLearner, config=TimidConfig)
    monkeypatch.setitem(LEARNERS, "timid", row)
    rng = np.random.default_rng(0)
    loop = loop_of(TimidConfig(6, learning_rate=0.1), small_world(), SURE, rng=rng)
    assert isinstance(loop, ExampleLoop)
    assert isinstance(loop._learner, TimidLearner)
    loop.run(20)
    assert loop.updates > 0


def test_worlds_and_learners_that_do_not_fit_raise() -> None:
    """Features, grades, empty queries and lengths are checked at once."""
    world, rng = small_world(), np.random.default_rng(0)

    with pytest.raises(ValueError, match="the world must have 5 features; got 6"):
        loop_of(DuelConfig(5), world, SURE, rng=rng)
    with pytest.raises(ValueError, match="lag must be 0 but for PDGD; got 3"):
        loop_of(DuelConfig(6), world, SURE, lag=3, rng=rng)
    with pytest.raises(ValueError, match="lag must not be negative"):
        loop_of(PdgdConfig(6), world, SURE, lag=-1, rng=rng)
    with pytest.raises(ValueError, match="no loop is known for LearnerConfig"):
        loop_of(LearnerConfig(6), world, SURE, rng=rng)
    two = cascade_of("perfect", 2)
    for config in (DuelConfig(6), PairwiseConfig(6), PdgdConfig(6)):
        with pytest.raises(ValueError, match="grades 0 to 1 of the click model"):
            loop_of(config, world, two, rng=rng)
        with pytest.raises(ValueError, match="cutoff must be at least 1"):
            loop_of(config, world, SURE, cutoff=0, rng=rng)
    empty = world._replace(offsets=np.array([0, 0, len(world.labels)]))
    with pytest.raises(ValueError, match="every query must have documents"):
        DuelLoop(DuelConfig(6), empty, SURE, rng=rng)


def test_the_fast_loop_serves_plain_linear_pdgd_only() -> None:
    """Other forms, rankers and optimisers live in the general one."""
    world, rng = small_world(), np.random.default_rng(0)

    def kind(config: PdgdConfig) -> type:
        return type(loop_of(config, world, SURE, rng=rng))

    assert kind(PdgdConfig(6)) is LinearPdgdLoop
    for other in (
        PdgdConfig(6, optimiser="adam"),
        PdgdConfig(6, biased=True),
        PdgdConfig(6, all_observed=True),
        PdgdConfig(6, "neural", (3,)),
    ):
        assert kind(other) is PairLoop


@pytest.mark.parametrize(
    "config",
    [
        DuelConfig(6, "neural-relu", (7, 4), learning_rate=1e30, n_candidates=9,
                   comparison="team-draft"),
        DuelConfig(6, "neural-relu", (7, 4), learning_rate=1e30),
        DuelConfig(6, "neural-relu", (7, 4), learning_rate=1e30, comparison="oracle"),
        DuelConfig(6, learning_rate=1e38, unit=1e38),
        PdgdConfig(6, "neural-relu", (7, 4), learning_rate=1e15, seed=3),
        PdgdConfig(6, "neural-relu", (7, 4), learning_rate=1e30, seed=3),
        PdgdConfig(6, learning_rate=1e300),
    ],
)  # fmt: skip
def test_learners_that_diverge_still_show_lists(config: Any) -> None:
    """Of different documents of the query; parameters stay finite."""
    world = small_world()
    users = cascade_of("informational", 3)
    loop = loop_of(config, world, users, cutoff=5, rng=np.random.default_rng(1))
    for query, *places in loop.run(300).tolist():
        n = int(world.offsets[query + 1] - world.offsets[query])
        rows = places[: min(n, 5)]
        assert len(set(rows)) == len(rows)
        assert min(rows) >= 0
        assert max(rows) < n
    assert np.isfinite(loop.parameters).all()


@pytest.mark.parametrize(
    "config",
    [
        ColtrConfig(6, learning_rate=0.5),
        PlRankConfig(6, learning_rate=1.0, n_samples=20),
        PlRankConfig(6, "neural", (5,), learning_rate=1.0, n_samples=20, seed=2),
    ],
    ids=["coltr", "pl-rank", "pl-rank neural"],
)
def test_learners_without_a_kernel_raise_ndcg(config: LearnerConfig) -> None:
    """What they rank with after a while is better than what they began with."""
    world = small_world(60)
    loop = loop_of(
        config, world, cascade_of("perfect", 3), rng=np.random.default_rng(5)
    )
    ranker = ranker_of(config.kind, config.n_features, config.hidden)
    judge = Judge(world, Conventions(10, "exponential", purge=True))
    features = world.features.astype(np.float64)

    def ndcg() -> float:
        scores = ranker.score(loop.parameters, features)
        return judge.held_out(scores, rng=np.random.default_rng(6))

    before = ndcg()
    loop.run(1_500)

    assert ndcg() > before + 0.1
    assert ndcg() > 0.85
