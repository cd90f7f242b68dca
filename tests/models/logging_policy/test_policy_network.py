"""A network that logs for any query: what it sees, what it learns, what is refused."""

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.logging_policy.policy_features import EXTRAS, policy_features
from models.logging_policy.policy_network import (
    ComparedQueries,
    NetworkPlan,
    policy_scores,
    trained_policy,
)
from models.logging_policy.second_moment import second_moment
from models.rankers.registry import ranker_of

THETA = 1.0 / np.arange(1.0, 6.0)


def planted(n_queries: int) -> tuple[ComparedQueries, Integers]:
    """Rankings of ten items at random, and their ranks [2, n_items]."""
    rng = np.random.default_rng(1)
    ranks = np.stack(
        [
            np.concatenate([rng.permutation(10) + 1 for _ in range(n_queries)])
            for _ in range(2)
        ]
    )
    looked = np.zeros(11)
    looked[1:6] = THETA
    differences = looked[ranks[0]] - looked[ranks[1]]
    relevance = 0.1 + 0.8 * rng.random(10 * n_queries)
    offsets = 10 * np.arange(n_queries + 1)
    return ComparedQueries(offsets, relevance, differences, THETA), ranks


def features_of(queries: ComparedQueries, ranks: Integers) -> Floats:
    """Nothing was logged: what rankers differ in alone."""
    return np.concatenate(
        [
            policy_features(
                np.empty((10, 0)),
                queries.query(q).differences,
                ranks[:, 10 * q : 10 * q + 10],
            )
            for q in range(len(queries.offsets) - 1)
        ]
    )


def total(scores: Floats, queries: ComparedQueries, n: int = 10) -> float:
    """Sum of E[x^2] over queries of so many items each."""
    rng = np.random.default_rng(3)
    return sum(
        second_moment(
            scores[n * q : n * q + n], queries.query(q), n_lists=1_000, rng=rng
        ).value
        for q in range(len(queries.offsets) - 1)
    )


def test_it_logs_queries_that_it_never_saw_better_than_any_order() -> None:
    """By what rankers differ in; above the floor; and the same again from its seed."""
    queries, ranks = planted(60)
    features = features_of(queries, ranks)
    ranker = ranker_of("neural", features.shape[1], (32, 32))
    few = queries._replace(
        offsets=queries.offsets[:41],
        relevance=queries.relevance[:400],
        differences=queries.differences[:400],
    )
    found = []
    for seed in (1, 1, 2):
        rng = np.random.default_rng(seed)
        start = ranker.initial_parameters(rng=rng)
        plan = NetworkPlan(epochs=10)
        found.append(trained_policy(ranker, start, features[:400], few, plan, rng=rng))
    unseen = ComparedQueries(
        queries.offsets[:21], queries.relevance[400:], queries.differences[400:], THETA
    )
    scores = policy_scores(ranker, found[0], features[400:], unseen, 0.08)

    assert total(scores, unseen) < 0.7 * total(np.zeros(200), unseen)
    assert found[0].tobytes() == found[1].tobytes() != found[2].tobytes()
    for q in range(20):
        looked = second_moment(
            scores[10 * q : 10 * q + 10], unseen.query(q), rng=np.random.default_rng(1)
        ).propensities
        assert looked[unseen.query(q).differences != 0.0].min() >= 0.08


def test_queries_that_tell_nothing_teach_nothing() -> None:
    """Those of equal lists, and those without relevance."""
    queries, ranks = planted(3)
    queries.differences[:10] = 0.0
    queries.relevance[20:] = 0.0
    features = features_of(queries, ranks)
    ranker = ranker_of("linear", features.shape[1])
    start, plan = np.zeros(ranker.n_parameters), NetworkPlan(epochs=2)
    alone = ComparedQueries(
        queries.offsets[:2], queries.relevance[10:20], queries.differences[10:20], THETA
    )
    found, other = (
        trained_policy(ranker, start, seen, of, plan, rng=np.random.default_rng(1))
        for seen, of in ((features, queries), (features[10:20], alone))
    )

    assert queries.differing.tolist() == [1]
    assert found.tobytes() == other.tobytes()
    assert found.any()


def test_what_a_pass_tells_is_the_mean_second_moment_that_it_met() -> None:
    """Before its only step all items score alike; five of them need no drawn lists."""
    rng = np.random.default_rng(3)
    queries = ComparedQueries(
        np.array([0, 5, 10]), rng.random(10), rng.normal(size=10) / 4, THETA[:5]
    )
    ranker, told = ranker_of("linear", 2), []
    trained_policy(
        ranker, np.zeros(ranker.n_parameters), rng.normal(size=(10, 2)), queries,
        NetworkPlan(epochs=1, batch=2), rng=rng,
        on_epoch=lambda *one: told.append(one),
    )  # fmt: skip
    assert told == [(1, pytest.approx(total(np.zeros(10), queries, 5) / 2, rel=1e-12))]


def test_equal_rankers_are_refused() -> None:
    """There is no variance to be less."""
    queries, ranks = planted(2)
    queries.differences[:] = 0.0
    features = features_of(queries, ranks)
    ranker = ranker_of("linear", features.shape[1])
    start = np.zeros(ranker.n_parameters)
    with pytest.raises(ValueError, match="none of 2: their difference has no variance"):
        trained_policy(
            ranker, start, features, queries, NetworkPlan(),
            rng=np.random.default_rng(1),
        )  # fmt: skip
    with pytest.raises(ValueError, match="features must be 20 items by 8; got"):
        trained_policy(
            ranker, start, features[:, 1:], queries, NetworkPlan(),
            rng=np.random.default_rng(1),
        )  # fmt: skip


def test_extra_features_are_those_asked_for_and_scaled_within_the_query() -> None:
    """Each by its name; equal values are 0."""
    differences, ranks = np.array([0.5, -1.0, 0.0]), np.array([[1, 2, 3], [2, 1, 3]])
    logged = np.array([[7.0], [8.0], [9.0]])
    columns = {
        name: policy_features(logged, differences, ranks, [name])[:, 1:].T.tolist()
        for name in EXTRAS
    }

    assert columns == {
        "difference": [[1.0, 0.0, pytest.approx(2.0 / 3.0)]],
        "size": [[0.5, 1.0, 0.0]],
        "square": [[0.25, 1.0, 0.0]],
        "sign": [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
        "ranks": [[0.0, 0.5, 1.0], [0.5, 0.0, 1.0]],
        "items": [[-0.03, -0.03, -0.03]],
    }
    assert policy_features(logged, differences, ranks, []).tolist() == logged.tolist()
    with pytest.raises(ValueError, match="got 'rank'"):
        policy_features(logged, differences, ranks, ["rank"])
    with pytest.raises(ValueError, match="no features and no extras"):
        policy_features(logged[:, :0], differences, ranks, [])


@pytest.mark.parametrize("words", [{"epochs": 0}, {"batch": 0}, {"n_lists": 1}])
def test_plans_that_cannot_be_followed_are_refused(words: dict[str, int]) -> None:
    """Whatever is outside its range."""
    with pytest.raises(ValueError, match="must be at least"):
        NetworkPlan(**words)  # type: ignore[arg-type]
