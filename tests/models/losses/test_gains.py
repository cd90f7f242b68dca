"""Gains of labels, and labels that have none."""

import numpy as np
import pytest

from models.losses.gains import (
    binary_gains,
    exponential_gains,
    gains_of,
)


def test_gains_by_label() -> None:
    """Each document has that of its label."""
    labels = np.array([0, 2, 1, 2])

    assert gains_of(labels, exponential_gains(3)).tolist() == [0.0, 3.0, 1.0, 3.0]
    assert gains_of(labels, [0.0, 0.5, 1.0]).tolist() == [0.0, 1.0, 0.5, 1.0]
    assert gains_of(labels, binary_gains(3, 2)).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert gains_of(labels[:0], [0.0, 0.5, 1.0]).tolist() == []


@pytest.mark.parametrize("label", [3, -1])
def test_labels_beyond_the_gains_are_refused(label: int) -> None:
    """Rather than wrapped around, or left out."""
    with pytest.raises(ValueError, match=f"must lie in 0..2, .*; got {label}"):
        gains_of(np.array([0, label]), [0.0, 0.5, 1.0])


def test_gains_that_are_no_numbers_are_refused() -> None:
    """And thresholds that leave nothing relevant, or everything."""
    for gains in ([0.0, np.inf], [[1.0]], 1.0):
        with pytest.raises(ValueError, match="gains must be a finite number"):
            gains_of(np.array([0]), gains)
    for threshold in (0, 3):
        with pytest.raises(ValueError, match=rf"lie in 1..2, .*got {threshold}"):
            binary_gains(3, threshold)
