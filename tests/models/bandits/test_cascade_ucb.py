"""First clicks, and the upper index of what was seen."""

import itertools

import numpy as np

from models.bandits.cascade_ucb import FirstClicks, take_first_click, upper_indices
from models.bandits.kl_index import budget, upper_index


def nothing(n_items: int) -> FirstClicks:
    """Sums of no list."""
    return FirstClicks(np.zeros(n_items, np.int64), np.zeros(n_items, np.int64))


def test_what_stands_below_the_first_click_was_not_seen() -> None:
    """For all clicks of four ranks; further clicks tell nothing more."""
    shown = np.array([3, 0, 4, 1])
    for clicked in itertools.product((0, 1), repeat=4):
        sums = nothing(5)
        take_first_click(sums, shown, np.array(clicked))
        n_seen = clicked.index(1) + 1 if 1 in clicked else 4
        assert np.flatnonzero(sums.seen).tolist() == sorted(shown[:n_seen].tolist())
        expected = [shown[n_seen - 1]] if 1 in clicked else []
        assert np.flatnonzero(sums.clicks).tolist() == expected


def test_rates_of_first_clicks_are_attraction() -> None:
    """Over all users of a cascade: E[S] is E[T] times how attractive an item is."""
    attraction, shown = np.array([0.2, 0.7, 0.4]), np.array([2, 0, 1])
    clicks, seen = np.zeros(3), np.zeros(3)
    for clicked in itertools.product((0, 1), repeat=3):
        odds = np.prod(np.where(clicked, attraction[shown], 1 - attraction[shown]))
        sums = nothing(3)
        take_first_click(sums, shown, np.array(clicked))
        clicks += odds * sums.clicks
        seen += odds * sums.seen
    assert np.abs(clicks - seen * attraction).max() < 1e-12
    assert np.allclose(seen, [0.6, 0.6 * 0.8, 1.0])


def test_the_index_is_that_of_the_item_alone() -> None:
    """Each by its own sums; one that nobody saw has the most."""
    sums = FirstClicks(np.array([3, 0, 7]), np.array([9, 0, 8]))
    found = upper_indices(sums, 50)
    expected = [
        upper_index(np.array([s]), np.array([n]), np.ones(1), budget(50))
        for s, n in zip(*sums, strict=True)
    ]
    assert found.tolist() == expected
    assert found[1] == 1.0
    assert found[0] < found[2] < 1.0
