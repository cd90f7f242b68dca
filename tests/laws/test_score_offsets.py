"""Only differences of scores matter, however far from 0 all of them lie together."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from models.learners.coltr import placement_logs
from models.learners.pl_rank import rank_weights
from models.learners.reversed_pairs import PLAIN, Pairs, logged_pair_coefficients
from models.plackett_luce.list_gradient import add_list_gradient, score_gradient
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.plackett_luce.placement import placement_batch
from rankstream.lab.closed_loops.linear_pdgd_loop import list_coefficients
from rankstream.ranking.scoring import draw_list
from streams.recount.placement import placements
from tests.placed_list import placement_probabilities

Floats = npt.NDArray[np.float64]

SHOWN = np.array([4, 0, 2, 5])
CLICKS = np.array([False, True, False, True])
PRESENT = np.array([0.3, -0.2, 0.8, 0.1])


def scores_at(offset: float) -> tuple[Floats, Floats]:
    """Scores, and the same plus an offset, not rounded."""
    unit = max(float(np.spacing(abs(offset))), 2.0**-20)
    scores = np.round(np.array([0.3, -1.1, 0.9, 0.0, 1.7, -0.4]) / unit) * unit
    scores[3:5] += 2 * unit
    shifted = scores + offset
    assert (shifted - offset == scores).all()
    assert (np.diff(shifted) == np.diff(scores)).all()
    return scores, shifted


def sampled(scores: Floats) -> Floats:
    """A list, and the mass below it."""
    rows = np.empty(3, np.int64)
    scratch = np.empty(len(scores)), np.empty(-(-len(scores) // BLOCK))
    below = sample_list(scores, *scratch, rows, np.random.default_rng(4))
    return np.array([*rows, below])


def pair_coefficients(scores: Floats, far: float = 0.0) -> Floats:
    """Of the learner's kernel; `far` sends one document out of the range of exp."""
    moved = scores - far * (np.arange(len(scores)) == SHOWN[-1])
    found = np.zeros(len(SHOWN))
    logged_pair_coefficients(moved, SHOWN, CLICKS, PRESENT, found, Pairs(True, True))
    return found


def loop_coefficients(scores: Floats) -> Floats:
    """Of the closed loop's kernel, with the mass below the cut as it samples it."""
    top = scores.max()
    below = np.exp(np.delete(scores, SHOWN) - top).sum()
    found = np.empty(len(SHOWN))
    list_coefficients(scores, SHOWN, CLICKS, below, found)
    return found


def list_gradient(scores: Floats) -> Floats:
    """What one list says of PL-Rank's gradient."""
    found = np.zeros(len(scores))
    relevance = np.arange(len(scores)) / 10.0
    add_list_gradient(scores, relevance, rank_weights(len(SHOWN)), SHOWN, found)
    return found


def sampled_gradient(scores: Floats) -> Floats:
    """PL-Rank's own."""
    return score_gradient(
        scores,
        np.arange(len(scores)) / 10.0,
        rank_weights(3),
        n_samples=20,
        rng=np.random.default_rng(5),
    )


RESULTS: dict[str, Callable[[Floats], Floats]] = {
    "placements": lambda scores: placement_probabilities(scores, len(scores)),
    "placements of the first ranks": lambda scores: placement_probabilities(scores, 2),
    "batch": lambda scores: placement_batch(np.stack([scores, scores[::-1]]), 3),
    "sampled list": sampled,
    "pairs": pair_coefficients,
    "pairs far apart": lambda scores: pair_coefficients(scores, 2.0**10),
    "pairs of the closed loop": loop_coefficients,
    "gradient of a list": list_gradient,
    "sampled gradient": sampled_gradient,
    "logs of a list": lambda scores: placement_logs(scores, SHOWN),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("offset", [700.0, -1e5, 1e9, 1.7e12, -1.7e12, 1e17])
def test_an_offset_of_all_scores_changes_no_bit(name: str, offset: float) -> None:
    """Where scores plus the offset are floats, everything is as without."""
    scores, shifted = scores_at(offset)

    assert RESULTS[name](shifted).tolist() == RESULTS[name](scores).tolist()


@pytest.mark.parametrize("offset", [0.0, 1e9, 1.7e12, 1e17, 1e300])
def test_every_rank_holds_one_document_at_any_offset(offset: float) -> None:
    """Columns sum to 1; of equal scores all are equally likely everywhere."""
    equal = placement_probabilities(np.full(6, offset), 6)

    assert equal == pytest.approx(np.full((6, 6), 1 / 6), rel=1e-10)
    if offset < 1e300:
        found = placement_probabilities(scores_at(offset)[1], 6)
        assert found.sum(axis=0) == pytest.approx(np.ones(6), abs=1e-10)


@pytest.mark.parametrize("offset", [2.0**17, 2.0**30, 2.0**40, 2.0**57])
def test_a_recount_places_logged_scores_alike(offset: float) -> None:
    """They are float32, and what is left of their differences is all there is."""
    unit = float(np.spacing(np.float32(offset)))
    scores = (unit * np.array([0.0, 3.0, 1.0, 0.0, 40.0])).astype("<f4")
    shifted = scores + np.float32(offset)
    assert (shifted - np.float32(offset) == scores).all()
    found = placements(shifted.tobytes(), 4)

    assert found.tolist() == placements(scores.tobytes(), 4).tolist()
    ours = placement_probabilities(shifted, 4)
    assert found == pytest.approx(ours, abs=1e-9)
    assert ours.tolist() == placement_probabilities(scores, 4).tolist()


@pytest.mark.parametrize("offset", [1.7e12, 1e17, 3e38])
def test_equal_scores_are_drawn_in_any_order_at_any_offset(offset: float) -> None:
    """The noise of a draw is not lost beside them."""
    equal = np.full(4, offset, np.float32)
    for seed in range(40):
        near, far = (
            draw_list(scores, cutoff=4, policy="plackett-luce", seed=seed).tolist()
            for scores in (np.zeros(4, np.float32), equal)
        )
        assert far == near


def test_documents_without_a_finite_score_are_drawn_as_ever() -> None:
    """Infinite ones at the ends; one that is no number last, and nobody else moves."""

    def drawn(*scores: float) -> list[int]:
        values = np.array(scores, np.float32)
        order = draw_list(values, cutoff=3, policy="plackett-luce", seed=3)
        return [int(row) for row in order]

    assert drawn(0.0, np.inf, -np.inf) == [1, 0, 2]
    assert drawn(np.inf, 0.0, np.inf) == [0, 2, 1]
    assert drawn(np.nan, 5.0, 500.0) == [2, 1, 0]
    assert drawn() == []


def test_pairs_that_are_compared_are_those_of_the_definition() -> None:
    """The coefficients above are not all 0."""
    scores, _ = scores_at(0.0)
    found = np.zeros(len(SHOWN))
    n_pairs = logged_pair_coefficients(scores, SHOWN, CLICKS, PRESENT, found, PLAIN)

    assert n_pairs == 4
    assert np.abs(found).min() > 0.0
