"""The floor of served lists, as a training goes through it."""

import numpy as np
import pytest

from models.arrays import Flags, Floats
from models.logging_policy.compared_query import ComparedQuery
from models.logging_policy.policy_network import (
    ComparedQueries,
    NetworkPlan,
    trained_policy,
)
from models.logging_policy.raised_shares import lead_through, raise_shares
from models.logging_policy.second_moment import second_moment
from models.rankers.registry import ranker_of
from rankstream.ranking.logging_policy import floored


def served(scores: Floats, differences: Floats, least: float) -> tuple[Floats, Flags]:
    """Scores that lists are drawn by, and whose share was raised."""
    found, is_raised = scores.copy(), np.empty(len(scores), np.bool_)
    raise_shares(found, differences, least, is_raised)
    return found, is_raised


@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0])
def test_it_is_the_floor_of_services(spread: float) -> None:
    """Share by share, to the rounding of what is logged."""
    rng = np.random.default_rng(int(spread))
    for _ in range(60):
        n = int(rng.integers(1, 12))
        differences = rng.choice([0.0, 0.5, -0.5], n)
        scores = spread * rng.normal(size=n)
        least = float(rng.uniform(0.01, 1.0)) / n
        ours, is_raised = served(scores, differences, least)

        assert np.allclose(ours, floored(scores, differences, least), atol=2e-5)
        assert np.allclose(ours[is_raised], np.log(least))
        assert not is_raised[differences == 0.0].any()


def test_its_gradient_is_that_of_finite_differences() -> None:
    """Of all that is not raised; what is raised may go up, and no further down."""
    rng, directions = np.random.default_rng(2), set[bool]()
    for _ in range(40):
        query = ComparedQuery(
            rng.uniform(0.1, 0.9, 5), rng.choice([0.0, 0.5, -0.3, 0.2], 5),
            np.array([1.0, 0.6, 0.3]),
        )  # fmt: skip
        scores, least, step = 2.0 * rng.normal(size=5), 0.12, 1e-6
        at, is_raised = served(scores, query.differences, least)
        found = second_moment(at, query).gradient
        before = found.copy()
        lead_through(found, at, is_raised)
        for row in range(5):
            ends = []
            for sign in (-1.0, 1.0):
                moved = scores + sign * step * (np.arange(5) == row)
                there, _ = served(moved, query.differences, least)
                ends.append(second_moment(there, query).value)
            slope = (ends[1] - ends[0]) / (2.0 * step)
            if is_raised[row]:
                assert slope == pytest.approx(0.0, abs=1e-9)
                assert found[row] == min(before[row], 0.0)
                directions.add(bool(before[row] < 0.0))
            else:
                assert found[row] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert directions == {True, False}


def planted(n_queries: int) -> tuple[ComparedQueries, Floats]:
    """Eight items of which two are clicked alone, and features that say which."""
    rng = np.random.default_rng(4)
    relevance = np.tile([0.9, 0.5, *[0.01] * 6], n_queries)
    differences = rng.choice([-0.5, 0.5], 8 * n_queries)
    features = np.stack([relevance, differences, rng.random(len(relevance))], axis=1)
    offsets = 8 * np.arange(n_queries + 1)
    theta = np.array([1.0, 0.5, 0.25])
    return ComparedQueries(offsets, relevance, differences, theta), features


def test_a_training_that_knows_the_floor_has_better_lists() -> None:
    """By E[x^2] of the lists that are served, with the floor that both are under."""
    queries, features = planted(12)
    ranker, least, found = ranker_of("neural", 3, (8,)), 0.1, []
    for trained_with in (0.0, least):
        rng = np.random.default_rng(5)
        plan = NetworkPlan(epochs=40, least_first=trained_with)
        start = ranker.initial_parameters(rng=rng)
        weights = trained_policy(ranker, start, features, queries, plan, rng=rng)
        scores, total = ranker.score(weights, features), 0.0
        for q in range(12):
            query = queries.query(q)
            at, _ = served(scores[8 * q : 8 * q + 8], query.differences, least)
            total += second_moment(
                at, query, n_lists=400, rng=np.random.default_rng(6)
            ).value
        found.append(total / 12.0)

    assert found[1] < 0.95 * found[0]


def test_a_floor_that_no_policy_meets_is_refused() -> None:
    """Eight items cannot all come first in a fifth of the lists."""
    queries, features = planted(1)
    ranker = ranker_of("linear", 3)
    with pytest.raises(ValueError, match=r"must be at most 0.125 for 8 items"):
        trained_policy(
            ranker, np.zeros(3), features, queries, NetworkPlan(least_first=0.2),
            rng=np.random.default_rng(1),
        )  # fmt: skip


def test_a_curve_in_ratios_tells_the_same() -> None:
    """E[x^2] and its gradient are those of all multiples of a curve.

    Values are estimated with that curve, so they have its inverse as a factor.
    """
    rng, theta = np.random.default_rng(7), np.array([0.5, 0.3, 0.1])
    relevance, scores = rng.uniform(0.1, 0.5, 5), rng.normal(size=5)
    differences = rng.choice([0.2, -0.2, 0.4], 5)
    whole = second_moment(scores, ComparedQuery(relevance, differences, theta))
    ratios = second_moment(
        scores, ComparedQuery(relevance * 0.5, differences / 0.5, theta / 0.5)
    )

    assert ratios.value == pytest.approx(whole.value, rel=1e-12)
    assert np.allclose(ratios.gradient, whole.gradient, rtol=1e-10)
