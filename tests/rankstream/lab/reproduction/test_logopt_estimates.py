"""Moments of estimates, against all lists and clicks; and errors that follow."""

import itertools

import numpy as np
import pytest

from models.arrays import Floats
from models.interleaving.method import NO_ONE, Method, Shown
from models.interleaving.optimized import Optimized
from models.interleaving.probabilistic import Probabilistic
from models.interleaving.team_draft import TeamDraft
from models.logging_policy.compared_query import ComparedQuery
from rankstream.lab.reproduction.logopt.estimates import (
    errors_of,
    fill_propensities,
    of_lists,
    of_policy,
)
from rankstream.lab.reproduction.logopt.interleaved import preference_of
from rankstream.lab.reproduction.logopt.logged_clicks import Counts, add_clicks
from tests.laws.enumerated_lists import clicks_of, lists_of, propensities_of

THETA = np.array([1.0, 0.5, 0.4])
OFFSETS = np.array([0, 4, 6])
"""A query of four items, and one that is shorter than users look."""


def enumerated(scores: Floats, zeta: Floats, weights: Floats) -> tuple[float, float]:
    """Mean and mean square over queries, lists and clicks."""
    mean, square = 0.0, 0.0
    for begin, end in itertools.pairwise(OFFSETS.tolist()):
        theta = THETA[: end - begin]
        query = ComparedQuery(zeta[begin:end], weights[begin:end], theta)
        for each in lists_of(scores[begin:end], len(theta)):
            for clicks, chance in clicks_of(each.rows, query):
                x = float(weights[begin:end][each.rows[clicks]].sum())
                mean += 0.5 * each.chance * chance * x
                square += 0.5 * each.chance * chance * x**2
    return mean, square


def test_moments_of_a_policy_are_those_of_all_clicks() -> None:
    """Whatever clicks count, whether by the right propensities or not."""
    rng = np.random.default_rng(1)
    scores, zeta, weights = rng.normal(size=6), rng.random(6), rng.normal(size=6)
    found = of_policy(scores, zeta, weights, OFFSETS, THETA, rng=rng)
    mean, square = enumerated(scores, zeta, weights)

    assert found.mean == pytest.approx(mean, rel=1e-9)
    assert found.square == pytest.approx(square, rel=1e-9)
    assert found.variance == pytest.approx(square - mean**2, rel=1e-9)
    assert found.squared_error(0.3) == pytest.approx(square - 0.6 * mean + 0.09)


def test_moments_of_two_lists_are_those_of_a_policy_that_is_sure() -> None:
    """Half of each, clicks weighed by the list that was shown."""
    rng = np.random.default_rng(2)
    zeta, weights = rng.random(6), rng.normal(size=(2, 6))
    sure = 60.0 * np.stack([np.arange(6.0), -np.arange(6.0)])
    looked = np.empty((2, 6))
    for scores, row in zip(sure, looked, strict=True):
        fill_propensities(scores, OFFSETS, THETA, row)
    found = of_lists(looked, zeta, weights, OFFSETS)
    each = np.array([enumerated(sure[row], zeta, weights[row]) for row in range(2)])

    assert looked[0, :4] == pytest.approx(propensities_of(sure[0, :4], THETA))
    assert [found.mean, found.square] == pytest.approx(each.mean(axis=0), rel=1e-9)


@pytest.mark.parametrize("truth", [0.4, -0.4])
@pytest.mark.parametrize("mean", [0.4, 0.1, -0.2])
def test_errors_are_those_of_a_normal_estimate(mean: float, truth: float) -> None:
    """By summing over its density."""
    deviation = 0.3
    grid = np.linspace(-4.0, 4.0, 80_001)
    density = np.exp(-0.5 * ((grid - mean) / deviation) ** 2)
    density /= density.sum()
    found = errors_of(mean, deviation**2, truth)

    assert found.binary == pytest.approx(density[grid * truth < 0.0].sum(), abs=1e-4)
    assert found.absolute == pytest.approx(density @ np.abs(grid - truth), abs=1e-6)


RANKINGS = np.array([[0, 1, 2], [2, 0, 1]])
ZETA = np.array([0.9, 0.1, 0.4])


@pytest.mark.parametrize(
    ("name", "method"),
    [("team-draft", TeamDraft()), ("probabilistic", Probabilistic(tau=4.0))],
)
def test_preferences_are_those_of_drawn_lists_and_clicks(
    name: str, method: Method
) -> None:
    """Half of them, where the other query has equal lists, which prefer nobody."""
    rng = np.random.default_rng(3)
    equal = RANKINGS[[0, 0]]
    found = preference_of(name, [RANKINGS, equal], [ZETA, ZETA], THETA, rng=rng)
    signs = []
    for _ in range(4_000):
        shown, teams = method.combine(RANKINGS, 3, rng=rng)
        clicks = rng.random(3) < THETA * ZETA[shown]
        signs.append(method.infer(Shown(RANKINGS, shown, teams), clicks)[0, 1])
    error = 0.5 * np.std(signs) / np.sqrt(len(signs))

    allowed = 4.5 * float(np.hypot(error, found.error))
    assert found.mean == pytest.approx(0.5 * np.mean(signs), abs=allowed)
    assert found.is_told
    assert not preference_of(name, [equal], [ZETA], THETA, rng=rng).is_told


def test_the_preference_of_optimized_interleaving_is_exact() -> None:
    """Over its lists by their chances, and all clicks on each."""
    rng, method, mean = np.random.default_rng(3), Optimized(), 0.0
    lists, chances, _ = method.distribution(RANKINGS, 3, rng=rng)
    query = ComparedQuery(ZETA, np.zeros(3), THETA)
    for rows, share in zip(lists, chances, strict=True):
        for clicks, chance in clicks_of(rows, query):
            shown = Shown(RANKINGS, rows, NO_ONE)
            mean += share * chance * method.infer(shown, clicks)[0, 1]
    found = preference_of("optimized", [RANKINGS], [ZETA], THETA, rng=rng)

    assert found == pytest.approx((mean, 0.0), abs=1e-12)
    assert abs(mean) > 0.01


def test_counts_of_clicks_tell_relevance_and_theta() -> None:
    """Within what so many lists tell; and what nothing is known of is as it was."""
    rng = np.random.default_rng(4)
    zeta = np.array([0.9, 0.3, 0.5, 0.1, 0.8, 0.4])
    counts = Counts(np.zeros((6, 3)), np.zeros((6, 3)))
    otherwise = np.array([1.0, 0.7, 0.6])
    assert counts.examination(otherwise).tolist() == otherwise.tolist()
    assert not counts.relevance(THETA).any()
    add_clicks(np.zeros(6), zeta, OFFSETS, THETA, 40_000, *counts, rng)

    assert counts.shown[:4].sum(axis=0) == pytest.approx(20_000, rel=0.03)
    assert counts.shown[4:, 2].sum() == 0.0
    assert counts.examination(otherwise) == pytest.approx(THETA, abs=0.03)
    assert counts.relevance(THETA) == pytest.approx(zeta, abs=0.03)
