"""The rivals in numpy give the numbers of the kernels."""

import numpy as np
import pytest

from models.click_models.cascade import cascade_of
from models.learners import multileaved_lists as lists
from models.learners import multileaved_verdicts as verdicts
from models.rankers.registry import ranker_of
from rankstream.lab.benchmarks import learners
from rankstream.lab.benchmarks.learners_rival import (
    assignment_of,
    live_mgd_in_numpy,
    live_neural_in_numpy,
    multileaved,
    network_gradient,
    network_of,
    sampled_teams,
    scores_against_first,
    scores_of_all,
    shares_of,
)
from rankstream.lab.closed_loops.world import World


def test_the_network_is_the_ranker() -> None:
    """Scores and gradients of a weighted sum."""
    ranker, rng = ranker_of("neural", 5, (7,)), np.random.default_rng(1)
    parameters = rng.normal(size=ranker.n_parameters)
    features, coefficients = rng.normal(size=(4, 5)), rng.normal(size=4)
    network = network_of(parameters, 5, 7)
    active = 1.0 / (1.0 + np.exp(-(features @ network.weights + network.biases)))

    assert active @ network.last == pytest.approx(ranker.score(parameters, features))
    assert network_gradient(network, features, active, coefficients) == pytest.approx(
        ranker.accumulate(parameters, features, coefficients)
    )


def test_assignments_and_preferences_are_those_of_the_kernel() -> None:
    """Sampled preferences lie around the exact ones."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        scores = rng.normal(size=(6, 15))
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
        by_ranker = shares_of(scores)
        rows = multileaved(by_ranker, 10, rng)
        clicks = rng.random(10) < 0.3
        clicks[3] = True
        shares = np.empty(15)
        lists.fill_shares(shares, 3.0)
        exact = np.empty((int(clicks.sum()), 6))
        shown = np.ascontiguousarray(ranks.T[rows].astype(np.int32))
        verdicts.fill_assignment(shown, shares, clicks, exact)
        outcomes = np.empty(2 * len(exact) + 1)
        teams = sampled_teams(exact, 10_000, rng)
        sampled = scores_against_first(teams, 6) / 10_000

        assert by_ranker == pytest.approx(ranks**-3.0)
        assert len({*rows.tolist()}) == 10
        assert assignment_of(by_ranker, rows, clicks) == pytest.approx(exact, rel=1e-9)
        for candidate in range(1, 6):
            chance = verdicts.chance_to_win(exact, candidate, outcomes)
            assert sampled[candidate] == pytest.approx(chance, abs=0.05)


def test_teams_are_drawn_with_their_chances() -> None:
    """Cells and searches give every ranker its share, one of nearly none included."""
    rng = np.random.default_rng(5)
    chances = rng.dirichlet(np.full(50, 0.3), size=2)
    teams = sampled_teams(chances, 200_000, rng)

    for own, expected in zip(teams, chances, strict=True):
        counts = np.bincount(own, minlength=50)
        errors = counts - 200_000 * expected
        scale = np.sqrt(200_000 * expected * (1.0 - expected)) + 1.0
        assert np.abs(errors / scale).max() < 4.5


def test_lean_counts_are_those_of_all_differences() -> None:
    """The mean sign of every difference, with all samples written out."""
    rng = np.random.default_rng(6)
    for n_clicks in range(1, 8):
        teams = rng.integers(4, size=(n_clicks, 500)).astype(np.uint8)
        placed = (teams[:, :, None] == np.arange(4)).sum(axis=0)
        expected = np.sign(placed - placed[:, :1]).sum(axis=0)

        assert scores_against_first(teams, 4).tolist() == expected.tolist()
        assert scores_of_all(teams, 4).tolist() == expected.tolist()


def test_rivals_learn() -> None:
    """Both show that the first feature counts."""
    rng = np.random.default_rng(3)
    features = rng.random((60, 3)).astype(np.float32)
    world = World(features, (features[:, 0] > 0.6).astype(int), np.arange(0, 61, 10))
    users = cascade_of("perfect", 2)
    mgd = live_mgd_in_numpy(
        world,
        users,
        np.zeros(3),
        9,
        300,
        counted=scores_of_all,
        cutoff=5,
        learning_rate=0.1,
        rng=rng,
    )
    ranker = ranker_of("neural", 3, (4,))
    start = ranker.initial_parameters(rng=rng)
    neural = live_neural_in_numpy(
        world, users, start, 4, 2_000, cutoff=5, learning_rate=0.5, rng=rng
    )

    assert mgd[0] > 2.0 * np.abs(mgd[1:]).max()
    scores = ranker.score(neural, features.astype(np.float64))
    assert np.corrcoef(scores, features[:, 0])[0, 1] > 0.9


def test_a_quick_run_has_every_figure() -> None:
    """Names and numbers, none of them to be quoted."""
    figures = learners.measure(quick=True)

    assert len(figures) == 5 + len(learners.LISTS) * len(learners.CANDIDATES)
    for figure in figures:
        assert figure["value"] > 0.0
        assert figure["ratio"] > 0.0
