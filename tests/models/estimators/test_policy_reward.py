"""Rewards of policies by hand, alone and side by side."""

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.click_log import of_groups
from models.estimators.doubly_robust import doubly_robust
from models.estimators.intervention_aware import intervention_aware
from models.estimators.policy_reward import (
    click_weights_of,
    dcg_weights,
    look_weights,
    relevant_click_weights,
    reward_sums,
)
from tests.models.estimators.logs import lists_of, log_of
from tests.policies_in_memory import (
    Valuation,
    compare_policies,
    logged_placements,
    policy_reward,
)

CURVE = BiasCurve(np.array([0.6, 0.3]), np.array([0.2, 0.1]))
ROWS = [
    (0, 0, 0, 1, 40, 20, 40.0),
    (0, 0, 1, 2, 40, 8, 40.0),
    (1, 0, 0, 2, 20, 6, 20.0),
    (1, 0, 1, 1, 20, 9, 20.0),
]
LISTS = lists_of([[40, 40, 40]], [[20, 20, 20]])
ONES = np.ones(3)
SWAPPED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
LAST = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
# alpha: 24 + 6 and 12 + 12; beta 8 + 2 and 4 + 4.
FIRST, SECOND = (26 - 10) / 30, (17 - 8) / 24


def values():
    """Of three items, the last of which was never shown."""
    return intervention_aware(log_of(ROWS), LISTS, CURVE)


@pytest.mark.parametrize(
    ("weights", "reward"),
    [
        (click_weights_of(CURVE), 0.3 * FIRST + 0.6 * SECOND + 0.3),
        (relevant_click_weights(CURVE), 0.4 * FIRST + 0.8 * SECOND),
        (look_weights(CURVE), 0.3 * FIRST + 0.6 * SECOND),
        (dcg_weights(2), FIRST / np.log2(3) + SECOND),
    ],
)
def test_the_reward_is_what_items_at_ranks_are_worth(weights, reward):
    """Item 2 stands at a rank that nobody weighs."""
    found = policy_reward(values(), SWAPPED, weights, ONES)
    assert found.value == pytest.approx(reward, rel=1e-12)
    assert found.unsupported == 0.0


def test_what_has_no_value_is_told_by_share():
    """Item 2 at rank 1 is worth twice what item 0 at rank 2 is."""
    found = policy_reward(values(), LAST, look_weights(CURVE), ONES)
    assert found.value == pytest.approx(0.3 * FIRST, rel=1e-12)
    assert found.unsupported == pytest.approx(2 / 3)
    told = doubly_robust(log_of(ROWS), LISTS, CURVE, regression=0.5 * ONES)
    found = policy_reward(told, LAST, look_weights(CURVE), ONES)
    assert found.unsupported == pytest.approx(2 / 3)
    assert found.value == pytest.approx(0.3 * told.values[0] + 0.6 * 0.5)


def test_clicks_weigh_by_what_their_items_are_worth():
    """26 of .3 / 30, 17 of .6 / 24: and each query by its share."""
    found = policy_reward(values(), SWAPPED, look_weights(CURVE), ONES)
    first, second = 0.3 / 30, 0.6 / 24
    total = 26 * first + 17 * second
    assert found.largest_share == pytest.approx(second / total)
    squares = 26 * first**2 + 17 * second**2
    assert found.effective_clicks == pytest.approx(total**2 / squares)
    shares = np.array([0.75, 0.25, 0.25])
    weighed = policy_reward(values(), SWAPPED, look_weights(CURVE), shares)
    by_hand = 0.75 * 0.3 * FIRST + 0.25 * 0.6 * SECOND
    assert weighed.value == pytest.approx(by_hand, rel=1e-12)


def test_without_ranks_there_is_no_gain():
    """One at least."""
    with pytest.raises(ValueError, match="ranks must be 1 or more; got 0"):
        dcg_weights(0)


def test_nothing_is_worth_nothing():
    """A policy that shows nothing has no share without support."""
    found = policy_reward(values(), 0.0 * LAST, look_weights(CURVE), ONES)
    assert found[:2] == (0.0, 0.0)
    assert np.isnan(found.largest_share)
    assert found.effective_clicks == 0.0


# Groups of two items at two ranks: lists, and clicks of both at their ranks.
GROUPS = [(80, 20, 6), (120, 33, 12), (100, 22, 11), (60, 18, 3)]


