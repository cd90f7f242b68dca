"""Which impressions sums of preferences take."""

import numpy as np
import pytest

from models.evaluation.sums import LARGEST_BOUND, N_CLASSES, PreferenceSums


@pytest.mark.parametrize("share", [1.0, -0.5])
def test_the_largest_bound_is_counted_and_nothing_beyond(share: float) -> None:
    """It is in the last class; what is not counted changes nothing."""
    sums, untouched = PreferenceSums.empty(2, 1), PreferenceSums.empty(2, 1)
    sides = np.array([[0.0, 1.0], [1.0, 0.0]])
    beyond = np.nextafter(LARGEST_BOUND, np.inf) * sides
    signs = np.array([[0.0, 1.0], [-1.0, 0.0]])

    assert not sums.add(signs, beyond, 0)
    for mine, empty in zip(sums.arrays(), untouched.arrays(), strict=True):
        assert mine.tolist() == empty.tolist()
    assert sums.add(share * LARGEST_BOUND * signs, LARGEST_BOUND * sides, 0)
    assert sums.possible.nonzero()[1].tolist() == [N_CLASSES - 1]
    assert sums.mean().tolist() == [share * LARGEST_BOUND]
