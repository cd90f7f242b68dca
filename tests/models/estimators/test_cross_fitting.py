"""What groups are told by others, by hand."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.cross_fitting import item_regression, rank_regression
from tests.models.estimators.logs import lists_of, log_of

CURVE = BiasCurve(np.array([0.8, 0.4]), np.array([0.1, 0.05]))
ROWS = [
    (0, 0, 0, 1, 10, 6, 9.0),
    (0, 0, 1, 2, 10, 2, 8.0),
    (1, 0, 0, 2, 20, 9, 15.0),
]
LISTS = lists_of([[10, 10, 10]], [[20, 20, 20]])


def test_items_are_told_by_their_clicks_in_other_groups():
    """Group 0 by group 1: (9 - 1 + m) / (8 + 1) with m of 8 / 8; others m / 1."""
    found = item_regression(log_of(ROWS), LISTS, CURVE)
    mean = (5.0 + 1.5) / (8.0 + 4.0)
    by_hand = [
        [1.0, 1.0, 1.0],
        [(5.0 + mean) / 9.0, (1.5 + mean) / 5.0, mean],
    ]
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_items_are_told_by_the_ranks_at_which_they_are():
    """Rank 1 of group 0: 5 / 8; rank 2: 1.5 / 4; item 0 is at both."""
    found = rank_regression(log_of(ROWS), LISTS, CURVE)
    first, second = 9 * 0.8, 15 * 0.4
    of_zero = (5 / 8 * first + 1.5 / 4 * second) / (first + second)
    # Group 1 says nothing of rank 1.
    by_other = 8 / 8 * second / (first + second)
    np.testing.assert_allclose(
        found, [[by_other, 1.0, 0.0], [of_zero, 1.5 / 4, 0.0]], rtol=1e-12
    )


def test_one_group_is_told_nothing():
    """There is no other."""
    rows = [row for row in ROWS if row[0] == 0]
    for regress in (item_regression, rank_regression):
        assert not regress(log_of(rows), LISTS[:1], CURVE).any()
