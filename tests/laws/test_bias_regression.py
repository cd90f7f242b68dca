"""Bias where each item stands at one rank, from what items have in common."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from models.bias.examination import estimate_examination
from models.bias.logged_views import Views
from models.bias.regression import estimate_by_class, estimate_by_features
from tests.planted_bias import featured_log, log_of, naive_ratios, with_examination

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("views", [60.0, 2_000.0])
def test_each_item_a_class_is_the_maximum_of_the_position_based_model(
    views: float, seed: int
) -> None:
    """Expectation maximisation ends where Newton's method does, and so do intervals."""
    rng = np.random.default_rng(seed)
    log = log_of(with_examination(6), rng, n_items=30, views=views)
    found = estimate_by_class(log, range(30), n_ranks=6)
    expected = estimate_examination(*log[2:], n_ranks=6)
    likelihoods = found.log_likelihoods

    assert found.curve.alpha == pytest.approx(expected.ratios, abs=1e-4)
    assert found.curve.alpha == pytest.approx(expected.ratios, abs=1e-6)
    assert (np.diff(likelihoods) >= -1e-11 * abs(likelihoods[-1])).all()
    if set(expected.reasons) == {""}:
        assert found.curve.alpha_low == pytest.approx(expected.low, rel=0.02)
        assert found.curve.alpha_high == pytest.approx(expected.high, rel=0.02)


def test_one_hot_features_are_classes() -> None:
    """Logistic and linear relevance of a class is any number."""
    rng = np.random.default_rng(5)
    classes = rng.integers(6, size=80)
    ranks, relevance = rng.integers(1, 5, size=80), np.linspace(0.2, 0.8, 6)
    shown = np.full(80, 500)
    clicked = rng.binomial(shown, relevance[classes] * ranks**-0.7)
    items = np.arange(80)
    log = Views(items, 0 * items, items, ranks, shown, clicked)
    of_classes = estimate_by_class(log, classes, n_ranks=4).curve
    for is_linear in (False, True):
        table = np.eye(6)[classes]
        found = estimate_by_features(log, table, n_ranks=4, is_linear=is_linear).curve
        assert found.alpha == pytest.approx(of_classes.alpha, abs=1e-5)
        assert found.alpha_low == pytest.approx(of_classes.alpha_low, rel=1e-3)
        assert set(found.reasons) == {""}


@pytest.mark.parametrize(
    ("is_linear", "first"),
    [(True, 0.9), (False, 0.9), (False, 1.15)],
    ids=["linear", "logistic", "logistic, the first rank at its bound"],
)
def test_it_is_the_maximum_that_another_algorithm_finds(
    is_linear: bool, first: float
) -> None:
    """Of the likelihood written down again, from elsewhere; and so are its errors."""
    rng = np.random.default_rng(7)
    features = rng.uniform(-1.0, 1.0, size=(60, 2))
    ranks = np.clip(np.rint(2.5 - features[:, 0] + rng.normal(size=60)), 1, 4)
    relevance = 0.5 + 0.25 * features[:, 0] - 0.1 * features[:, 1]
    theta, shown = first * ranks**-0.6, np.full(60, 2_000)
    clicked = rng.binomial(shown, theta * relevance)
    items = np.arange(60)
    log = Views(items, 0 * items, items, ranks.astype(np.int64), shown, clicked)
    found = estimate_by_features(log, features, n_ranks=4, is_linear=is_linear)
    table, rows = np.column_stack([np.ones(60), features]), log.ranks - 1

    def loss(point: Floats) -> tuple[float, Floats]:
        score = table @ point[4:]
        gamma = score if is_linear else 1.0 / (1.0 + np.exp(-score))
        bend = 1.0 / gamma if is_linear else 1.0 - gamma
        p = np.exp(point[:4])[rows] * gamma
        if gamma.min() <= 0.0 or p.max() >= 1.0:
            return 1e12, np.zeros(len(point))
        total = clicked @ np.log(p) + (shown - clicked) @ np.log1p(-p)
        each = clicked - (shown - clicked) * p / (1.0 - p)
        slope = np.concatenate([np.bincount(rows, each, 4), table.T @ (each * bend)])
        return -float(total), -slope

    point = np.concatenate([np.full(4, -0.5), [0.4 if is_linear else 0.0, 0.0, 0.0]])
    for _ in range(6):
        point = minimize(
            loss, point, jac=True, method="L-BFGS-B",
            bounds=[(None, 0.0)] * 4 + [(None, None)] * 3,
            options={"ftol": 1e-16, "gtol": 1e-9, "maxiter": 20_000, "maxcor": 30},
        ).x  # fmt: skip

    assert -found.log_likelihoods[-1] <= loss(point)[0] * (1.0 + 1e-9)
    assert found.curve.alpha == pytest.approx(np.exp(point[:4] - point[0]), abs=1e-4)

    def chances(point: Floats) -> Floats:
        score = table @ point[4:]
        gamma = score if is_linear else 1.0 / (1.0 + np.exp(-score))
        return np.asarray(np.exp(point[:4])[rows] * gamma)

    p, steps = chances(point), 1e-6 * np.eye(len(point))
    slopes = np.array([(chances(point + e) - chances(point - e)) / 2e-6 for e in steps])
    information = (slopes * shown / (p * (1.0 - p))) @ slopes.T
    # An examination of 1 cannot move; without one, linear relevance has no scale.
    free = np.flatnonzero(np.append(point[:4] < 0.0, [True] * 3))
    inverse = np.zeros_like(information)
    inverse[np.ix_(free, free)] = np.linalg.pinv(information[np.ix_(free, free)], 1e-9)
    own = inverse.diagonal()[:4] - 2.0 * inverse[0, :4] + inverse[0, 0]
    half = np.log(found.curve.alpha_high / found.curve.alpha)
    assert half == pytest.approx(1.959964 * np.sqrt(own), rel=1e-3, abs=1e-9)


def test_planted_examination_is_recovered_where_each_item_has_one_rank() -> None:
    """No item is seen twice, so counts alone refuse; click rates are wrong by .1."""
    planted = with_examination(5)
    rng = np.random.default_rng(11)
    features = rng.normal(size=(1_000, 3))
    log = featured_log(planted, features, rng)
    found = estimate_by_features(log, features, n_ranks=5)
    alone = estimate_examination(*log[2:], n_ranks=5)

    assert np.abs(found.curve.alpha - planted.ratios).max() < 0.03
    assert set(found.curve.reasons) == {""}
    assert np.isnan(alone.ratios).all()
    assert np.abs(naive_ratios(log, 5) - planted.ratios).max() > 0.1
    likelihoods = found.log_likelihoods
    assert (np.diff(likelihoods) >= -1e-11 * abs(likelihoods[-1])).all()


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % over 60 logs, over all ranks; 1,000 rank by rank are a longer run."""
    planted, holds = with_examination(4), np.zeros((60, 3))
    features = np.random.default_rng(9).normal(size=(120, 2))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        log = featured_log(planted, features, rng)
        curve = estimate_by_features(log, features, n_ranks=4).curve
        holds[seed] = (
            (curve.alpha_low <= planted.ratios) & (planted.ratios <= curve.alpha_high)
        )[1:]

    assert abs(holds.mean() - 0.95) < 0.05
