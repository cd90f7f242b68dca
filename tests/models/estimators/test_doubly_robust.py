"""What groups are told by others, by hand."""

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.doubly_robust import item_regression
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


def test_one_group_is_told_nothing():
    """There is no other."""
    rows = [row for row in ROWS if row[0] == 0]
    assert not item_regression(log_of(rows), LISTS[:1], CURVE).any()
