"""Trust bias: what clicks identify is found, whoever looks for it, and no more."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from models.bias import trust as public
from models.bias.expectation_maximisation import Turn, ascend
from models.bias.logged_views import Views, cells_of
from models.bias.trust import TrustFit, estimate_trust
from models.bias.trust_anchor import Anchor, anchored
from models.click_models.trust_bias import trust_bias_of
from tests.planted_bias import (
    Planted,
    log_of,
    naive_ratios,
    relevances,
    with_examination,
    with_trust,
)

Floats = npt.NDArray[np.float64]

K = 4


def small_log(seed: int, **options: float) -> Views:
    """Of few items, all of whose relevances stay inside."""
    rng = np.random.default_rng(seed)
    return log_of(with_trust(K), rng, n_items=8, views=3_000.0, **options)


def expected_log(planted: Planted, relevance: Floats, n: float = 1e9) -> Views:
    """As many clicks as are expected of n lists with each item at each rank."""
    k = len(planted.alpha)
    items, rows = np.divmod(np.arange(len(relevance) * k), k)
    chance = planted.alpha[rows] * relevance[items] + planted.beta[rows]
    shown = np.full(len(items), int(n))
    clicked = np.rint(n * chance).astype(np.int64)
    return Views(items, 0 * items, items, rows + 1, shown, clicked)


class Oracle:
    """The likelihood in units of the first rank, written down a second time."""

    def __init__(self, views: Views) -> None:
        self.views = views
        self.n_items = int(views.items.max()) + 1

    def parts(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Alpha and beta of all ranks, and q of items."""
        alpha, beta = point[: K - 1], point[K - 1 : 2 * K - 2]
        return np.r_[1.0, alpha], np.r_[0.0, beta], point[2 * K - 2 :]

    def loss(self, point: Floats) -> float:
        """The negative log likelihood, infinite outside of probabilities."""
        alpha, beta, q = self.parts(point)
        rows, v = self.views.ranks - 1, self.views
        p = alpha[rows] * q[v.items] + beta[rows]
        if not ((p > 0) & (p < 1)).all():
            return np.inf
        return -float(v.clicked @ np.log(p) + (v.shown - v.clicked) @ np.log1p(-p))

    def slope(self, point: Floats) -> Floats:
        """Its gradient."""
        alpha, beta, q = self.parts(point)
        rows, v = self.views.ranks - 1, self.views
        p = alpha[rows] * q[v.items] + beta[rows]
        each = (v.shown - v.clicked) / (1 - p) - v.clicked / p
        return np.concatenate([
            np.bincount(rows, each * q[v.items], K)[1:],
            np.bincount(rows, each, K)[1:],
            np.bincount(v.items, each * alpha[rows], self.n_items),
        ])  # fmt: skip

    def curvature(self, point: Floats) -> Floats:
        """Its second derivative, by differences of the gradient."""
        step = 1e-6
        rows = [
            (self.slope(point + step * e) - self.slope(point - step * e)) / (2 * step)
            for e in np.eye(len(point))
        ]
        return np.array(rows)

    def start(self) -> Floats:
        """Equal rates at all ranks."""
        v = self.views
        q = np.bincount(v.items, v.clicked) / np.bincount(v.items, v.shown)
        return np.concatenate([np.ones(K - 1), np.zeros(K - 1), 0.1 + 0.7 * q])


