"""No list and no clicks prefer anybody by more than the bound, and it is near."""

import itertools

import numpy as np
import pytest

from models.interleaving.method import NO_ONE, Shown
from models.interleaving.pairwise_bounds import (
    FEW_RANKERS,
    largest_preference,
    largest_preferences,
)
from models.interleaving.pairwise_preference import LARGEST_WEIGHT, PairwisePreference
from tests.interleaving_cases import as_rankings, pairwise_lists


def largest_seen(rankings: np.ndarray, length: int, method: PairwisePreference):
    """Over all lists that can be drawn, and all clicks."""
    seen = np.zeros((len(rankings),) * 2)
    for _, shown in pairwise_lists(rankings, length):
        for clicks in itertools.product([False, True], repeat=len(shown.shown)):
            found = method.infer(shown, np.array(clicks, np.bool_))
            seen = np.maximum(seen, np.abs(found))
    return seen


@pytest.mark.parametrize("largest", [LARGEST_WEIGHT, 3.0])
@pytest.mark.parametrize("at_most", [0.0, 3.0])
@pytest.mark.parametrize("n_rankers", [2, 3, FEW_RANKERS + 1])
def test_bounds_hold_over_all_lists_and_clicks(
    n_rankers: int, at_most: float, largest: float
) -> None:
    """With few rankers each two have their own; with many all share one."""
    rng = np.random.default_rng(n_rankers)
    method = PairwisePreference(largest_weight=largest, largest_preference=at_most)
    near = []
    for _ in range(60):
        n = int(rng.integers(2, 6))
        length = int(rng.integers(1, n + 1))
        rankings = as_rankings(
            [
                rng.permutation(n)[: rng.integers(0, n + 1)].tolist()
                for _ in range(n_rankers)
            ]
        )
        bounds = method.bounds(rankings, length)
        seen = largest_seen(rankings, length, method)
        assert (seen <= bounds + 1e-9).all()
        assert not at_most or bounds.max() <= at_most + 1e-9
        np.testing.assert_array_equal(bounds, bounds.T)
        near += list(seen[bounds > 0] / bounds[bounds > 0])
    if n_rankers == 2:
        assert np.median(near) > 0.6


def test_two_rankers_that_agree_on_most_are_bounded_by_what_they_do_not() -> None:
    """One pair is turned: nobody can be preferred by more than twice its weight."""
    rankings = np.array(
        [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 4, 3, 5, 6, 7, 8, 9]]
    )
    assert largest_preferences(rankings, 10, LARGEST_WEIGHT)[0, 1] == 2.0
    rolled = np.array([np.arange(10), np.roll(np.arange(10), -1)])
    own = largest_preferences(rolled, 10, LARGEST_WEIGHT)[0, 1]
    assert own == 2.0 * (2.0**9 - 1.0)
    assert largest_preference(rolled, 10, LARGEST_WEIGHT) > 4.0 * own


def test_an_impression_that_counts_for_less_keeps_its_sign() -> None:
    """In proportion to its largest preference, and fair for each list as before."""
    rankings = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    plain = PairwisePreference()
    bounded = PairwisePreference(largest_preference=7.0)
    share = 7.0 / plain.bounds(rankings, 4)[0, 1]
    assert share < 1.0
    for _, shown in pairwise_lists(rankings, 4):
        for clicks in itertools.product([False, True], repeat=4):
            found = bounded.infer(shown, np.array(clicks))
            expected = share * plain.infer(shown, np.array(clicks))
            np.testing.assert_allclose(found, expected)
    light = PairwisePreference(largest_preference=1e6)
    np.testing.assert_array_equal(light.bounds(rankings, 4), plain.bounds(rankings, 4))
    with pytest.raises(ValueError, match="0 or more"):
        PairwisePreference(largest_preference=-1.0)
    with pytest.raises(ValueError, match="1 or more"):
        PairwisePreference(largest_weight=0.5)


def test_how_much_an_impression_counts_depends_on_how_long_its_list_was() -> None:
    """Three of eight documents are shown: pairs below them cannot be preferred."""
    rankings = np.array([np.arange(8), np.roll(np.arange(8), -1)])
    plain, bounded = PairwisePreference(), PairwisePreference(largest_preference=2.0)
    shown = Shown(rankings, np.array([0, 1, 2]), NO_ONE)
    clicks = np.array([False, True, False])
    expected = plain.infer(shown, clicks) * 2.0 / plain.bounds(rankings, 3)[0, 1]

    assert expected[0, 1] != 0.0
    assert plain.bounds(rankings, 3)[0, 1] < plain.bounds(rankings, 8)[0, 1]
    np.testing.assert_allclose(bounded.infer(shown, clicks), expected)
