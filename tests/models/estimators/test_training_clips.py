"""Least averages in training, by the numbers that were printed."""

import numpy as np
import pytest

from models.estimators.training_clips import (
    TOP_K_CLIPS,
    least_average,
    least_of_top_k,
    shares_of,
)


@pytest.mark.parametrize(
    ("name", "largest"), [("yahoo", 501), ("mslr", 1149), ("istella", 121)]
)
def test_the_largest_weights_of_a_hundred_million_lists(name, largest):
    """And never less than 1."""
    clip = TOP_K_CLIPS[name]
    assert 1 / least_of_top_k(10**8, clip) == pytest.approx(largest)
    assert least_of_top_k(1, TOP_K_CLIPS["istella"]) == 1.0
    assert least_of_top_k(10**4, clip) == 1.0


def test_least_averages_fall_with_the_root_of_lists():
    """10 / sqrt(N), at most 1; nothing is trained on no lists."""
    assert [least_average(n) for n in (1, 100, 10_000)] == [1.0, 1.0, 0.1]
    for wrong in (
        lambda: least_average(0),
        lambda: least_of_top_k(0, TOP_K_CLIPS["mslr"]),
    ):
        with pytest.raises(ValueError, match="1 or more; got 0"):
            wrong()


def test_shares_have_a_sum_of_one():
    """What has no value has none of it."""
    nothing = float("nan")
    assert shares_of(np.array([3.0, nothing, 1.0])).tolist() == [0.75, 0.0, 0.25]
    assert shares_of(np.array([nothing, 0.0])).tolist() == [0.0, 0.0]
