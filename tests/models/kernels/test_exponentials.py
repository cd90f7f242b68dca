"""Many exponentials at once are as good as the library's one by one."""

import numpy as np

from models.kernels.exponentials import fill_exponentials


def test_exponentials_agree_with_the_library_to_the_last_places() -> None:
    """Over the whole range of normal numbers, and 0 below it."""
    rng = np.random.default_rng(0)
    values = 3.0 - np.concatenate([[0.0, 1e-300, 707.9], 707.0 * rng.random(5_000)])
    found = np.empty(len(values))
    beneath = np.empty(3)

    fill_exponentials(values, 3.0, found)
    fill_exponentials(np.array([-706.0, -1e300, -np.inf]), 3.0, beneath)

    assert found[0] == 1.0
    assert np.abs(found / np.exp(values - 3.0) - 1.0).max() < 1e-15
    assert not beneath.any()
