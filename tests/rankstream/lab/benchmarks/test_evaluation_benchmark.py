"""The rivals of the benchmark compute the same numbers by other means."""

import numpy as np
import pytest

from models.interleaving.pairwise_preference import LARGEST_WEIGHT, preferences
from models.interleaving.probabilistic import assignment_shares, expected_signs
from rankstream.lab.benchmarks.evaluation import (
    cases_of,
    listing_preferences,
    measure,
    sampled_preferences,
    vectorised_preferences,
)


@pytest.mark.parametrize("n_rankers", [2, 7, 40])
@pytest.mark.parametrize("n_clicks", [1, 3, 6])
def test_the_listing_and_its_vectors_give_the_same_matrix(
    n_rankers: int, n_clicks: int
) -> None:
    """Forty lists each."""
    for case in cases_of(n_rankers, n_clicks):
        ours = preferences(*case, LARGEST_WEIGHT, False)

        for rival in (listing_preferences, vectorised_preferences):
            assert ours == pytest.approx(rival(*case), rel=1e-9, abs=1e-9)


def test_sampled_assignments_approach_the_exact_expectation() -> None:
    """A hundred thousand of them, to three digits."""
    rng = np.random.default_rng(0)
    for case in cases_of(6, 4)[:5]:
        shares = assignment_shares(*case, 3.0)
        sampled = sampled_preferences(shares, 100_000, rng)

        assert np.abs(sampled - expected_signs(shares)).max() < 0.015


def test_all_figures_are_there_and_valid() -> None:
    """A quick run: no ratio is void."""
    figures = measure(quick=True)

    assert len(figures) == 12
    assert all(figure["ratio"] is not None for figure in figures)
