"""What trust bias cannot be told is refused by rank, with the reason."""

import numpy as np
import pytest

from models.bias.examination import (
    FEW_VIEWS,
    NO_CLICKS,
    NO_MISSES,
    NOT_CONVERGED,
    NOT_SHOWN,
)
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.trust import (
    AT_BOUND,
    FEW_AT_FIRST,
    FEW_CLICKS,
    REVERSED,
    TOO_ALIKE,
    TrustFit,
    estimate_trust,
)
from models.bias.trust_anchor import Anchor, anchored
from models.bias.trust_identification import NOT_IDENTIFIED
from tests.planted_bias import log_of, with_examination, with_trust


def views_of(*rows: tuple[int, int, int, int]) -> Views:
    """Of rows of item, rank, shown, clicked."""
    items, ranks, shown, clicked = np.array(rows, np.int64).reshape(-1, 4).T
    return Views(items, 0 * items, items, ranks, shown, clicked)


def fit_of(*rows: tuple[int, int, int, int], n_ranks: int) -> TrustFit:
    """Of rows of item, rank, shown, clicked."""
    return estimate_trust(views_of(*rows), n_ranks=n_ranks)


TWO_ITEMS = (
    (0, 1, 10_000, 8_000), (0, 2, 10_000, 5_000),
    (1, 1, 10_000, 4_000), (1, 2, 10_000, 2_000),
)  # fmt: skip


def test_two_items_at_two_ranks_by_hand() -> None:
    """A line through two points: .3 over .4, and what it leaves at 0."""
    curve = fit_of(*TWO_ITEMS, n_ranks=2).curve
    # Each rate varies as p (1 - p) / n; the slope is a ratio of two differences.
    at = {0.8: 0.16, 0.4: 0.24, 0.5: 0.25, 0.2: 0.16}
    variance = (at[0.5] + at[0.2] + 0.75**2 * (at[0.8] + at[0.4])) / 10_000 / 0.4**2

    assert curve.alpha == pytest.approx([1.0, 0.75], abs=1e-6)
    assert curve.beta == pytest.approx([0.0, -0.1], abs=1e-6)
    assert curve.alpha_high[1] - 0.75 == pytest.approx(
        1.959964 * variance**0.5, rel=1e-4
    )
    assert curve.reasons == ("", "")


def test_one_item_at_two_ranks_tells_position_bias_but_not_trust() -> None:
    """Two unknowns, one equation."""
    curve = fit_of(*TWO_ITEMS[:2], n_ranks=2).curve

    assert np.isnan(curve.alpha).all()
    assert curve.reasons == (NOT_IDENTIFIED, NOT_IDENTIFIED)


def test_ranks_that_nothing_leads_to_are_refused() -> None:
    """Not shown, no clicks, no misses, and one item only on the way."""
    curve = fit_of(
        *TWO_ITEMS, (2, 2, 500, 200), (2, 3, 500, 100),
        (0, 4, 50, 0), (1, 4, 50, 0), (0, 5, 9, 9), (1, 5, 9, 9), n_ranks=6,
    ).curve  # fmt: skip

    assert curve.alpha[:2] == pytest.approx([1.0, 0.75], abs=1e-5)
    assert np.isnan(curve.alpha[2:]).all()
    assert np.isnan(curve.beta[2:]).all()
    assert np.isnan([curve.alpha_low[2:], curve.beta_high[2:]]).all()
    assert curve.reasons == ("", "", NOT_IDENTIFIED, NO_CLICKS, NO_MISSES, NOT_SHOWN)
    assert curve.n_known == 2
    assert "rank 3: no two items that differ" in curve.warning()


def test_a_way_over_other_ranks_is_a_way() -> None:
    """Two items from rank 1 to 2, and two others from 2 to 3."""
    curve = fit_of(
        *TWO_ITEMS,
        (2, 2, 10_000, 6_000), (2, 3, 10_000, 4_000),
        (3, 2, 10_000, 1_000), (3, 3, 10_000, 1_000), n_ranks=3,
    ).curve  # fmt: skip

    # Of rank 3 over rank 2: slope .6, .04 at 0; and rank 2 is .75 q - .1.
    assert curve.alpha == pytest.approx([1.0, 0.75, 0.45], abs=1e-5)
    assert curve.beta == pytest.approx([0.0, -0.1, -0.02], abs=1e-5)
    assert curve.reasons == ("", "", "")


def test_items_that_hardly_differ_tell_nothing() -> None:
    """Equal rates by chance are one equation, however many items there are."""
    views = views_of(
        (0, 1, 900, 450), (0, 2, 900, 300), (1, 1, 900, 452), (1, 2, 900, 299),
    )  # fmt: skip
    curve = estimate_trust(views, n_ranks=2, most_turns=2_000).curve

    assert curve.reasons[1] == TOO_ALIKE
    assert np.isnan(curve.alpha[1])


