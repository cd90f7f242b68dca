"""Queries are drawn again as wholes, and say how well a curve is known."""

import numpy as np
import pytest

from models.bias.bootstrap import (
    FEW_QUERIES,
    SELDOM_KNOWN,
    Resamples,
    resample,
    with_bootstrap,
)
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS
from tests.planted_bias import log_of, with_examination

N_RANKS = 3


def estimate(views: Views) -> FittedCurve:
    """Position bias by its likelihood."""
    return ESTIMATORS["position"].estimate(views, N_RANKS)


def a_log(seed: int = 1, n_items: int = 60) -> Views:
    """Each item a query."""
    rng = np.random.default_rng(seed)
    return log_of(with_examination(N_RANKS), rng, n_items=n_items)


def test_the_same_seed_draws_the_same() -> None:
    """And another draws others."""
    views = a_log()
    drawn = [
        with_bootstrap(views, estimate, np.random.default_rng(s), n_resamples=20)
        for s in (3, 3, 4)
    ]

    assert np.array_equal(drawn[0].alpha_low, drawn[1].alpha_low)
    assert not np.array_equal(drawn[0].alpha_low, drawn[2].alpha_low)


def test_it_agrees_with_the_information_where_clicks_are_independent() -> None:
    """About the same half widths, and the very same ratios."""
    views = a_log(n_items=150)
    informed = estimate(views)
    drawn = with_bootstrap(views, estimate, np.random.default_rng(5), n_resamples=300)
    widths = [np.log(curve.alpha_high / curve.alpha_low) for curve in (informed, drawn)]

    assert np.array_equal(drawn.alpha, informed.alpha)
    assert widths[1][1:] == pytest.approx(widths[0][1:], rel=0.2)
    assert drawn.reasons == ("",) * N_RANKS
    assert (drawn.alpha_low[0], drawn.alpha_high[0]) == (1.0, 1.0)


def test_queries_that_differ_from_one_another_widen_it() -> None:
    """Users of half of the queries look further: information knows nothing of it."""
    rng = np.random.default_rng(7)
    logs = [log_of(with_examination(N_RANKS, power), rng) for power in (0.2, 2.0)]
    columns = [np.concatenate(each) for each in zip(*logs, strict=True)]
    shift = np.repeat([0, 100], [len(log.items) for log in logs])
    views = Views(*columns)._replace(
        queries=columns[0] + shift, items=columns[2] + shift
    )
    drawn = with_bootstrap(views, estimate, rng, n_resamples=100)
    informed = estimate(views)

    wide = np.log(drawn.alpha_high / drawn.alpha_low)
    assert (wide > 2.0 * np.log(informed.alpha_high / informed.alpha_low))[1:].all()


def test_an_interval_by_hand() -> None:
    """Two curves, one apart from the other by a factor of e."""
    drawn = Resamples(np.array([[1.0, 0.2], [1.0, 0.2 * np.e]]), np.zeros((2, 2)))

    assert drawn.log_errors() == pytest.approx([0.0, 0.5**0.5])
    assert drawn.beta_errors().tolist() == [0.0, 0.0]


def test_ends_are_those_of_student_for_so_many_queries() -> None:
    """Of 29 degrees of freedom, and wider by what 30 resampled queries lack."""
    views = a_log(n_items=30)
    found = with_bootstrap(views, estimate, np.random.default_rng(8), n_resamples=30)
    drawn = resample(views, estimate, np.random.default_rng(8), n_resamples=30)
    half = 2.0452296 * (30 / 29) ** 0.5 * drawn.log_errors()

    assert np.log(found.alpha_high / found.alpha) == pytest.approx(half, rel=1e-6)
    assert np.log(found.alpha / found.alpha_low) == pytest.approx(half, rel=1e-6)


def test_a_query_seen_alone_says_nothing_of_queries() -> None:
    """One or a few: ratios stay, and the reason is given."""
    views = a_log(n_items=10)
    views = views._replace(queries=0 * views.queries)
    found = with_bootstrap(views, estimate, np.random.default_rng(1))

    assert np.isfinite(found.alpha).all()
    assert np.isnan(found.alpha_high).all()
    assert found.reasons == (FEW_QUERIES,) * N_RANKS


def test_ranks_that_resamples_seldom_know_have_no_interval() -> None:
    """All that is known of rank 3 is of one query."""
    views = a_log()
    is_kept = (views.ranks < 3) | (views.items == 4)
    few = Views(*(column[is_kept] for column in views))
    found = with_bootstrap(few, estimate, np.random.default_rng(1), n_resamples=40)

    assert np.isfinite(found.alpha[2])
    assert found.reasons == ("", "", SELDOM_KNOWN)
    assert np.isnan(found.alpha_low[2])


def test_ranks_that_are_not_known_stay_so() -> None:
    """With the reason of the estimate."""
    views = a_log()
    near = Views(*(column[views.ranks < 3] for column in views))
    found = with_bootstrap(near, estimate, np.random.default_rng(1), n_resamples=10)

    assert found.reasons == ("", "", "not shown")
    assert np.isnan([found.alpha[2], found.alpha_low[2]]).all()


def test_options_out_of_range_are_refused() -> None:
    """One resample has no spread."""
    with pytest.raises(ValueError, match="resamples must be 2 or more; got 1"):
        resample(a_log(), estimate, np.random.default_rng(1), n_resamples=1)
    with pytest.raises(ValueError, match="confidence must lie in"):
        with_bootstrap(a_log(), estimate, np.random.default_rng(1), confidence=0.0)
