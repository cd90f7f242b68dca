"""Placements in C against their definition, bit by bit."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from models.plackett_luce.placement import placement_batch
from streams.native.compiler import compile_into
from streams.native.core_library import loaded
from streams.native.placing import Floats, placements_of_scores

SHAPES = [(1, 1), (2, 1), (2, 2), (7, 3), (20, 10), (40, 10), (40, 40), (70, 5)]
SPREADS = [0.0, 1.0, 10.0, 60.0, 600.0, 3e4]


def lists_of(n_documents: int, spread: float) -> Floats:
    """A list without a tie, one of two levels, and one of normal scores."""
    rng = np.random.default_rng(n_documents)
    plain = rng.random((3, n_documents)) * spread
    plain[1] = np.round(plain[1] / max(spread, 1.0)) * spread
    plain[2] = rng.standard_normal(n_documents) * spread / 5.0
    return plain


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("n_documents", "cutoff"), SHAPES)
def test_all_bits_are_those_of_the_definition(
    n_documents: int, cutoff: int, spread: float
) -> None:
    """Ordinary scores, ties, and gaps that are taken as certain."""
    scores = lists_of(n_documents, spread)

    expected = placement_batch(scores, cutoff)
    assert expected.tolist() == placements_of_scores(scores, cutoff).tolist()


def test_many_documents_and_scores_at_the_ends_of_floats_are_survived() -> None:
    """Differences that are no number, and lists for which memory grows."""
    ends = np.array([[1.7e308, -1.7e308, 0.0, -0.0]])
    many = np.random.default_rng(1).standard_normal((1, 2_000))
    for scores, cutoff in ((ends, 4), (many, 3), (ends, 2)):
        expected = placement_batch(scores, cutoff)
        assert expected.tolist() == placements_of_scores(scores, cutoff).tolist()


def test_narrow_registers_give_the_same_bits(tmp_path: Path) -> None:
    """Those that every processor has, whatever this one can do."""
    narrow = loaded(compile_into(tmp_path, "-DNARROW"))
    place, number = ctypes.c_void_p, ctypes.c_int64
    narrow.fold_placements.argtypes = (place, number, number, number, place)
    for spread in SPREADS:
        scores = lists_of(40, spread)
        found = np.empty((3, 40, 10))
        narrow.fold_placements(scores.ctypes.data, 3, 40, 10, found.ctypes.data)
        assert placements_of_scores(scores, 10).tolist() == found.tolist()


@pytest.mark.parametrize(
    ("scores", "cutoff"), [([[0.0, np.nan]], 1), ([[0.0]], 2), ([0.0, 0.0], 1)]
)
def test_senseless_requests_are_refused(scores: list[float], cutoff: int) -> None:
    """As the definition refuses them."""
    with pytest.raises(ValueError, match="must"):
        placements_of_scores(np.array(scores), cutoff)