def test_a_rank_that_is_hardly_told_takes_nothing_from_the_others() -> None:
    """Nor their ratios, nor their intervals."""
    vague = (
        (2, 2, 900, 300), (3, 2, 900, 302), (2, 3, 900, 200), (3, 3, 900, 203),
    )  # fmt: skip
    alone = fit_of(*TWO_ITEMS, n_ranks=3).curve
    views = views_of(*TWO_ITEMS, *vague)
    beside = estimate_trust(views, n_ranks=3, most_turns=4_000).curve

    assert beside.reasons == ("", "", TOO_ALIKE)
    assert beside.alpha[:2] == pytest.approx(alone.alpha[:2], abs=1e-5)
    assert beside.alpha_low[:2] == pytest.approx(alone.alpha_low[:2], abs=1e-3)
    assert np.isnan(beside.alpha[2])


def test_a_rank_where_relevance_is_clicked_less_is_refused() -> None:
    """A curve must not fall with relevance."""
    curve = fit_of(
        (0, 1, 9_000, 7_000), (0, 2, 9_000, 2_000), (1, 1, 9_000, 3_000),
        (1, 2, 9_000, 4_000), n_ranks=2,
    ).curve  # fmt: skip

    assert curve.reasons == ("", REVERSED)
    assert curve.n_known == 1


def test_an_end_that_does_not_bind_is_left() -> None:
    """Where nothing lies at its bound all slopes of the likelihood are 0."""
    k = 10
    views = log_of(with_trust(k), np.random.default_rng(1), n_items=100, views=300.0)
    fit = estimate_trust(views, n_ranks=k)
    rows = views.ranks - 1
    alpha, q = fit.curve.alpha[rows], fit.relevance[views.items]
    p = alpha * q + fit.curve.beta[rows]
    each = views.clicked / p - (views.shown - views.clicked) / (1.0 - p)
    of_ranks = np.stack([np.bincount(rows, each * q)[1:], np.bincount(rows, each)[1:]])

    assert set(fit.curve.reasons) == {""}
    assert np.abs(np.bincount(views.items, each * alpha)).max() < 1e-3
    assert np.abs(of_ranks).max() < 1e-2
    assert fit.n_turns < 100


@pytest.mark.parametrize("seed", [0, 5, 14, 17])
def test_curves_that_are_hardly_told_come_to_rest(seed: int) -> None:
    """Rare clicks on items that are much alike: the likelihood hardly knows ratios."""
    rng, k = np.random.default_rng(seed), 10
    planted = with_examination(k)
    items, rows = np.divmod(np.arange(100 * k), k)
    relevance = rng.uniform(0.005, 0.15, 100)[items]
    shown = rng.poisson(100.0 / (1.0 + rows))
    clicked = rng.binomial(shown, planted.alpha[rows] * relevance)
    views = Views(items, 0 * items, items, rows + 1, shown, clicked)
    fit = estimate_trust(views, n_ranks=k)

    assert NOT_CONVERGED not in fit.curve.reasons
    assert fit.n_turns < 100


def test_a_step_that_promises_more_than_it_gives_is_the_last() -> None:
    """At a bend of the likelihood: what is damped promises nothing there."""
    rng = np.random.default_rng(173)
    views = log_of(with_examination(5), rng, n_items=20, views=40.0)

    assert NOT_CONVERGED not in estimate_trust(views, n_ranks=5).curve.reasons


def test_fewer_than_a_hundred_clicks_are_refused() -> None:
    """At a rank it is that one, and at rank 1 all others."""
    few = (*TWO_ITEMS, (0, 3, 99, 60), (1, 3, 99, 39))
    enough = (*TWO_ITEMS, (0, 3, 99, 61), (1, 3, 99, 39))
    first = tuple(
        (item, rank, shown // (150 if rank == 1 else 1), clicked // (150 if rank == 1
         else 1)) for item, rank, shown, clicked in TWO_ITEMS
    )  # fmt: skip

    assert fit_of(*few, n_ranks=3).curve.reasons == ("", "", FEW_CLICKS)
    assert FEW_CLICKS not in fit_of(*enough, n_ranks=3).curve.reasons
    curve = fit_of(*first, n_ranks=2).curve
    assert curve.reasons == (FEW_CLICKS, FEW_AT_FIRST)
    assert np.isnan(curve.alpha).all()


def test_few_views_have_a_ratio_and_no_interval() -> None:
    """What is not known of each relevance is not in the information."""
    views = log_of(with_trust(3), np.random.default_rng(1), n_items=300, views=15.0)
    curve = estimate_trust(views, n_ranks=3).curve

    assert np.isfinite(curve.alpha).all()
    assert np.isnan(curve.alpha_low[1:]).all()
    assert curve.reasons[1:] == (FEW_VIEWS, FEW_VIEWS)


