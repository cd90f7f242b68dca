"""Harvesting by enumeration: right within an intervention, wrong across chosen ones."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from models.bias import harvesting as public
from models.bias.fitted_curve import FittedCurve
from models.bias.harvesting import (
    RankPairs,
    harvest_adjacent,
    harvest_all_pairs,
    harvest_pivot,
    rank_pairs,
)
from models.bias.logged_views import Views
from tests.planted_bias import log_of, naive_ratios, with_examination

Floats = npt.NDArray[np.float64]
Impression = tuple[tuple[int, ...], tuple[bool, ...]]
"""Items by rank, and which were clicked."""

THETA = (1.0, 0.5, 0.25)
GAMMA = (0.8, 0.3, 0.5)

POLICY: dict[tuple[int, ...], float] = {(0, 1): 0.6, (1, 0): 0.3, (0, 2): 0.1}
"""Prefers what is more relevant."""


def impressions(
    policy: dict[tuple[int, ...], float],
) -> Iterator[tuple[Impression, float]]:
    """Every list of a policy with every way of clicking it, and how likely."""
    for shown, chance in policy.items():
        for clicks in product((False, True), repeat=len(shown)):
            rates = [THETA[r] * GAMMA[d] for r, d in enumerate(shown)]
            of_clicks = [p if c else 1 - p for p, c in zip(rates, clicks, strict=True)]
            yield (shown, clicks), chance * float(np.prod(of_clicks))


def views_of(impressed: list[tuple[int, Impression]]) -> Views:
    """Rows of impressions, each with the policy that made it."""
    rows = [
        (0, policy, item, rank, 1, int(clicked))
        for policy, (shown, clicks) in impressed
        for rank, (item, clicked) in enumerate(zip(shown, clicks, strict=True), 1)
    ]
    return Views(*np.array(rows, np.int64).T)


def expected(outcomes: Iterator[tuple[Views, float]]) -> RankPairs:
    """Mean of the sums of all that may come."""
    weights, clicks, total = np.zeros((3, 3)), np.zeros((3, 3)), 0.0
    for views, chance in outcomes:
        found = rank_pairs(views, n_ranks=3)
        weights += chance * found.weights
        clicks += chance * found.clicks
        total += chance
    assert total == pytest.approx(1.0)
    return RankPairs(weights, clicks)


def of_one_policy() -> Iterator[tuple[Views, float]]:
    """Two impressions of a policy that prefers what is more relevant."""
    for (one, p), (other, q) in product(impressions(POLICY), repeat=2):
        yield views_of([(0, one), (0, other)]), p * q


def of_policies_chosen_from_clicks(
    policies: tuple[int, int],
) -> Iterator[tuple[Views, float]]:
    """The second item is put first once it was clicked, and not before."""
    for one, p in impressions({(0, 1): 1.0}):
        chosen = (1, 0) if one[1][1] else (0, 1)
        for other, q in impressions({chosen: 1.0}):
            yield views_of([(policies[0], one), (policies[1], other)]), p * q


def test_within_a_policy_expected_rates_are_as_examination() -> None:
    """To rounding, whatever is preferred; rates by rank alone are wrong by far."""
    sums = expected(of_one_policy())
    each = [p * np.array(clicks, float) for (_, clicks), p in impressions(POLICY)]
    naive = np.sum(each, axis=0)

    assert sums.clicks[1, 0] / sums.clicks[0, 1] == pytest.approx(0.5, abs=1e-12)
    assert sums.chain()[:2] == pytest.approx([1.0, 0.5], abs=1e-12)
    assert sums.pivoted()[:2] == pytest.approx([1.0, 0.5], abs=1e-12)
    assert sums.weights[0, 1] > 0.1
    assert abs(naive[1] / naive[0] - 0.5) > 0.1


def test_across_policies_chosen_from_clicks_it_regresses_to_the_mean() -> None:
    """Clicked for sure at rank 2, then as usual at rank 1: rank 2 looks much better."""
    as_one = expected(of_policies_chosen_from_clicks((0, 0)))
    apart = expected(of_policies_chosen_from_clicks((0, 1)))
    # Once promoted, the second item was clicked for sure, and the first as ever.
    ratio = (1.0 + 0.5 * GAMMA[0]) / (1.0 * GAMMA[1] + GAMMA[0])

    assert as_one.clicks[1, 0] / as_one.clicks[0, 1] == pytest.approx(ratio, abs=1e-12)
    assert ratio > 1.2
    # Apart, no policy showed an item at two ranks: nothing is told, and nothing wrong.
    assert not apart.weights.any()


@pytest.mark.parametrize(
    "harvest", [harvest_adjacent, harvest_pivot, harvest_all_pairs]
)
def test_planted_examination_is_recovered_where_rates_are_not(
    harvest: Callable[..., FittedCurve],
) -> None:
    """Six ranks; click rates by rank are wrong by more than .1."""
    planted = with_examination(6)
    rng = np.random.default_rng(3)
    views = log_of(planted, rng, n_items=300, views=4_000.0)
    curve = harvest(views, n_ranks=6)

    assert np.abs(curve.alpha - planted.ratios).max() < 0.02
    assert np.abs(naive_ratios(views, 6) - planted.ratios).max() > 0.1


def test_all_pairs_is_the_maximum_of_its_likelihood() -> None:
    """By somebody else's optimiser, over all ratios and relevances of pairs."""
    rng = np.random.default_rng(5)
    views = log_of(with_examination(4), rng, n_items=50, views=300.0)
    sums = rank_pairs(views, n_ranks=4)
    pairs = [(r, s) for r in range(4) for s in range(r)]

    def loss(point: Floats) -> float:
        theta, own = np.r_[0.0, point[:3]], point[3:]
        total = 0.0
        for (r, s), relevance in zip(pairs, own, strict=True):
            for a, b in ((r, s), (s, r)):
                p = np.exp(min(theta[a] + relevance, -1e-12))
                clicks, weight = sums.clicks[a, b], sums.weights[a, b]
                total -= clicks * np.log(p) + (weight - clicks) * np.log1p(-p)
        return total

    start = np.concatenate([np.zeros(3), np.full(len(pairs), -1.5)])
    for _ in range(4):
        start = minimize(loss, start, method="BFGS", options={"gtol": 1e-6}).x

    curve = harvest_all_pairs(views, n_ranks=4)
    assert curve.alpha == pytest.approx(np.exp(np.r_[0.0, start[:3]]), rel=1e-4)


def test_many_items_are_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are at once."""
    views = log_of(with_examination(3), np.random.default_rng(1), n_items=40)
    whole = rank_pairs(views, n_ranks=3)
    monkeypatch.setattr(public, "UNITS_AT_ONCE", 7)
    parts = rank_pairs(views, n_ranks=3)

    assert parts.weights == pytest.approx(whole.weights)
    assert parts.clicks == pytest.approx(whole.clicks)


def test_a_query_drawn_twice_counts_twice() -> None:
    """Otherwise no bootstrap would say how queries differ."""
    views = log_of(with_examination(3), np.random.default_rng(1), n_items=5)
    twice = rank_pairs(views.drawn(np.full(5, 2)), n_ranks=3)
    once = rank_pairs(views, n_ranks=3)

    assert twice.clicks == pytest.approx(2.0 * once.clicks)
    assert twice.weights == pytest.approx(2.0 * once.weights)
