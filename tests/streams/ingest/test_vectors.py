"""Numbers of input events, where they are only just right."""

import numpy as np
import pytest

from rankstream.wire.events import LOGGED
from streams.ingest.refusal import Refused
from streams.ingest.vectors import SUM_TOLERANCE, exposures_of


@pytest.mark.parametrize("shape", [(1, 2), (2, 1)])
def test_exposures_may_sum_to_the_tolerance_and_no_further(
    shape: tuple[int, int],
) -> None:
    """In rows, and in columns: sums of float32 are off by a little."""
    most = np.float32(1.0 + SUM_TOLERANCE)
    beyond = np.nextafter(most, np.float32(2.0))
    order = np.arange(shape[0])

    assert exposures_of([0.0, float(most)], order, shape, LOGGED)
    with pytest.raises(Refused, match="sum to at most 1"):
        exposures_of([0.0, float(beyond)], order, shape, LOGGED)
