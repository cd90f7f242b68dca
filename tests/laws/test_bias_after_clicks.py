"""Curves where policies were chosen from clicks: of others, and of the same users.

What happened to be clicked is put first, and clicked as usual there.
"""

import numpy as np
import pytest

from models.arrays import Floats
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS

SECOND = 0.5
"""How often users look at rank 2; at rank 1 always."""

N_ITEMS = 2_000


def after_clicks(n_lists: int, spread: float, *, is_same: bool) -> Views:
    """Items at rank 2, then the better half of them first, by clicks that are counted.

    Or by as many of other users, who do not count.
    """
    rng = np.random.default_rng(3)
    relevance = rng.uniform(0.35 - spread, 0.35 + spread, N_ITEMS)
    first, others = rng.binomial(n_lists, SECOND * relevance, (2, N_ITEMS))
    chosen_by = first if is_same else others
    luck = chosen_by + rng.random(N_ITEMS)
    is_better = luck > np.median(luck)
    looked = np.where(is_better, 1.0, SECOND)
    then = rng.binomial(n_lists, looked * relevance)
    items = np.tile(np.arange(N_ITEMS), 2)
    ranks = np.concatenate([np.full(N_ITEMS, 2), np.where(is_better, 1, 2)])
    policies = np.repeat([0, 1], N_ITEMS)
    shown = np.full(2 * N_ITEMS, n_lists)
    clicked = np.concatenate([first, then])
    return Views(items, policies, items, ranks, shown, clicked)


def second_of(views: Views) -> tuple[Floats, Floats, Floats]:
    """Its ratio by position bias, and the ends of its interval."""
    curve = ESTIMATORS["position"].estimate(views, 2)
    return curve.alpha[1], curve.alpha_low[1], curve.alpha_high[1]


@pytest.mark.parametrize("spread", [0.25, 0.05])
def test_policies_that_others_chose_do_no_harm(spread: float) -> None:
    """Their clicks are independent of those that are counted."""
    _, low, high = second_of(after_clicks(50, spread, is_same=False))
    assert low < SECOND < high


def test_policies_that_the_same_clicks_chose_make_ratios_too_large() -> None:
    """Far beyond the interval; less so the more often items are seen."""
    for spread, at_50, at_1000 in ((0.25, 0.537, 0.503), (0.05, 0.612, 0.516)):
        ratio, low, _ = second_of(after_clicks(50, spread, is_same=True))
        assert ratio == pytest.approx(at_50, abs=0.008)
        assert low > SECOND
        more, _, _ = second_of(after_clicks(1_000, spread, is_same=True))
        assert more == pytest.approx(at_1000, abs=0.004)


def test_within_one_policy_nothing_is_compared_there() -> None:
    """Each of them shows an item at one rank: harvesting says so."""
    views = after_clicks(50, 0.25, is_same=True)
    assert np.isnan(ESTIMATORS["pivot"].estimate(views, 2).alpha[1])
