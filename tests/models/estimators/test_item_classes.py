"""Items that count as one, by what their ids share."""

import numpy as np

from models.estimators.item_classes import item_classes


def test_ids_equal_before_the_first_mark_are_one_class() -> None:
    """The first one ends it; without a mark an item is alone."""
    found = item_classes(["b#2", "a#1", "b#1#9", "b", "a/b#1", "#7"])

    assert found.names == ("", "a", "a/b", "b")
    np.testing.assert_array_equal(found.numbers, [3, 1, 3, 3, 2, 0])


def test_counts_of_classes_are_those_of_their_items() -> None:
    """Added up by number; nothing is lost, and no items give no class."""
    items, clicks = ["x#1", "y#2", "x#3"], np.array([2.0, 5.0, 7.0])
    found = item_classes(items)

    assert np.bincount(found.numbers, clicks).tolist() == [9.0, 5.0]
    assert item_classes([]).numbers.tolist() == []