def test_what_is_always_clicked_at_a_rank_is_at_its_end_too() -> None:
    """As what never is: the information there is of no inner maximum."""
    for rates in (
        ((0.8, 1.0), (0.3, 0.4), (0.5, 0.55), (0.6, 0.7)),
        ((0.8, 0.3), (0.5, 0.0), (0.6, 0.1), (0.7, 0.21)),
    ):
        rows = [
            (item, rank, 10_000, round(10_000 * rate))
            for item, of_item in enumerate(rates)
            for rank, rate in enumerate(of_item, 1)
        ]
        curve = fit_of(*rows, n_ranks=2).curve
        assert curve.reasons == ("", AT_BOUND)
        assert np.isfinite(curve.alpha[1])
        assert np.isnan(curve.alpha_low[1])


def test_without_trust_bias_some_probability_may_be_at_its_end() -> None:
    """Then there is a ratio, and no interval by the information."""
    curves = [
        estimate_trust(
            log_of(with_examination(4), np.random.default_rng(seed), views=100.0),
            n_ranks=4,
        ).curve
        for seed in range(5)
    ]

    for curve in curves:
        assert np.abs(curve.beta).max() < 0.1
        assert set(curve.reasons) <= {"", AT_BOUND}
    assert any(AT_BOUND in curve.reasons for curve in curves)


@pytest.mark.parametrize(
    "rows",
    [[], [(0, 1, 9, 1)], [(0, 1, 0, 0)], [(0, 2, 90, 40), (0, 3, 90, 30)],
     [(0, 1, 90, 0), (1, 1, 90, 0), (0, 2, 90, 0), (1, 2, 90, 0)]],
    ids=["none", "one", "no views", "no first", "no clicks"],
)  # fmt: skip
def test_without_a_first_rank_nothing_is_known(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """Every rank has a reason."""
    fit = fit_of(*rows, n_ranks=3)

    assert np.isnan([fit.curve.alpha, fit.curve.beta]).all()
    assert all(fit.curve.reasons)
    assert fit.n_turns == 0


def test_what_cannot_have_been_counted_is_refused() -> None:
    """Ranks beyond the curve, more clicks than lists, and a confidence of none."""
    with pytest.raises(ValueError, match=r"ranks must lie in 1\.\.2; got 1\.\.3"):
        fit_of((0, 1, 9, 1), (0, 3, 9, 1), n_ranks=2)
    with pytest.raises(ValueError, match="got 10 of 9 in row 0"):
        fit_of((0, 1, 9, 10), n_ranks=2)
    with pytest.raises(ValueError, match="confidence must lie in"):
        estimate_trust(views_of(), n_ranks=2, confidence=1.0)


def test_ten_thousand_times_as_many_clicks_cost_the_same_turns() -> None:
    """Sums are what is turned over: rows of the same item and rank are one."""
    views = log_of(with_trust(4), np.random.default_rng(4), n_items=20, views=300.0)
    many = views._replace(shown=10_000 * views.shown, clicked=10_000 * views.clicked)
    twice = Views(*(np.concatenate([column, column]) for column in views))
    once, often = (estimate_trust(each, n_ranks=4) for each in (views, many))

    assert abs(often.n_turns - once.n_turns) <= 2
    assert often.curve.alpha == pytest.approx(once.curve.alpha, rel=1e-6)
    assert estimate_trust(twice, n_ranks=4).curve.alpha == pytest.approx(
        once.curve.alpha, rel=1e-6
    )


def known(alpha: list[float], beta: list[float]) -> FittedCurve:
    """A curve without intervals."""
    nothing = np.zeros(len(alpha))
    ends = nothing, nothing, nothing, nothing
    return FittedCurve(np.array(alpha), np.array(beta), *ends, ("",) * len(alpha))


def test_an_anchor_that_does_not_go_with_the_curve_is_refused() -> None:
    """No bias of a rank, or none of another's; a little outside is noise."""
    curve = known([1.0, 1.5], [0.0, -0.7])
    with pytest.raises(ValueError, match="an anchor must have alpha more than 0"):
        anchored(curve, Anchor(0.0, 0.5))
    with pytest.raises(ValueError, match=r"at most 1; got 0\.7 and 0\.5"):
        anchored(curve, Anchor(0.7, 0.5))
    with pytest.raises(ValueError, match=r"beta must lie .* got -0\.250 at rank 2"):
        anchored(curve, Anchor(0.7, 0.3))
    close = anchored(known([1.0, 1.5], [0.0, -0.7]), Anchor(0.5, 0.46))
    assert close.beta.tolist() == [0.46, 0.0]
