"""Logged exposures keep their values in either form, and take the shorter one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.wire.exposures import pack_exposures, unpack_exposures


@given(
    st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0, 1)
)
def test_exposures_are_what_they_were(n_items, n_ranks, seed, share):
    """Dense or not, every number comes back, in at most the dense form's bytes."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((n_items, n_ranks), np.float32)
    matrix[rng.random(matrix.shape) < share] = 0

    packed = pack_exposures(matrix)

    assert np.array_equal(unpack_exposures(packed, n_items, n_ranks), matrix)
    assert len(packed) == min(
        matrix.nbytes, 8 * np.count_nonzero(matrix) or matrix.nbytes
    )


@pytest.mark.parametrize("n_swapped", [2, 10])
def test_a_few_swapped_places_are_short(n_swapped):
    """A list of ten out of twenty, with some places that swap: 8 bytes a chance."""
    matrix = np.zeros((20, 10), np.float32)
    matrix[np.arange(10), np.arange(10)] = 1
    for rank in range(0, n_swapped, 2):
        matrix[rank : rank + 2, rank : rank + 2] = 0.5

    assert len(pack_exposures(matrix)) == 8 * (10 + n_swapped)
