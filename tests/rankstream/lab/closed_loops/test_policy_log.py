"""Sums of clicks under several policies, and what estimators make of them."""

import numpy as np
import pytest

from models.click_models.compiled_users import users_of
from models.estimators.click_log import ClickLog
from models.estimators.registry import estimator_of
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.policy_log import ESTIMATORS, PolicyLog, show_lists
from rankstream.lab.closed_loops.world import World, WorldPlacements
from tests.placed_list import placement_probabilities
from tests.rankstream.lab.closed_loops.worlds import USERS, learnable_world

WORLD = learnable_world(6, 1)


def both_logs(n_lists: int) -> tuple[PolicyLog, ClickLog, np.ndarray]:
    """The same lists of two policies as sums, and as rows for any estimator."""
    log, rng = PolicyLog(WORLD, USERS), np.random.default_rng(3)
    n, n_queries = len(WORLD.labels), len(WORLD.offsets) - 1
    of_documents = np.repeat(np.arange(n_queries), np.diff(WORLD.offsets))
    columns: list[list[np.ndarray]] = [[] for _ in range(7)]
    impressions = np.zeros((1, 2, n))
    for policy in (0, 1):
        scores = 3.0 * rng.standard_normal(n)
        log.deploy(scores)
        lists = np.zeros(n_queries, np.int64)
        shown, clicked = np.zeros((n, 3), np.int64), np.zeros((n, 3), np.int64)
        for seed, part in ((10 + policy, n_lists), (20 + policy, n_lists // 2)):
            log.gather(part, rng=np.random.default_rng(seed))
            show_lists(
                WORLD, users_of(USERS), scores, part, lists, shown, clicked,
                np.random.default_rng(seed),
            )  # fmt: skip
        impressions[0, policy] = lists[of_documents]
        placed = np.concatenate(
            [
                placement_probabilities(scores[begin:end], 3)
                for begin, end in zip(
                    WORLD.offsets[:-1], WORLD.offsets[1:], strict=True
                )
            ]
        )
        rows, ranks = np.repeat(np.arange(n), 3), np.tile([1, 2, 3], n)
        expected = placed * lists[of_documents][:, None]
        found = (
            np.zeros(3 * n, np.int64), np.full(3 * n, policy), rows, ranks,
            shown.ravel(), clicked.ravel(), expected.ravel(),
        )  # fmt: skip
        for column, values in zip(columns, found, strict=True):
            column.append(values)
    joined = [np.concatenate(column) for column in columns]
    return log, ClickLog._make([*joined, frozenset()]), impressions


@pytest.mark.parametrize("least", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_sums_give_what_estimators_give(name: str, least: float) -> None:
    """By their registered definitions, with and without a least propensity."""
    log, rows, impressions = both_logs(40)
    expected = estimator_of(name).estimator(rows, impressions, log.curve, least=least)

    assert log.values(name, least=least) == pytest.approx(
        expected.values, rel=1e-9, nan_ok=True
    )
    assert log.n_policies == 2
    assert log.lists.sum() == 120


def test_estimators_are_biased_where_they_say() -> None:
    """Both intervention estimators find what is planted; the others do not."""
    world = World(
        np.zeros((4, 1), np.float32), np.array([0, 1, 2, 0]), np.array([0, 4])
    )
    truth = np.array(USERS.relevance)[world.labels]
    log, rng = PolicyLog(world, USERS), np.random.default_rng(4)
    for scores in ([3.0, 0.0, 0.0, -1.5], [0.0, 2.0, 0.0, 0.0]):
        log.deploy(np.array(scores))
        log.gather(100_000, rng=rng)
    off = {name: np.abs(log.values(name) - truth).max() for name in ESTIMATORS}

    assert off["intervention-aware"] < 0.03
    assert off["intervention-oblivious"] < 0.03
    assert off["policy-aware"] > 0.15
    assert off["affine"] > 0.15


def test_training_raises_small_propensities() -> None:
    """To 10 over the root of the number of lists, as the literature does."""
    log, _, _ = both_logs(100)
    for name in ESTIMATORS:
        raised = log.training_values(name, 10_000)
        assert raised == pytest.approx(log.values(name, least=0.1), nan_ok=True)
        assert np.nanmax(np.abs(raised)) <= np.nanmax(np.abs(log.values(name)))


def test_logs_refuse_what_makes_no_sense() -> None:
    """Lists without a policy, and estimators that nobody knows."""
    log = PolicyLog(WORLD, USERS)
    with pytest.raises(ValueError, match="a policy must be deployed"):
        log.gather(1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="estimator must be one of intervention-aware"):
        log.values("naive")


def test_placements_of_a_world_are_those_of_its_queries() -> None:
    """Queries of one length together, short ones with fewer ranks."""
    scores = np.random.default_rng(0).standard_normal(len(WORLD.labels))
    placed = WorldPlacements(WORLD.offsets, 4).of(scores)
    for begin, end in zip(WORLD.offsets[:-1], WORLD.offsets[1:], strict=True):
        shown = min(4, end - begin)
        alone = placement_probabilities(scores[begin:end], shown)
        assert placed[begin:end, :shown].tolist() == alone.tolist()
        assert not placed[begin:end, shown:].any()


@pytest.mark.parametrize("purge", [True, False])
def test_ndcg_of_a_policy_is_that_of_its_lists(*, purge: bool) -> None:
    """As the mean over very many drawn lists."""
    world = World(
        np.zeros((7, 1), np.float32),
        np.array([0, 1, 2, 0, 0, 0, 1]),
        np.array([0, 3, 5, 7]),
    )
    judge = Judge(world, Conventions(2, "linear", purge=purge))
    scores = np.array([1.0, 0.0, 0.5, 0.0, 1.0, 0.3, 0.0])
    rng, n = np.random.default_rng(2), 20_000
    found = 0.0
    for query, (begin, end) in enumerate(((0, 3), (3, 5), (5, 7))):
        keys = scores[begin:end] + rng.gumbel(size=(n, end - begin))
        lists = np.column_stack([np.full(n, query), (-keys).argsort(axis=1)[:, :2]])
        found += judge.shown(lists).mean()
    expected = judge.policy(WorldPlacements(world.offsets, 2).of(scores))

    assert expected == pytest.approx(found / (2 if purge else 3), abs=0.005)
