"""Placements of the recount, against enumeration and those of the fold."""

from itertools import permutations

import numpy as np
import pytest

from models.plackett_luce.placement import placement_batch
from streams.recount.placement import placements


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0, 30.0])
def test_placements_equal_enumeration(spread: float) -> None:
    """All lists of four of five items."""
    scores = (spread * np.array([0.1, 1.0, -0.4, 0.3, 0.9])).astype("<f4")
    weights = np.exp(scores.astype(np.float64))
    expected = np.zeros((5, 4))
    for ranking in permutations(range(5), 4):
        left, probability = weights.copy(), 1.0
        for item in ranking:
            probability *= left[item] / left.sum()
            left[item] = 0.0
        expected[ranking, np.arange(4)] += probability
    assert np.allclose(placements(scores.tobytes(), 4), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 60.0])
def test_placements_equal_those_of_the_fold(spread: float) -> None:
    """Forty items, ten ranks."""
    scores = np.random.default_rng(1).normal(0, spread, 40).astype("<f4")
    ours = placements(scores.tobytes(), 10)
    theirs = placement_batch(scores.astype(np.float64)[None], 10)[0]
    assert np.allclose(ours, theirs, rtol=0, atol=1e-9)
