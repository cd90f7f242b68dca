"""The average relevant position by its definition, with ties and small queries."""

import itertools

import numpy as np
import pytest

from models.evaluation.relevant_position import (
    average_relevant_position,
    expected_ranks,
)

OFFSETS = np.array([0, 4, 4, 5, 12])


def by_counting(scores: np.ndarray) -> list[float]:
    """Who is above, and half of who is beside, row by row."""
    ranks = []
    for begin, end in itertools.pairwise(OFFSETS):
        own = scores[begin:end]
        ranks += [
            1.0 + (own > score).sum() + ((own == score).sum() - 1.0) / 2.0
            for score in own
        ]
    return ranks


@pytest.mark.parametrize("n_scores", [1, 2, 4, 99])
def test_ranks_are_those_of_counting(n_scores: int) -> None:
    """Ties end with their query, of which one has no document and one has one."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, n_scores, 12).astype(float)

        assert expected_ranks(scores, OFFSETS).tolist() == by_counting(scores)


def test_only_what_is_relevant_counts_and_each_the_same() -> None:
    """Over all queries together; nothing where nothing is relevant."""
    scores = np.array([3.0, 1.0, 2.0, 1.0, 9.0, *range(7)])
    is_relevant = np.zeros(12, bool)
    is_relevant[[0, 1, 5]] = True

    # Ranks 1, 3.5 and 7.
    assert average_relevant_position(is_relevant, scores, OFFSETS) == pytest.approx(
        11.5 / 3.0
    )
    assert np.isnan(average_relevant_position(np.zeros(12, bool), scores, OFFSETS))
    assert np.isnan(
        average_relevant_position(np.zeros(0, bool), np.zeros(0), np.array([0]))
    )
