"""Harvesting says what it cannot know."""

import numpy as np
import pytest

from models.bias.examination import NO_CLICKS, NOT_CONNECTED, NOT_SHOWN
from models.bias.fitted_curve import NEEDS_BOOTSTRAP
from models.bias.harvesting import (
    harvest_adjacent,
    harvest_all_pairs,
    harvest_pivot,
    rank_pairs,
)
from models.bias.logged_views import Views
from models.bias.registry import ESTIMATORS, bias_estimator

HARVESTS = harvest_adjacent, harvest_pivot, harvest_all_pairs


def views_of(*rows: tuple[int, int, int, int, int]) -> Views:
    """Of rows of policy, item, rank, shown, clicked."""
    policies, items, ranks, shown, clicked = np.array(rows, np.int64).reshape(-1, 5).T
    return Views(items, policies, items, ranks, shown, clicked)


def test_three_ranks_by_hand() -> None:
    """What leads from rank 1 to 3 only over rank 2 is no pair with the pivot."""
    views = views_of(
        (0, 0, 1, 10, 8), (0, 0, 2, 10, 4), (0, 1, 2, 10, 3), (0, 1, 3, 10, 1)
    )
    adjacent, pivot, every = (each(views, n_ranks=4) for each in HARVESTS)

    assert adjacent.alpha[:3] == pytest.approx([1.0, 0.5, 0.5 / 3])
    assert every.alpha[:3] == pytest.approx([1.0, 0.5, 0.5 / 3])
    assert adjacent.reasons == ("", NEEDS_BOOTSTRAP, NEEDS_BOOTSTRAP, NOT_SHOWN)
    assert pivot.alpha[1] == pytest.approx(0.5)
    assert pivot.reasons == ("", NEEDS_BOOTSTRAP, NOT_CONNECTED, NOT_SHOWN)
    assert np.isnan(pivot.alpha[2:]).all()


@pytest.mark.parametrize("harvest", HARVESTS)
def test_without_an_intervention_nothing_is_known(harvest) -> None:
    """One rank an item, another policy at the other rank, no clicks, no rows."""
    apart = views_of((0, 0, 1, 10, 8), (1, 0, 2, 10, 4))
    single = views_of((0, 0, 1, 10, 8), (0, 1, 2, 10, 4))
    unclicked = views_of((0, 0, 1, 10, 5), (0, 0, 2, 10, 0))

    for views in (apart, single):
        assert harvest(views, n_ranks=2).reasons[1] == NOT_CONNECTED
    assert harvest(unclicked, n_ranks=2).reasons[1] == NO_CLICKS
    nothing = harvest(views_of(), n_ranks=2)
    assert np.isnan(nothing.alpha[1])
    assert nothing.n_known < 2


def test_places_never_shown_count_for_nothing() -> None:
    """A denominator of 0 is no rate."""
    views = views_of((0, 0, 1, 10, 8), (0, 0, 2, 0, 0), (0, 0, 3, 10, 4))

    assert rank_pairs(views, n_ranks=3).weights[0].tolist() == [0.0, 0.0, 5.0]
    with pytest.raises(ValueError, match=r"ranks must lie in 1\.\.2; got 1\.\.3"):
        rank_pairs(views, n_ranks=2)
    with pytest.raises(ValueError, match="columns of views must be of one length"):
        rank_pairs(views._replace(ranks=views.ranks[:1]), n_ranks=3)


def test_each_estimator_has_a_name_and_says_what_it_needs() -> None:
    """And all of them find a curve where there is one."""
    rows = [
        (0, item, rank, 900, 900 * (item + 1) // (4 * rank))
        for item in range(3) for rank in (1, 2)
    ]  # fmt: skip
    for name, estimator in ESTIMATORS.items():
        curve = bias_estimator(name).estimate(views_of(*rows), 2)
        assert curve.alpha == pytest.approx([1.0, 0.5], abs=1e-3)
        assert estimator.needs.startswith("items")
        assert np.isfinite(curve.alpha_low[1]) <= estimator.has_information
    with pytest.raises(ValueError, match=r"must be one of position, .*; got 'em'"):
        bias_estimator("em")
