"""Curves with the intervals that estimators have, and what an anchor makes of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS, bias_estimator, fitted
from models.bias.trust_anchor import Anchor, anchored_fit
from rankstream.configuration.curves import ESTIMATORS as CURVES
from rankstream.configuration.curves import PooledCurve
from tests.planted_bias import log_of, with_examination

N_RANKS = 3
VIEWS = log_of(with_examination(N_RANKS), np.random.default_rng(1))


def fit(name, views=VIEWS, others=None, **options):
    """With one seed always."""
    rng = np.random.default_rng(3)
    return fitted(name, views, rng, n_ranks=4, others=others, **options)


def at_one_rank(rank, clicked):
    """An item that was seen there only."""
    one = np.array([-1])
    return Views(
        one, 0 * one, one, np.array([rank]), np.array([9]), np.array([clicked])
    )


def test_services_know_the_estimators_and_their_options_by_name() -> None:
    """They cannot import them."""
    assert [*ESTIMATORS] == [*CURVES]
    for name, curve in CURVES.items():
        assert issubclass(curve, PooledCurve) == ESTIMATORS[name].has_information


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_intervals_of_the_confidence_that_is_asked(
    name: str,
) -> None:
    """Narrower where less is asked; none of a rank that nobody saw."""
    wide, narrow = (fit(name, confidence=x, n_resamples=30) for x in (0.95, 0.5))
    rows = slice(1, N_RANKS)
    assert np.all(wide.alpha_low[rows] < narrow.alpha_low[rows])
    assert np.all(narrow.alpha_high[rows] < wide.alpha_high[rows])
    np.testing.assert_array_equal(wide.alpha, narrow.alpha)
    assert wide.reasons == ("", "", "", "not shown")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documents_seen_at_one_rank_change_reasons_alone(name: str) -> None:
    """A rank that was shown, and clicked, is not one that nobody saw."""
    alone = fit(name, n_resamples=5)
    for clicked, wanted in ((3, "lead|connected"), (0, "no clicks")):
        found = fit(name, others=at_one_rank(4, clicked), n_resamples=5)
        for part in ("alpha", "alpha_low", "beta", "beta_high"):
            np.testing.assert_array_equal(getattr(found, part), getattr(alone, part))
        assert found.reasons[:3] == alone.reasons[:3]
        assert any(each in found.reasons[3] for each in wanted.split("|"))


def test_a_bootstrap_is_left_out_where_there_is_no_curve() -> None:
    """And what is called before each resample may end it."""
    n_called = 0

    def count() -> None:
        nonlocal n_called
        n_called += 1

    assert fit("pivot", at_one_rank(1, 2), on_estimate=count).n_known <= 1
    assert n_called == 0
    fit("pivot", on_estimate=count, n_resamples=7)
    assert n_called == 8  # the estimate, and seven resamples

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit("pivot", on_estimate=stop)


RATIOS = FittedCurve(
    np.array([1.0, 0.8, np.nan, 0.5]),
    np.array([0.0, -0.1, np.nan, 0.0]),
    np.array([1.0, 0.7, np.nan, 0.4]),
    np.array([1.0, 0.9, np.nan, 0.6]),
    np.array([0.0, -0.2, np.nan, -0.1]),
    np.array([0.0, 0.1, np.nan, 0.1]),
    ("", "", "not shown", ""),
)


def test_an_anchor_scales_alpha_and_adds_up_the_ends_of_beta() -> None:
    """By hand; what stands behind a rank without a number is not known either."""
    found = anchored_fit(RATIOS, Anchor(0.5, 0.4))
    np.testing.assert_allclose(found.alpha[:2], [0.5, 0.4])
    np.testing.assert_allclose(found.beta[:2], [0.4, -0.1 + 0.4 * 0.8])
    np.testing.assert_allclose(found.alpha_low[:2], [0.5, 0.35])
    np.testing.assert_allclose(found.alpha_high[:2], [0.5, 0.45])
    np.testing.assert_allclose(found.beta_low[:2], [0.4, -0.2 + 0.4 * 0.7])
    np.testing.assert_allclose(found.beta_high[:2], [0.4, 0.1 + 0.4 * 0.9])
    assert np.isnan(found.alpha[2:]).all()
    assert found.reasons == ("", "", "not shown", "a rank above it is not known")


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.0, 0.7, 1.0])
def test_anchored_intervals_of_beta_cover_at_least_as_promised(
    correlation: float,
) -> None:
    """However much the errors of alpha and beta have to do with each other."""
    rng, errors = np.random.default_rng(4), np.array([0.03, 0.05])
    covariance = np.outer(errors, errors) * [[1.0, correlation], [correlation, 1.0]]
    draws = rng.multivariate_normal([0.8, -0.1], covariance, 4_000)
    alpha, beta = draws.T
    half = 1.96 * errors
    low = (beta - half[1]) + 0.4 * (alpha - half[0])
    high = (beta + half[1]) + 0.4 * (alpha + half[0])
    ends: dict[str, Any] = {
        f"{name}{end}": np.array([first, value[0] + sign * own])
        for name, first, value, own in (
            ("alpha", 1.0, alpha, half[0]),
            ("beta", 0.0, beta, half[1]),
        )
        for end, sign in (("", 0.0), ("_low", -1.0), ("_high", 1.0))
    }
    one = anchored_fit(replace(RATIOS, reasons=("", ""), **ends), Anchor(0.5, 0.4))
    np.testing.assert_allclose([one.beta_low[1], one.beta_high[1]], [low[0], high[0]])
    true = -0.1 + 0.4 * 0.8
    assert ((low <= true) & (true <= high)).mean() > 0.94


def test_an_estimator_that_there_is_not_is_refused() -> None:
    """By name."""
    with pytest.raises(ValueError, match="must be one of position"):
        bias_estimator("em")
