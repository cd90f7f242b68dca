"""Placement probabilities against the enumeration of every ranking."""

import itertools
import math

import numpy as np
import pytest

from models.plackett_luce import placement
from models.plackett_luce.placement import placement_batch
from tests.placed_list import placement_probabilities


def enumerated(scores: np.ndarray, cutoff: int) -> np.ndarray:
    """P(document at rank) by adding up all rankings, in log space."""
    n = len(scores)
    placements = np.zeros((n, cutoff))
    for ranking in itertools.permutations(range(n), cutoff):
        log_probability, rest = 0.0, set(range(n))
        for document in ranking:
            values = [scores[other] for other in rest]
            largest = max(values)
            total = sum(math.exp(value - largest) for value in values)
            log_probability += scores[document] - largest - math.log(total)
            rest.remove(document)
        for row, document in enumerate(ranking):
            placements[document, row] += math.exp(log_probability)
    return placements


@pytest.mark.parametrize("spread", [0, 1e-9, 1, 3, 10, 22, 40, 80, 150, 300])
@pytest.mark.parametrize(("n", "cutoff"), [(1, 1), (2, 2), (5, 5), (6, 3), (7, 7)])
def test_placements_equal_the_enumeration_of_all_rankings(
    spread: float, n: int, cutoff: int
) -> None:
    """Ordinary scores, trained ones, and near ties, to one in a billion."""
    rng = np.random.default_rng(n)
    scores = rng.random(n) * spread
    tied = np.sort(scores)
    tied[: n // 2] = tied[0] + 1e-7 * np.arange(n // 2)
    for values in (scores, tied, -tied):
        computed = placement_probabilities(values, cutoff)

        assert np.abs(computed - enumerated(values, cutoff)).max() < 1e-9


def test_a_coarser_rule_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a step four times as long the law above fails."""
    scores = np.random.default_rng(1).random(7) * 10
    monkeypatch.setattr(placement, "LARGEST_STEP", 0.96)
    monkeypatch.setattr(placement, "STEP_TIMES_ROOT", 2.72)
    coarse = placement_probabilities(scores, 7)

    assert np.abs(coarse - enumerated(scores, 7)).max() > 1e-6


def test_every_rank_holds_somebody_and_nobody_is_twice() -> None:
    """Columns sum to one; rows to at most one; with k = n to one."""
    scores = np.random.default_rng(2).standard_normal(125) * 4
    placements = placement_probabilities(scores, 10)
    full = placement_probabilities(scores[:20], 20)

    assert np.abs(placements.sum(axis=0) - 1).max() < 1e-10
    assert placements.sum(axis=1).max() < 1 + 1e-10
    assert np.abs(full.sum(axis=1) - 1).max() < 1e-10


def test_a_shift_of_all_scores_changes_nothing_that_matters() -> None:
    """Only differences count; a batch gives the same bits as its lists alone."""
    scores = np.random.default_rng(3).standard_normal((4, 30))
    batch = placement_batch(scores, 5)

    shifted = placement_batch(scores + 700.0, 5)

    assert np.abs(batch - shifted).max() < 1e-10
    assert (batch[2] == placement_probabilities(scores[2], 5)).all()


def test_many_documents_and_extreme_scores_are_survived() -> None:
    """Ten thousand documents; differences beyond what a float can exponentiate."""
    many = placement_probabilities(np.zeros(10_000), 3)
    extreme = placement_probabilities([0.0, -40.0, -800.0], 3)

    assert many == pytest.approx(np.full((10_000, 3), 1e-4), rel=1e-9)
    assert extreme == pytest.approx(np.eye(3), abs=1e-9)


def test_no_placement_is_negative() -> None:
    """Not even by a rounding, where scores leave next to no chance."""
    scores = np.random.default_rng(4).standard_normal((20, 10)) * 20

    assert placement_batch(scores, 10).min() >= 0


@pytest.mark.parametrize(
    ("scores", "cutoff"),
    [([0.0, np.nan], 1), ([0.0, np.inf], 1), ([0.0], 2), ([0.0], 0)],
)
def test_senseless_requests_are_refused(scores: list[float], cutoff: int) -> None:
    """Scores are finite, and no rank lies beyond the documents."""
    with pytest.raises(ValueError, match="must"):
        placement_probabilities(scores, cutoff)


@pytest.mark.parametrize("spread", [120.0, 3e9, 3e38])
def test_gaps_as_wide_as_floats_go_are_certain_and_soon_done(spread: float) -> None:
    """Whoever is far behind comes last; those who are close share as if alone."""
    scores = np.array([0.0, spread, 0.3, spread])
    found = placement_probabilities(scores, 4)
    pair = placement_probabilities([0.0, 0.3], 2)

    assert found[[1, 3], :2] == pytest.approx(np.full((2, 2), 0.5), abs=1e-12)
    assert found[[0, 2], 2:] == pytest.approx(pair, abs=1e-9)
    both = placement_batch(np.stack([scores, np.array([0.0, 0.1, 0.2, 0.3])]), 4)
    assert (both[1] == placement_probabilities([0.0, 0.1, 0.2, 0.3], 4)).all()