def log_of_groups():
    """Half of the lists each way."""
    rows = [
        row
        for group, (n, top, low) in enumerate(GROUPS)
        for row in (
            (group, 0, 0, 1, n // 2, top, n / 2),
            (group, 0, 1, 2, n // 2, low, n / 2),
            (group, 0, 0, 2, n // 2, low, n / 2),
            (group, 0, 1, 1, n // 2, top // 2, n / 2),
        )
    ]
    return log_of(rows), lists_of(*([[n, n]] for n, *_ in GROUPS))


BEST, WORST = np.eye(2), np.eye(2)[::-1]
TOTALS = np.array([n for n, *_ in GROUPS], float)


def compared(curve_of, **options):
    """Two orders and what logged, under clicks."""
    log, lists = log_of_groups()
    targets = {
        "logged": logged_placements(log, lists, 2),
        "best": BEST,
        "worst": WORST,
    }
    how = Valuation(intervention_aware, curve_of, click_weights_of, np.ones(2))
    return compare_policies(log, lists, TOTALS, targets, how, **options)


def test_differences_are_paired():
    """Computed without each group like the rewards, not from their errors."""
    found = compared(lambda _: position_curve([1.0, 0.4]), base="logged")
    assert found.names == ("logged", "best", "worst")
    rewards = found.rewards.values
    np.testing.assert_allclose(found.differences.values, rewards - rewards[0])
    assert found.differences.errors[0] == 0.0
    without = found.rewards.without[:, 1] - found.rewards.without[:, 0]
    error = np.sqrt(0.75 * ((without - without.mean()) ** 2).sum())
    assert found.differences.errors[1] == pytest.approx(error, rel=1e-9)
    assert found.differences.errors[1] < 0.5 * found.rewards.errors[1]
    assert [point.value for point in found.points] == rewards.tolist()
    other = compared(lambda _: position_curve([1.0, 0.4]), base="worst").differences
    np.testing.assert_allclose(other.values, rewards - rewards[2])


def test_the_naive_mean_is_clicks_per_list():
    """With the error of a ratio of sums over groups."""
    found = compared(lambda _: position_curve([1.0, 0.4]), base="best").naive
    clicks = np.array([top + 2 * low + top // 2 for _, top, low in GROUPS])
    assert found.values[0] == pytest.approx(clicks.sum() / TOTALS.sum())
    rest = [(clicks.sum() - clicks[i]) / (TOTALS.sum() - TOTALS[i]) for i in range(4)]
    error = np.sqrt(0.75 * ((rest - np.mean(rest)) ** 2).sum())
    assert found.errors[0] == pytest.approx(error, rel=1e-9)


def test_what_the_curve_was_fitted_on_is_in_the_errors():
    """Each replicate fits it again: rewards of what logged hang on it less."""
    log, lists = log_of_groups()

    def fitted(is_kept):
        kept, _ = of_groups(log, lists, is_kept)
        rates = [kept.clicked[kept.ranks == r].sum() for r in (1, 2)]
        return position_curve([1.0, rates[1] / rates[0]])

    known = fitted(np.ones(4, np.bool_))
    again = compared(fitted, base="logged")
    once = compared(lambda _: known, base="logged")
    np.testing.assert_allclose(again.rewards.values, once.rewards.values)
    assert again.differences.errors[1] > 1.2 * once.differences.errors[1]


def test_a_base_that_is_no_target_is_refused():
    """With the names that are."""
    with pytest.raises(ValueError, match="logged, best, worst; got 'first'"):
        compared(lambda _: position_curve([1.0, 0.4]), base="first")


def test_parts_add_up_and_strangers_are_clicked_anyway():
    """What is none of the items is worth beta, and counts as unsupported."""
    weights, absent = click_weights_of(CURVE), np.array([1.0, 0.0])
    one = reward_sums(values(), 2.0 * SWAPPED, weights)
    other = reward_sums(values(), np.zeros((3, 2)), weights, absent)
    assert other.value == pytest.approx(0.2, rel=1e-12)
    found = one.plus(other).per_list(3.0)
    worth = 0.3 * FIRST + 0.6 * SECOND + 0.3
    assert found.value == pytest.approx((2.0 * worth + 0.2) / 3.0, rel=1e-12)
    assert found.unsupported == pytest.approx(0.6 / (2.0 * 0.9 + 0.6), rel=1e-12)
    assert found.largest_share == one.per_list(2.0).largest_share
    # Of two parts with clicks the heaviest click is that of the heavier one.
    twice = one.plus(one).per_list(4.0)
    assert twice.largest_share == pytest.approx(found.largest_share / 2.0, rel=1e-12)
    assert twice.effective_clicks == pytest.approx(2.0 * found.effective_clicks)
