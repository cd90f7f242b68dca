"""Sums of lists that decide, against brute force; what draws keep apart."""

import itertools
import math

import numpy as np
import pytest

from models.arrays import Floats
from rankstream.lab.reproduction.genspec.clicks import (
    QueryClicks,
    click_chances,
    drawn_clicks,
)
from rankstream.lab.reproduction.genspec.plan import SELECTED
from tests.difference_sums import stacked, sum_differences

OFFSETS = np.array([0, 3, 5])


def test_sums_of_pairs_are_those_of_lists() -> None:
    """Whatever the weights are; each query's lists were of its own items."""
    rng = np.random.default_rng(1)
    lists = [rng.random((n_lists, n)) < 0.4 for n_lists, n in ((40, 3), (25, 2))]
    weights = rng.normal(0.0, 3.0, 5)
    clicks = QueryClicks(
        np.array([7, 7]),
        np.array([40, 25]),
        np.full(5, 9.0),
        [(each.T.astype(float) @ each) for each in lists],
    )
    by_query = np.split(weights, OFFSETS[1:-1])
    expected, _ = stacked(
        [
            sum_differences(each, np.zeros(len(each), np.int64), w, len(w))
            for each, w in zip(lists, by_query, strict=True)
        ]
    )
    found = clicks.sums(weights, OFFSETS)

    for name, value in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name)


@pytest.mark.parametrize("offset", [0.0, 0.15])
def test_an_offset_of_clicks_changes_no_difference(offset: float) -> None:
    """Users who click more of everything add the same to the reward of all lists.

    Over all patterns of clicks the mean of X is exactly the difference of rewards by
    relevance alone.
    """
    relevance = np.array([0.1, 0.5, 0.3])
    ranks, falling = np.array([1, 2, 3]), 1.0 / np.log2([2.0, 3.0, 4.0])
    one, other = falling[[2, 0, 1]], falling
    clicks = expected_clicks((relevance + offset) / ranks)
    difference = clicks.sums((one - other) * ranks, np.array([0, 3]))
    alone = clicks.sums(one * ranks, np.array([0, 3]))

    np.testing.assert_allclose(difference.totals, (one - other) @ relevance, rtol=1e-12)
    np.testing.assert_allclose(
        alone.totals, one @ relevance + offset * falling.sum(), rtol=1e-12
    )


def expected_clicks(chances: Floats) -> QueryClicks:
    """What one list of one query has on average, over all patterns of clicks."""
    n = len(chances)
    pairs = np.zeros((n, n))
    for pattern in itertools.product([0.0, 1.0], repeat=n):
        clicked = np.array(pattern)
        share = np.prod(np.where(clicked > 0.0, chances, 1.0 - chances))
        pairs += share * np.outer(clicked, clicked)
    return QueryClicks(np.array([0]), np.array([1]), np.zeros(n), [pairs])


def test_each_list_trains_or_decides() -> None:
    """Where all is clicked, clicks count lists; later draws hold those before."""
    rng = np.random.default_rng(2)
    found = [*drawn_clicks(np.ones(5), OFFSETS, [1, 4, 50], rng=rng)]

    for count, clicks in zip([1, 4, 50], found, strict=True):
        assert (clicks.training_lists + clicks.selection_lists).tolist() == [count] * 2
        lists = np.repeat(clicks.training_lists, [3, 2])
        np.testing.assert_array_equal(clicks.training, lists)
        for n_lists, pairs in zip(clicks.selection_lists, clicks.pairs, strict=True):
            np.testing.assert_array_equal(pairs, n_lists)
    for before, after in itertools.pairwise(found):
        assert (after.training_lists >= before.training_lists).all()
        assert (after.selection_lists >= before.selection_lists).all()


def test_clicks_come_by_chance_and_by_themselves() -> None:
    """Within four errors: shares of lists, clicks of items, clicks on two at once."""
    chances, n = np.array([0.9, 0.4, 0.1, 0.7, 0.2]), 20_000
    rng = np.random.default_rng(3)
    *_, clicks = drawn_clicks(chances, OFFSETS, [100, n], rng=rng)

    def is_near(found: float, of_lists: float, chance: float) -> bool:
        error = math.sqrt(of_lists * chance * (1.0 - chance))
        return abs(found - of_lists * chance) < 4.0 * error

    for query, (begin, end) in enumerate(itertools.pairwise(OFFSETS.tolist())):
        n_selected = int(clicks.selection_lists[query])
        assert is_near(n_selected, n, SELECTED)
        for at in range(begin, end):
            assert is_near(clicks.training[at], n - n_selected, chances[at])
            for other in range(begin, end):
                both = chances[at] * (chances[other] if other != at else 1.0)
                pairs = clicks.pairs[query][at - begin, other - begin]
                assert is_near(pairs, n_selected, both)


def test_draws_do_not_depend_on_what_comes_later() -> None:
    """The same seed gives the same clicks, however many lists follow."""
    short, long = (
        next(iter(drawn_clicks(np.full(5, 0.5), OFFSETS, counts, rng=rng)))
        for counts, rng in (
            ([20], np.random.default_rng(4)),
            ([20, 70], np.random.default_rng(4)),
        )
    )

    np.testing.assert_array_equal(short.training, long.training)
    np.testing.assert_array_equal(short.selection, long.selection)


def test_the_highest_label_is_grade_four() -> None:
    """Labels 0, 1, 2 are grades 0, 2, 4."""
    found = click_chances(np.array([0, 1, 2]), 2, 0.2)
    np.testing.assert_allclose(found, [0.2, 0.6, 1.0])
