"""Differences of policies, by enumeration of all that users may do."""

from itertools import product

import numpy as np
import pytest

from models.decisions.click_sums import (
    MOST,
    ClickSums,
    LoggingPolicies,
    differences_of,
    estimated_values,
)

RELEVANCE = np.array([0.9, 0.2, 0.6, 0.4])
ORDERS = ((0, 1, 2), (3, 1, 0), (2, 3, 1))
CHANCES = np.array([0.5, 0.3, 0.2])
ALPHA, BETA = np.array([0.8, 0.5, 0.3]), np.array([0.15, 0.1, 0.0])
STARTS = np.array([0, 4])
FIRST, SECOND = np.array([1.0, 0.6, 0.5, 0.0]), np.array([0.0, 0.5, 1.0, 0.6])


def placement():
    """P(item at rank) of the policy that draws the orders."""
    table = np.zeros((4, 3))
    for order, chance in zip(ORDERS, CHANCES, strict=True):
        table[list(order), range(3)] += chance
    return table


def policy_of(beta):
    """Who logged."""
    placed = placement()
    return LoggingPolicies(
        np.array([0]),
        STARTS,
        placed @ ALPHA,
        placed @ beta,
        placed @ np.array([1.0, 0.6, 0.5]),
        np.array([3]),
    )


def plain_policy(propensities, length):
    """One without trust bias."""
    n = len(propensities)
    none = np.zeros(n)
    return LoggingPolicies(
        np.array([0]), np.array([0, n]), propensities, none, none, np.array([length])
    )


def clicked_lists(beta):
    """All lists and clicks that can be, with the chance of each."""
    for order, chance in zip(ORDERS, CHANCES, strict=True):
        rates = ALPHA * RELEVANCE[list(order)] + beta
        for clicks in product([0, 1], repeat=3):
            how = np.where(clicks, rates, 1.0 - rates).prod()
            yield (
                [item for item, c in zip(order, clicks, strict=True) if c],
                (chance * how),
            )


def sums_of(clicked, group=0):
    """One list with these items clicked."""
    pairs = [(0, a, b, 1) for a in clicked for b in clicked if a < b]
    return ClickSums(
        np.array([0]),
        np.array([group]),
        np.array([1]),
        np.array([(0, item, 1) for item in clicked], np.int64).reshape(-1, 3),
        np.array(pairs, np.int64).reshape(-1, 4),
    )


@pytest.mark.parametrize("offset", [0.0, 0.3])
@pytest.mark.parametrize("beta", [np.zeros(3), BETA], ids=["position", "trust"])
def test_the_mean_of_x_is_the_difference_of_rewards(beta, offset):
    """Whatever is added to the relevance of all items: both policies show as many."""
    policy = policy_of(beta)
    mean = square = 0.0
    largest = [-np.inf, -np.inf]
    for clicked, chance in clicked_lists(beta):
        found = differences_of(policy, sums_of(clicked), STARTS, FIRST, SECOND).sums
        mean += chance * found.totals[0]
        square += chance * found.squares[0]
        assert found.squares[0] == pytest.approx(found.totals[0] ** 2, abs=1e-12)
        largest[0] = max(largest[0], found.totals[0] - found.gains[0])
        largest[1] = max(largest[1], -found.totals[0] - found.losses[0])
    assert mean == pytest.approx((FIRST - SECOND) @ (RELEVANCE + offset), abs=1e-12)
    assert square > mean**2
    assert max(largest) <= 1e-12


@pytest.mark.parametrize("beta", [np.zeros(3), BETA], ids=["position", "trust"])
def test_no_list_can_be_further_off_than_the_bounds_say(beta):
    """And bounds are reached where the most that can be shown is clicked."""
    policy = policy_of(beta)
    weights = (FIRST - SECOND) / policy.propensities
    constant = weights @ policy.anyway
    found = differences_of(policy, sums_of([]), STARTS, FIRST, SECOND).sums
    subsets = list(product([0, 1], repeat=4))
    sums = [np.dot(each, weights) for each in subsets if sum(each) <= 3]
    assert found.gains[0] == pytest.approx(max(sums) - constant)
    assert found.losses[0] == pytest.approx(constant - min(sums))
    assert found.largest[0] == pytest.approx(np.abs(weights).max())


def test_the_most_that_is_lost_or_gained_is_that_of_a_whole_list():
    """K clicks at most, of weights of one sign: neither the k largest of |w|."""
    n = 5
    policy = plain_policy(np.ones(n), 2)
    first = np.array([5.0, -4.0, 3.0, -2.0, 1.0])
    found = differences_of(
        policy, sums_of([]), np.array([0, n]), first, np.zeros(n)
    ).sums
    assert (found.gains[0], found.losses[0], found.largest[0]) == (8.0, 6.0, 5.0)


def test_clicks_that_cancel_leave_no_square():
    """Weights that add up to 0, clicked together: never less than nothing."""
    rng = np.random.default_rng(0)
    starts = np.array([0, 3])
    policy = plain_policy(np.ones(3), 3)
    for _ in range(300):
        one, other = rng.normal(size=2)
        difference = np.array([one, other, -(one + other)])
        found = differences_of(
            policy, sums_of([0, 1, 2]), starts, difference, np.zeros(3)
        ).sums
        assert 0.0 <= found.squares[0] < 1e-13
        assert found.click_squares[0] == pytest.approx((difference**2).sum())


