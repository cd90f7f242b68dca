"""Preferences follow the equation, for every click pattern."""

import itertools

import numpy as np

from models.click_preferences import preference_pairs


def test_pairs_are_those_of_the_equation() -> None:
    """Clicked i, unclicked j, and a click below j or directly above it."""
    for k in range(1, 9):
        for pattern in itertools.product([False, True], repeat=k):
            expected = {
                (i, j)
                for i in range(k)
                for j in range(k)
                if pattern[i]
                and not pattern[j]
                and (any(pattern[j + 1 :]) or (j > 0 and pattern[j - 1]))
            }
            pairs = preference_pairs(np.array(pattern)).tolist()

            assert len(pairs) == len(expected)
            assert {tuple(pair) for pair in pairs} == expected


def test_a_document_far_below_a_click_loses_if_a_later_one_is_clicked() -> None:
    """Clicks at 0 and 3 of six: 1, 2 and 4 lose against both."""
    clicks = np.array([True, False, False, True, False, False])

    assert preference_pairs(clicks).tolist() == [
        [0, 1],
        [0, 2],
        [0, 4],
        [3, 1],
        [3, 2],
        [3, 4],
    ]