def point_of(fit: TrustFit) -> Floats:
    """Where a fit is, as the oracle sees it."""
    return np.concatenate([fit.curve.alpha[1:], fit.curve.beta[1:], fit.relevance])


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_maximum_that_another_algorithm_finds(seed: int) -> None:
    """Quasi-Newton steps from elsewhere, on the same likelihood written again."""
    views = small_log(seed)
    fit, oracle = estimate_trust(views, n_ranks=K), Oracle(views)
    found = minimize(
        oracle.loss, oracle.start(), jac=oracle.slope, method="BFGS",
        options={"gtol": 1e-4, "maxiter": 5_000},
    )  # fmt: skip
    newton = found.x.copy()
    for _ in range(20):
        newton = newton - np.linalg.solve(
            oracle.curvature(newton), oracle.slope(newton)
        )

    assert oracle.loss(newton) == pytest.approx(oracle.loss(point_of(fit)), rel=1e-9)
    assert point_of(fit) == pytest.approx(newton, abs=1e-5)
    assert -fit.log_likelihoods[-1] == pytest.approx(oracle.loss(newton), rel=1e-9)
    assert set(fit.curve.reasons) == {""}


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_those_of_the_information_by_finite_differences(seed: int) -> None:
    """Of all parameters together, the relevances among them."""
    views = small_log(seed)
    fit = estimate_trust(views, n_ranks=K)
    variances = np.linalg.inv(Oracle(views).curvature(point_of(fit))).diagonal()
    curve = fit.curve
    half = np.concatenate([
        (curve.alpha_high - curve.alpha)[1:], (curve.beta_high - curve.beta)[1:]
    ])  # fmt: skip

    assert half == pytest.approx(1.959964 * np.sqrt(variances[: 2 * K - 2]), rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_never_falls(seed: int) -> None:
    """From step to step, whatever is extrapolated; and a short run says it is one."""
    rng = np.random.default_rng(seed)
    views = log_of(with_trust(K), rng, n_items=60, views=60.0)
    likelihoods = estimate_trust(views, n_ranks=K).log_likelihoods
    short = estimate_trust(views, n_ranks=K, most_turns=10)

    assert len(likelihoods) > 5
    assert (np.diff(likelihoods) >= -1e-11 * abs(likelihoods[-1])).all()
    assert np.isnan(short.curve.alpha).all()


def test_one_plain_turn_is_that_of_the_listing() -> None:
    """Two relevances, one rank, by hand: who clicked was relevant so likely."""
    views = Views(*(np.array(x) for x in ([0], [0], [0], [1], [10], [4])))
    cells = cells_of(views, 1)
    missed, point, moved = np.array([6.0]), np.array([0.5, 0.8, 0.2]), np.zeros(3)
    total = public._turn(cells.items, cells.rows, cells.clicked, missed, point, moved)

    assert total == pytest.approx(10 * np.log(0.5))
    # Of 4 clicks .4 / .5 were on what was relevant, of 6 misses .1 / .5.
    assert moved == pytest.approx([3.2 + 1.2, 3.2 + 1.2, 3.2])


def test_extrapolation_ends_where_plain_turns_do() -> None:
    """Turns that shrink by known factors end at their fixed point, much sooner."""
    target, n_plain = np.array([0.3, 0.7, 0.4, 0.6, 0.5]), 0
    factors = np.array([0.9999, 0.999, 0.99, 0.9, 0.5])
    start = np.array([0.9, 0.1, 0.8, 0.2, 0.1])

    def turn(point: Floats) -> Turn:
        off = point - target
        return Turn(target + factors * off, -float(off @ off))

    found = ascend(start, turn, lambda x: np.clip(x, 0.0, 1.0), lambda x: x)
    point = start
    while np.abs(point - target).max() > 1e-7:
        point, n_plain = turn(point).point, n_plain + 1

    assert found.is_converged
    assert np.abs(found.point - target).max() < 1e-6
    assert found.n_turns < n_plain / 20


def test_extrapolation_that_leads_down_is_taken_back() -> None:
    """Turns of one length seem to have no end, and are just before it."""

    def turn(point: Floats) -> Turn:
        step = 0.01 * np.tanh(50.0 * (0.5 - point))
        return Turn(point + step, -float(((point - 0.5) ** 2).sum()))

    found = ascend(np.array([0.2]), turn, lambda x: np.clip(x, 0.0, 1.0), lambda x: x)

    assert found.is_converged
    assert found.point == pytest.approx([0.5], abs=1e-6)
    assert (np.diff(found.log_likelihoods) >= -1e-12).all()


@pytest.mark.parametrize(
    "planted",
    [with_trust(5), with_examination(5), Planted(*np.array(
        [trust_bias_of(5).alpha, trust_bias_of(5).beta]
    ))],
    ids=["mild", "none", "of the literature"],
)  # fmt: skip
def test_expected_clicks_give_the_planted_ratios(planted: Planted) -> None:
    """In units of the first rank, to the rounding of clicks."""
    relevance = np.linspace(0.1, 0.9, 7)
    fit = estimate_trust(expected_log(planted, relevance), n_ranks=5)

    assert fit.curve.alpha == pytest.approx(planted.ratios, abs=2e-4)
    assert fit.curve.beta == pytest.approx(planted.offsets, abs=2e-4)
    at_first = planted.alpha[0] * relevance + planted.beta[0]
    assert fit.relevance == pytest.approx(at_first, abs=2e-4)


def test_relevance_in_other_units_has_the_same_clicks_and_the_same_ratios() -> None:
    """R' = s R + t changes alpha and beta, and nothing that is told of them."""
    planted, relevance = with_trust(5), np.linspace(0.2, 0.9, 6)
    a = 0.1
    moved = Planted(planted.alpha / (1 - a), planted.beta - planted.alpha * a / (1 - a))
    scaled = Planted(planted.alpha * 0.8, planted.beta)

    for other, own in ((moved, a + (1 - a) * relevance), (scaled, relevance / 0.8)):
        mine = np.outer(relevance, planted.alpha) + planted.beta
        assert np.outer(own, other.alpha) + other.beta == pytest.approx(mine)
        assert other.ratios == pytest.approx(planted.ratios)
        assert other.offsets == pytest.approx(planted.offsets)
    # Clicks on what is surely relevant stay, if what is not relevant moves alone.
    theta = planted.alpha + planted.beta
    assert moved.alpha + moved.beta == pytest.approx(theta)
    sure = scaled.alpha + scaled.beta
    assert np.abs(sure / sure[0] - theta / theta[0]).max() > 0.005


def test_an_anchor_gives_back_what_was_planted() -> None:
    """Alpha and beta of every rank."""
    model = trust_bias_of(5)
    planted = Planted(np.array(model.alpha), np.array(model.beta))
    relevance = np.linspace(0.0, 0.9, 7)
    fit = estimate_trust(expected_log(planted, relevance), n_ranks=5)
    absolute = anchored(fit.curve, Anchor(planted.alpha[0], planted.beta[0]))

    assert absolute.alpha == pytest.approx(planted.alpha, abs=2e-4)
    assert absolute.beta == pytest.approx(planted.beta, abs=2e-4)


def test_planted_trust_is_recovered_where_rates_and_positions_are_not_enough() -> None:
    """Better items stand higher: click rates by rank are wrong by far more than .1."""
    planted = with_trust(5)
    views = log_of(planted, np.random.default_rng(2), n_items=100, views=5_000.0)
    curve = estimate_trust(views, n_ranks=5, confidence=0.9999).curve
    naive = naive_ratios(views, 5) - planted.ratios

    assert np.abs(curve.alpha - planted.ratios).max() < 0.03
    assert np.abs(curve.beta - planted.offsets).max() < 0.03
    assert (curve.alpha_low <= planted.ratios).all()
    assert (planted.ratios <= curve.alpha_high).all()
    assert (curve.beta_low <= planted.offsets).all()
    assert (planted.offsets <= curve.beta_high).all()
    assert np.abs(naive).max() > 0.25


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 % over 200 logs, over all ranks; 1,000 rank by rank are a longer run."""
    planted, holds = with_trust(K), np.zeros((2, 200, K - 1))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        views = log_of(planted, rng, n_items=20, views=500.0)
        curve = estimate_trust(views, n_ranks=K).curve
        low = np.stack([curve.alpha_low, curve.beta_low])
        high = np.stack([curve.alpha_high, curve.beta_high])
        truth = np.stack([planted.ratios, planted.offsets])
        holds[:, seed] = ((low <= truth) & (truth <= high))[:, 1:]

    assert np.abs(holds.mean(axis=(1, 2)) - 0.95).max() < 0.03


def test_relevances_of_a_planted_log_are_as_they_should_be() -> None:
    """The log itself: evenly spread, and better ones stand higher."""
    rng = np.random.default_rng(3)
    relevance = relevances(40, np.random.default_rng(3))
    views = log_of(with_examination(5), rng, n_items=40)
    of_rank = [relevance[views.items[views.ranks == r]] @ views.shown[views.ranks == r]
               / views.shown[views.ranks == r].sum() for r in (1, 5)]  # fmt: skip

    assert of_rank[0] > of_rank[1] + 0.2
