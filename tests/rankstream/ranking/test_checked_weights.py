"""Numbers of a snapshot that a service cannot use."""

import numpy as np
import pytest

from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import SnapshotError
from tests.snapshot_factory import snapshot


@pytest.mark.parametrize("name", ["weights", "shift", "scale"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_one_number_that_is_not_finite_spoils_all(name: str, number: float) -> None:
    """Though the others could be used."""
    fields = {name: np.array([1.0, number, 2.0], "<f4").tobytes()}
    with pytest.raises(SnapshotError, match=f"{name} of 0.1 must be finite") as refused:
        checked_weights(snapshot(1, **fields), None)
    assert refused.value.reason == "weights"
