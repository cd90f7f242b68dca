"""The rival in numpy trains the same ranker, and the parts read what they say."""

import numpy as np
import pytest

from models.losses.lambda_loss import truncated_lambda
from models.losses.registry import LOSSES
from models.rankers.registry import ranker_of
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.benchmarks.trainings.training import (
    CUTOFF,
    N_FEATURES,
    N_ITEMS,
    generated,
    measure,
)
from rankstream.lab.benchmarks.trainings.training_rival import (
    loss_in_numpy,
    train_in_numpy,
)
from tests.models.training.chunks import train


def test_both_find_the_same_loss() -> None:
    """And slopes, of queries with unknown values and scores far apart."""
    rng = np.random.default_rng(1)
    for number in range(200):
        n = int(rng.integers(1, 60))
        scores = rng.standard_normal(n) * (1.0 + number % 3 * 20.0)
        values, is_kept = rng.standard_normal(n), rng.random(n) < 0.8
        cutoff = int(rng.integers(1, 12))
        loss, slopes = loss_in_numpy(scores, values, is_kept, cutoff)
        ours = truncated_lambda(scores, values, is_kept, cutoff)

        assert loss == pytest.approx(ours.value, rel=1e-9, abs=1e-12)
        assert slopes == pytest.approx(ours.gradient, rel=1e-9, abs=1e-12)


def test_both_train_the_same_ranker() -> None:
    """Weights, losses and held-out gains, epoch after epoch."""
    training, held_out = generated(250, rng=np.random.default_rng(2))
    plan = TrainingPlan(CUTOFF, 4, patience=4)
    start = np.random.default_rng(3).standard_normal(N_FEATURES)
    ours = train(start, training.chunks, held_out.chunks, plan)
    weights, epochs = train_in_numpy(start, training.chunks, held_out.chunks, plan)

    assert weights == pytest.approx(ours.weights, rel=1e-6, abs=1e-8)
    assert [epoch[1:] for epoch in ours.epochs[1:]] == [
        pytest.approx(epoch, rel=1e-6) for epoch in epochs
    ]


def test_both_train_the_same_network() -> None:
    """Through a layer of sigmoid units, from the same start."""
    training, held_out = generated(150, rng=np.random.default_rng(2))
    plan = TrainingPlan(CUTOFF, 3, patience=3, learning_rate=0.03)
    ranker = ranker_of("neural", N_FEATURES, [6])
    start = ranker.initial_parameters(rng=np.random.default_rng(3))
    ours = train_ranker(ranker, start, training.chunks, held_out.chunks, plan)
    weights, epochs = train_in_numpy(start, training.chunks, held_out.chunks, plan, 6)

    assert ours.best_epoch > 0
    assert weights == pytest.approx(ours.weights, rel=1e-6, abs=1e-8)
    assert [epoch[1:] for epoch in ours.epochs[1:]] == [
        pytest.approx(epoch, rel=1e-6) for epoch in epochs
    ]


def test_generated_queries_can_be_learned_from() -> None:
    """Features within [0, 1], some values unknown, and a ranker far above chance."""
    training, held_out = generated(1_500, rng=np.random.default_rng(2))
    plan = TrainingPlan(CUTOFF, 10)
    found = train(np.zeros(N_FEATURES), training.chunks, held_out.chunks, plan)
    chunk = training.chunks[0]

    assert len(held_out.grades) == 300 * N_ITEMS
    assert 0.0 <= chunk.features.min() < chunk.features.max() <= 1.0
    assert 0.5 < chunk.is_kept.mean() < 1.0
    assert held_out.ndcg(found.weights) > held_out.ndcg(np.zeros(N_FEATURES)) + 0.25


def test_a_short_run_measures_all_parts() -> None:
    """None of its figures is void."""
    figures = measure(quick=True)

    assert len(figures) == 7 + len(LOSSES) + 2
    assert all(figure["ratio"] is not None for figure in figures)
    assert all(figure["value"] > 0.0 for figure in figures)
    assert all(figure["unit"] in {"s of CPU", "NDCG"} for figure in figures)
    names = [figure["name"] for figure in figures if figure["rival"] is not None]
    assert len(names) == 4
    assert all("over numpy" in name for name in names)