def test_without_a_second_policy_lists_are_compared_with_their_own():
    """The weights that its placements have."""
    policy = policy_of(BETA)
    for clicked, _ in clicked_lists(BETA):
        own, told = (
            differences_of(policy, sums_of(clicked), STARTS, FIRST, second).sums
            for second in (None, policy.worths)
        )
        np.testing.assert_array_equal(own.totals, told.totals)
        np.testing.assert_array_equal(own.losses, told.losses)


def two_sets():
    """Two policies of a set of two, of which one never shows item 1; an empty set."""
    policies = LoggingPolicies(
        np.array([0, 0, 2]),
        np.array([0, 2, 4, 5]),
        np.array([0.5, 0.0, 0.5, 0.25, 1.0]),
        np.zeros(5),
        np.zeros(5),
        np.array([1, 2, 1]),
    )
    sums = ClickSums(
        np.array([0, 1, 1, 2]),
        np.array([3, 2, 3, 9]),
        np.array([10, 20, 40, 5]),
        np.array([(0, 0, 4), (1, 0, 3), (1, 1, 2), (2, 1, 1), (3, 0, 5)]),
        np.array([(1, 0, 1, 1)]),
    )
    return policies, sums, np.array([0, 2, 3, 4])


def test_lists_that_could_not_show_what_matters_are_left_out():
    """And counted; where both policies agree on what is not shown nothing is lost."""
    policies, sums, starts = two_sets()
    first = np.array([1.0, 0.5, 0.0, 1.0])
    found = differences_of(policies, sums, starts, first, np.zeros(4))
    assert found.unsupported.tolist() == [10, 0, 0]
    assert found.starts.tolist() == [0, 2, 2, 3]
    assert found.sums.groups.tolist() == [2, 3, 9]
    assert found.interactions().tolist() == [60, 0, 5]
    assert found.clicks().tolist() == [6, 0, 5]
    assert found.means()[0] == pytest.approx((3 * 2 + 2 * 2 + 2) / 60)
    assert np.isnan(found.means()[1])
    agreed = differences_of(policies, sums, starts, first, np.array([0, 0.5, 0, 0]))
    assert agreed.unsupported.tolist() == [0, 0, 0]
    assert agreed.sums.groups.tolist() == [3, 2, 3, 9]


def test_a_list_that_could_say_too_much_is_left_out():
    """By who may be looked at, and not by its clicks; whichever way it would speak."""
    rare = 0.5 / MOST
    propensities = np.array([rare, 1.0])
    one, pairs = np.array([0]), np.zeros((0, 4), np.int64)
    sums = ClickSums(one, one + 1, one + 7, np.array([(0, 1, 3)]), pairs)
    for first in ([0.4, 0.0], [-0.4, 0.0], [0.6, 0.0], [-0.6, 0.0]):
        found = differences_of(
            plain_policy(propensities, 1), sums, np.array([0, 2]), np.array(first),
            np.zeros(2),
        )  # fmt: skip
        is_much = abs(first[0]) > 0.5
        assert found.unsupported.tolist() == [7 if is_much else 0]
        assert found.interactions().tolist() == [0 if is_much else 7]


def test_a_rounding_is_no_difference():
    """Two ways to the same weight must not ask for a propensity."""
    policies, sums, starts = two_sets()
    first = np.array([1.0, 0.1 + 0.2, 0.0, 1.0])
    second = np.array([0.0, 0.3, 0.0, 0.0])
    found = differences_of(policies, sums, starts, first, second)
    assert first[1] != second[1]
    assert found.unsupported.sum() == 0


def test_a_policy_that_says_nothing_of_a_set_leaves_the_others_as_they_are():
    """Nothing is known of that set."""
    policies, sums, starts = two_sets()
    first = np.array([np.nan, np.nan, np.nan, 1.0])
    found = differences_of(policies, sums, starts, first, np.zeros(4))
    assert found.unsupported.tolist() == [70, 0, 0]
    assert found.sums.totals.tolist() == [5.0]
    together = found.together()
    assert together.starts.tolist() == [0, 1]
    assert together.unsupported.tolist() == [70]


def test_weights_are_those_of_all_items():
    """One too few would be those of others."""
    policies, sums, starts = two_sets()
    with pytest.raises(ValueError, match="weights of a policy must be those of all"):
        differences_of(policies, sums, starts, np.zeros(3), np.zeros(4))


@pytest.mark.parametrize("beta", [np.zeros(3), BETA], ids=["position", "trust"])
def test_values_are_relevance_on_average(beta):
    """Each item by the lists of policies that could show it."""
    policy = policy_of(beta)
    mean = sum(
        chance * estimated_values(policy, sums_of(clicked), STARTS)
        for clicked, chance in clicked_lists(beta)
    )
    np.testing.assert_allclose(mean, RELEVANCE, atol=1e-12)


def test_values_weigh_policies_by_their_lists():
    """(clicks / rho of each) / lists of those that could show the item."""
    policies, sums, starts = two_sets()
    found = estimated_values(policies, sums, starts)
    expected = [(4 / 0.5 + 3 / 0.5) / 70, (3 / 0.25) / 60, np.nan, 5 / 5]
    np.testing.assert_allclose(found, expected)
