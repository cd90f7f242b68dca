"""Features of one query on one scale."""

import numpy as np
import pytest

from models.rankers.normalisation import NORMALISATIONS, normalised

FEATURES = np.array([[1.0, 7.0, -2.0], [3.0, 7.0, 0.0], [2.0, 7.0, 6.0]])


def test_min_max_runs_from_0_to_1_and_constants_are_0() -> None:
    """Each feature by itself."""
    expected = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.25], [0.5, 0.0, 1.0]]

    assert normalised(FEATURES, how="min-max").tolist() == expected


def test_standard_has_mean_0_and_deviation_1_and_constants_are_0() -> None:
    """A constant that rounds badly is still a constant."""
    rounding = np.full((3, 1), 0.1)

    scaled = normalised(np.hstack([FEATURES, rounding]), how="standard")

    assert scaled.mean(axis=0) == pytest.approx(0.0, abs=1e-15)
    assert scaled.std(axis=0) == pytest.approx([1.0, 0.0, 1.0, 0.0])


def test_every_way_takes_one_document_or_none() -> None:
    """Shapes stay; a single document is constant in everything."""
    for how in NORMALISATIONS:
        assert normalised(FEATURES[:0], how=how).shape == (0, 3)
        if how != "none":
            assert not normalised(FEATURES[:1], how=how).any()


def test_unknown_ways_raise_and_none_changes_nothing() -> None:
    """The names are those of settings."""
    assert normalised(FEATURES, how="none").tolist() == FEATURES.tolist()
    with pytest.raises(ValueError, match="how must be one of"):
        normalised(FEATURES, how="rank")
