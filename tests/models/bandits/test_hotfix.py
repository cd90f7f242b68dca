"""Preferences of shuffled lists: their sums, and what they say of items."""

import itertools

import numpy as np
import pytest

from models.bandits.hotfix import hotfix_scores, take_preferences


def test_sums_are_those_of_all_pairs() -> None:
    """Clicked above unclicked, down to the last click: as statistics define them."""
    shown = [2, 0, 3, 1]
    for clicked in itertools.product((0, 1), repeat=4):
        plus, minus = np.zeros((2, 4), np.int64)
        take_preferences(plus, minus, np.array(shown), np.array(clicked))
        pairs = [
            (one, other)
            for one, other in itertools.permutations(range(4), 2)
            if clicked[one] and not clicked[other] and any(clicked[other + 1 :])
        ]
        for item in range(4):
            rank = shown.index(item)
            assert plus[item] == sum(one == rank for one, _ in pairs)
            assert minus[item] == sum(other == rank for _, other in pairs)


@pytest.mark.parametrize("examination", [(1.0, 1.0, 1.0), (1.0, 0.5, 0.2)])
def test_a_better_item_is_preferred_on_average(examination: tuple[float, ...]) -> None:
    """Over all shuffles and all clicks on them, whatever ranks are examined."""
    rates, scores = np.array([0.3, 0.8, 0.5]), np.zeros(3)
    for order in itertools.permutations(range(3)):
        shown = np.array(order)
        chances = np.array(examination) * rates[shown]
        for clicked in itertools.product((0, 1), repeat=3):
            plus, minus = np.zeros((2, 3), np.int64)
            take_preferences(plus, minus, shown, np.array(clicked))
            odds = np.prod(np.where(clicked, chances, 1.0 - chances)) / 6.0
            scores += odds * (plus - minus)
    assert abs(scores.sum()) < 1e-12
    assert np.argsort(-scores).tolist() == [1, 2, 0]


def test_what_is_below_the_first_items_stays_there() -> None:
    """In its order, and below all that was shuffled."""
    served = np.array([4, 2, 0, 3, 1])
    plus, minus = np.array([5, 9, 0, 0, 3]), np.array([0, 0, 8, 0, 3])
    scores = hotfix_scores(served, 3, plus, minus)
    assert np.argsort(-scores).tolist() == [0, 4, 2, 3, 1]
    complete = hotfix_scores(served, 5, plus, minus)
    assert complete.tolist() == (plus - minus).tolist()
