"""The rivals in numpy give the numbers of the kernels."""

import numpy as np
import pytest

from models.click_models.cascade import cascade_of
from models.closed_loops.world import World
from models.learners import multileaving_kernel as kernel
from models.rankers.registry import ranker_of
from rankstream.commands.benchmarks import learners
from rankstream.commands.benchmarks.learners_rival import (
    assignment_of,
    live_mgd_in_numpy,
    live_neural_in_numpy,
    multileaved,
    network_gradient,
    network_of,
    preferences_against_first,
    preferences_of_all,
    sampled_clicks,
)


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
        ranks = np.stack([rng.permutation(15) + 1 for _ in range(6)])
        rows = multileaved(ranks, 10, rng)
        clicks = rng.random(10) < 0.3
        clicks[3] = True
        shares = np.empty(15)
        kernel.fill_shares(shares, 3.0)
        exact = np.empty((int(clicks.sum()), 6))
        shown = np.ascontiguousarray(ranks.T[rows].astype(np.int32))
        kernel.fill_assignment(shown, shares, clicks, exact)
        outcomes = np.empty(2 * len(exact) + 1)
        placed = sampled_clicks(exact, 10_000, rng)
        sampled = preferences_against_first(placed)

        assert preferences_of_all(placed)[:, 0] == pytest.approx(sampled)
        assert assignment_of(ranks, rows, clicks) == pytest.approx(exact, rel=1e-9)
        for candidate in range(1, 6):
            chance = kernel.chance_to_win(exact, candidate, outcomes)
            assert sampled[candidate] == pytest.approx(chance, abs=0.05)


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
        all_pairs=False,
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
