"""Real clicks: the curve falls, and halves of the users agree."""

import numpy as np
import pytest
from scipy.special import ndtri

from models.bias.bootstrap import resample, with_bootstrap
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS
from tests.planted_bias import SESSIONS, sessions_views

N_RANKS = 10

pytestmark = pytest.mark.skipif(
    not SESSIONS.exists(), reason=f"{SESSIONS} is not on this machine"
)


@pytest.fixture(scope="module")
def views() -> Views:
    """All pages, of classes of grade and type."""
    return sessions_views(N_RANKS)


def estimate(views: Views) -> FittedCurve:
    """Position bias by its likelihood."""
    return ESTIMATORS["position"].estimate(views, N_RANKS)


def halves(views: Views) -> tuple[Views, Views]:
    """Every other user, by their numbers."""
    _, numbers = np.unique(views.queries, return_inverse=True)
    first, second = (
        Views(*(column[numbers % 2 == side] for column in views)) for side in (0, 1)
    )
    return first, second


def test_the_curve_falls_with_rank_and_is_known(views: Views) -> None:
    """By users drawn again; the half width at rank 2 is .15 at most."""
    rng = np.random.default_rng(1)
    curve = with_bootstrap(views, estimate, rng, n_resamples=60)

    assert curve.reasons == ("",) * N_RANKS
    assert (np.diff(curve.alpha) < 0.0).all()
    assert (curve.alpha_high[1] - curve.alpha_low[1]) / 2.0 <= 0.15
    assert curve.alpha[1] == pytest.approx(0.495, abs=0.001)


def test_halves_of_the_users_agree(views: Views) -> None:
    """At ranks 1 to 5 together, 95 %: each of four may be off at .05 / 4."""
    both = halves(views)
    rng = np.random.default_rng(2)
    logs = [np.log(estimate(half).alpha[1:5]) for half in both]
    drawn = [resample(half, estimate, rng, n_resamples=60) for half in both]
    errors = np.hypot(*(each.log_errors()[1:5] for each in drawn))

    assert (np.abs(logs[0] - logs[1]) <= ndtri(1 - 0.025 / 4) * errors).all()
