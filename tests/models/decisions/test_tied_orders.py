"""Ties: what chance gives each item, by enumeration of all orders."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from models.decisions.tied_orders import (
    expected_weights,
    tied_orders,
)

CASES = [
    [0.0, 0.0, 0.0, 0.0],
    [1.0, 3.0, 2.0, 0.5],
    [2.0, 0.0, 2.0, 0.0],
    [np.nan, 0.0, -1.0, np.nan],
]


def orders_allowed(scores):
    """All orders that scores allow; what has none comes last."""
    known = [-np.inf if np.isnan(score) else score for score in scores]
    return [
        order
        for order in permutations(range(len(scores)))
        if all(known[a] >= known[b] for a, b in pairwise(order))
    ]


@pytest.mark.parametrize("n_ranks", [1, 3, 6])
@pytest.mark.parametrize("scores", CASES)
def test_expected_weights_are_means_over_all_orders(scores, n_ranks):
    """Each order that scores allow is as likely as any other."""
    weights = np.linspace(1.0, 0.3, n_ranks) ** 2
    padded = np.append(weights, np.zeros(len(scores)))
    allowed = orders_allowed(scores)
    expected = [
        np.mean([padded[order.index(item)] for order in allowed])
        for item in range(len(scores))
    ]
    starts = np.array([0, 1, 1 + len(scores)])
    orders = tied_orders(np.array([7.0, *scores]), starts)
    found = expected_weights(orders, weights)
    np.testing.assert_allclose(found, [weights[0], *expected], atol=1e-15)


def test_sets_are_ordered_each_by_itself():
    """An empty one among them too; items of a block rise."""
    scores = np.array([1.0, 1.0, 5.0, 2.0, 9.0])
    orders = tied_orders(scores, np.array([0, 2, 2, 5]))
    assert orders.of_set(0) == ([0, 1], [2])
    assert orders.of_set(1) == ([], [])
    assert orders.of_set(2) == ([2, 0, 1], [1, 1, 1])
