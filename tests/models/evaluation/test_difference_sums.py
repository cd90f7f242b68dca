"""The evidence of a difference, against the lists that it sums."""

import itertools

import numpy as np

from tests.difference_sums import largest_sum, stacked, sum_differences


def test_sums_are_those_of_the_lists_by_group() -> None:
    """List by list, from plain loops."""
    rng = np.random.default_rng(0)
    weights = np.array([1.0, -2.0, 0.5])
    clicks = rng.random((30, 3)) < 0.4
    groups = rng.choice([2, 5, 9], 30)

    sums = sum_differences(clicks, groups, weights, 2)

    assert sums.groups.tolist() == [2, 5, 9]
    for row, group in enumerate(sums.groups):
        lists = clicks[groups == group]
        values = [float(weights[clicked].sum()) for clicked in lists]
        assert sums.interactions[row] == len(lists)
        assert sums.clicks[row] == lists.sum()
        assert np.isclose(sums.totals[row], sum(values))
        assert np.isclose(sums.squares[row], sum(x * x for x in values))
        of_clicks = [
            weights[item] ** 2 for each in lists for item in np.flatnonzero(each)
        ]
        assert np.isclose(sums.click_squares[row], sum(of_clicks))
    assert set(sums.lengths) == {2}
    assert set(sums.gains) == {1.5}
    assert set(sums.losses) == {2.0}
    assert set(sums.largest) == {2.0}


def test_the_most_that_a_list_can_show_is_that_of_all_lists() -> None:
    """Over every choice of items to show and to click."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights = rng.normal(size=5)
        for length in (1, 2, 5):
            most = max(
                sum(weights[list(clicked)])
                for n_clicked in range(length + 1)
                for clicked in itertools.combinations(range(5), n_clicked)
            )
            assert np.isclose(largest_sum(weights, length), most)


def test_comparisons_stand_one_after_the_other() -> None:
    """Also one without any list."""
    rng = np.random.default_rng(2)
    several = [
        sum_differences(rng.random((n, 2)) < 0.5, np.arange(n) % 3, np.ones(2), 2)
        for n in (1, 0, 5)
    ]

    sums, starts = stacked(several)

    assert starts.tolist() == [0, 1, 1, 4]
    for i, each in enumerate(several):
        for whole, part in zip(sums, each, strict=True):
            assert np.array_equal(whole[starts[i] : starts[i + 1]], part)
