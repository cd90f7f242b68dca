"""Which of position bias and trust bias holds, and when that is not told."""

import numpy as np
import pytest
from scipy.optimize import minimize

from models.arrays import Floats
from models.bias.logged_views import Views
from models.bias.position_alone import NOT_TOLD, TrustTest, trust_test
from models.bias.trust import FEW_AT_FIRST, estimate_trust
from tests.planted_bias import log_of, with_examination, with_trust
from tests.planted_lists import lists_of

K = 4


def answer(views: Views, seed: int = 0) -> TrustTest:
    """By drawn logs of a seed."""
    return trust_test(views, np.random.default_rng(seed), n_ranks=K)


def small(seed: int, *, has_trust: bool) -> Views:
    """Thirty items, about 2,500 clicks."""
    planted = with_trust(K) if has_trust else with_examination(K)
    return log_of(planted, np.random.default_rng(seed), n_items=30, views=150.0)


def test_position_only_logs_are_rejected_at_the_level() -> None:
    """Of 20 at .05; 5 or more come once in 390 times. More logs: a longer run."""
    p = np.array([answer(small(s, has_trust=False), s).p_value for s in range(20)])

    assert (p < 0.05).sum() < 5
    # A test that never rejects would keep any level.
    assert 3 < (p < 0.5).sum() < 17


def test_planted_trust_bias_is_found() -> None:
    """In most logs of 2,500 clicks, and in all of ten times as many."""
    found = [answer(small(s, has_trust=True), s).has_trust_bias for s in range(8)]
    rng = np.random.default_rng(3)
    large = answer(log_of(with_trust(K), rng, n_items=30, views=1_500.0))

    assert sum(found) > 4
    assert large.p_value < 1e-6
    assert large.told().startswith("trust bias holds: position bias alone is rejected")


def test_both_likelihoods_are_those_of_other_algorithms() -> None:
    """Position bias by quasi-Newton steps in logs, trust bias by its own estimate."""
    views = small(1, has_trust=True)
    keep = np.bincount(views.items, views.clicked)[views.items] > 0
    views = Views(*(column[keep] for column in views))
    items, rows = views.items, views.ranks - 1
    n_items, missed = int(items.max()) + 1, views.shown - views.clicked

    def loss(x: Floats) -> float:
        p = np.exp(-np.exp(x[:K])[rows] - np.exp(x[K:])[items])
        return -float(views.clicked @ np.log(p) + missed @ np.log1p(-p))

    found = minimize(loss, np.zeros(K + n_items), method="L-BFGS-B",
                     options={"maxiter": 5_000, "maxfun": 500_000})  # fmt: skip
    beside = estimate_trust(views, n_ranks=K).curve.log_likelihood
    assert beside is not None
    own = answer(views)
    assert own.gain == pytest.approx(2.0 * (beside + found.fun), abs=0.01)


def test_clicks_of_a_list_that_go_together_do_not_reject() -> None:
    """Users who click all of a list, or a third of it."""
    found = [
        answer(lists_of(with_examination(K), np.random.default_rng(s)), s)
        for s in range(4)
    ]

    assert sum(each.has_trust_bias for each in found) < 3
    assert all(each.scale >= 1.0 for each in found)


def test_queries_that_are_counted_twice_are_told_by_the_scale() -> None:
    """A query of ten times the same clicks says what it says once."""
    views = lists_of(with_examination(K), np.random.default_rng(1), n_lists=40)
    often = views._replace(shown=10 * views.shown, clicked=10 * views.clicked)
    once, ten = answer(views), answer(often)

    assert ten.scale > 5.0 * once.scale
    assert not ten.has_trust_bias


def test_what_is_not_told_is_not_tested() -> None:
    """Few clicks, one rank, nothing at all; and the words say why."""
    rng = np.random.default_rng(0)
    few = answer(log_of(with_trust(K), rng, n_items=4, views=30.0))
    one = np.array([1])
    alone = answer(Views(one, one, one, one, 100 * one, 50 * one))

    for found in (few, alone):
        assert np.isnan(found.p_value)
        assert not found.has_trust_bias
        assert found.told() == NOT_TOLD + found.reason
    assert "clicks" in few.reason
    assert "40 views" in alone.reason
    assert "at rank 1" in FEW_AT_FIRST


def test_the_same_seed_says_the_same() -> None:
    """To the bit."""
    views = small(2, has_trust=False)
    assert answer(views, 5) == answer(views, 5)
    assert answer(views, 5).told() == answer(views, 5).told()
