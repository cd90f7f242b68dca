"""Losses are those of their definitions, slopes are their own, and bounds bound."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from models.losses.registry import LOSSES
from tests.laws.losses_by_definition import (
    DEFINITIONS,
    METRICS,
    delta,
    discount,
    ranks_of,
)

Floats = npt.NDArray[np.float64]

BOUNDS = [
    (metric, f"{metric}-{name}")
    for metric in METRICS
    for name in ("linear", "logistic")
]


def cases(
    name: str, seed: int, spread: float
) -> tuple[Floats, Floats, npt.NDArray[np.bool_], int]:
    """A query; scores lie apart, weights are also 0 and negative, some unknown."""
    rng = np.random.default_rng([seed, len(name)])
    is_enumerated = name in ("policy-gradient", "proximal")
    n = int(rng.integers(1, 6 if is_enumerated else 9))
    scores = (rng.permutation(n) + rng.random(n) / 4.0) * spread / n
    weights = rng.normal(size=n) * (rng.random(n) < 0.7)
    where = rng.random(n) < 0.8
    weights[~where] = np.nan
    return scores, weights, where, int(rng.integers(1, n + 2))


def test_every_loss_has_a_definition() -> None:
    """One that is added is held to the laws below."""
    assert set(DEFINITIONS) == set(LOSSES)


@pytest.mark.parametrize("spread", [0.5, 6.0, 300.0])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_values_are_those_of_the_definition(name: str, spread: float) -> None:
    """Also of equal scores, and far beyond what exponentials hold."""
    for seed in range(25):
        scores, weights, where, cutoff = cases(name, seed, spread)
        for scored in (scores, np.round(scores), np.zeros(len(scores))):
            found = LOSSES[name].loss(scored, weights, where, cutoff)

            assert found.value == pytest.approx(
                DEFINITIONS[name](scored, weights, where, cutoff), rel=1e-9, abs=1e-11
            )


@pytest.mark.parametrize("spread", [0.5, 6.0, 30.0])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_slopes_are_those_of_finite_differences(name: str, spread: float) -> None:
    """Of the definition, at ranks that small steps do not change."""
    steepest = 0.0
    for seed in range(15):
        scores, weights, where, cutoff = cases(name, seed, spread)
        found = LOSSES[name].loss(scores, weights, where, cutoff).gradient
        steepest = max(steepest, float(np.abs(found).max()))
        for row, by in enumerate(1e-5 * np.eye(len(scores))):
            rise = DEFINITIONS[name](scores + by, weights, where, cutoff) - DEFINITIONS[
                name
            ](scores - by, weights, where, cutoff)

            assert found[row] == pytest.approx(rise / 2e-5, rel=1e-5, abs=2e-7)
    assert steepest > 1e-4


@pytest.mark.parametrize("name", DEFINITIONS)
def test_only_differences_of_scores_count(name: str) -> None:
    """Slopes add up to 0, and so they do where no value is known of many items."""
    for seed in range(20):
        scores, weights, where, cutoff = cases(name, seed, 6.0)
        found = LOSSES[name].loss(scores, weights, where, cutoff)
        moved = LOSSES[name].loss(scores + 64.0, weights, where, cutoff)

        assert found.gradient.sum() == pytest.approx(0.0, abs=1e-9)
        assert moved.value == pytest.approx(found.value, rel=1e-9, abs=1e-9)


def small_queries() -> list[tuple[Floats, npt.NDArray[np.bool_], int]]:
    """All scores of a grid with ties, what is known of four items, and all cutoffs."""
    known = [(1, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 0)]
    return [
        (np.array(scores), np.array(where, bool), cutoff)
        for scores in itertools.product([-2.0, 0.0, 0.4], repeat=4)
        for where in known
        for cutoff in (1, 2, 5)
    ]


@pytest.mark.parametrize(("metric", "name"), BOUNDS)
def test_bounds_bound_their_metric(metric: str, name: str) -> None:
    """No weight below 0, or for ARP any; and somewhere they are close."""
    weights = [np.array([0.0, 1.0, 2.0, 0.5]), np.array([0.0, 0.0, 0.0, 1.0])]
    if metric == "arp":
        weights += [np.array([1.0, -1.0, 0.0, 2.0]), -np.ones(4)]
    nearest = np.inf
    for scores, where, cutoff in small_queries():
        for weighed in weights:
            found = LOSSES[name].loss(scores, weighed, where, cutoff).value
            above = found - METRICS[metric](scores, weighed, where, cutoff)
            nearest = min(nearest, above)

            assert above >= -1e-12
    # Where all is as certain as can be; a logistic function is never quite.
    assert nearest < (1e-9 if name.endswith("linear") else 0.2)


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name.startswith(("dcg", "prec", "policy"))]
)
def test_values_without_bias_give_a_loss_without_bias(name: str) -> None:
    """It is linear in them: the mean over what is drawn is the loss of the mean."""
    rng = np.random.default_rng(8)
    loss, known = LOSSES[name].loss, np.ones(5, bool)
    for _ in range(10):
        scores, drawn = 2.0 * rng.normal(size=5), rng.normal(size=(4, 5))
        each = [loss(scores, weights, known, 2) for weights in drawn]
        mean = loss(scores, drawn.mean(axis=0), known, 2)

        assert np.mean([one.value for one in each]) == pytest.approx(mean.value)
        assert np.mean([one.gradient for one in each], axis=0) == pytest.approx(
            mean.gradient, abs=1e-12
        )


def lost(scores: Floats, gains: Floats, cutoff: float) -> float:
    """What discounts take from gains, all ranks counted that have none left."""
    ranks = ranks_of(scores)
    return math.fsum(
        gain * (1.0 - discount(rank, cutoff))
        for gain, rank in zip(gains.tolist(), ranks, strict=True)
    )


def in_common(scores: Floats, gains: Floats, cutoff: float) -> float:
    """Sum over pairs of delta times the smaller gain."""
    ranks = ranks_of(scores)
    return math.fsum(
        delta(ranks[n], ranks[m], cutoff) * min(gains[n], gains[m])
        for n, m in itertools.combinations(range(len(ranks)), 2)
    )


@pytest.mark.parametrize("name", ["lambda-loss", "lambda-loss-at-k"])
def test_lambda_loss_bounds_what_is_lost_up_to_what_pairs_share(name: str) -> None:
    """And without that part it does not."""
    rng = np.random.default_rng(3)
    broken = 0
    for scores, _, cutoff in small_queries():
        gains = rng.random(4) * (rng.random(4) < 0.7)
        k = cutoff if name.endswith("k") else math.inf
        found = LOSSES[name].loss(scores, gains, np.ones(4, bool), cutoff).value
        less = lost(scores, gains, k)

        assert less <= found + in_common(scores, gains, k) + 1e-12
        broken += less > found + 1e-12
    assert broken > 20


@pytest.mark.parametrize("cutoff", [1, 2, 3, 4, 9])
def test_lambda_rank_bounds_what_the_best_order_gains(cutoff: int) -> None:
    """Of the known items at the ranks that they have; also of negative values."""
    rng = np.random.default_rng(cutoff)
    least = np.inf
    for _ in range(150):
        n = int(rng.integers(2, 6))
        scores, gains = 3.0 * rng.normal(size=n), rng.normal(size=n)
        where = rng.random(n) < 0.8
        falling = [
            discount(rank, cutoff)
            for rank, is_known in zip(ranks_of(scores), where, strict=True)
            if is_known
        ]
        have = float(np.dot(falling, gains[where]))
        best = float(np.dot(np.sort(falling), np.sort(gains[where])))
        found = LOSSES["lambda-rank"].loss(scores, gains, where, cutoff).value
        least = min(least, found - (best - have))

        assert best - have <= found + 1e-12
    assert least < 0.01


def test_slopes_of_a_cut_bound_are_those_without_a_cut() -> None:
    """The cut moves values alone (L:3295 of the thesis)."""
    for seed in range(20):
        for step in ("linear", "logistic"):
            given = cases("dcg", seed, 3.0)
            cut = LOSSES[f"dcg-at-k-{step}"].loss(*given)
            whole = LOSSES[f"dcg-{step}"].loss(*given)

            assert cut.gradient.tolist() == whole.gradient.tolist()
