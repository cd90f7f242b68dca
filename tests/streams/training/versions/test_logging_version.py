"""Versions that draw lists of a comparison: what they are trained from, or refused."""

from typing import cast

import msgspec
import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from models.training.query_chunk import QueryChunk
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.training import TrainingSettings
from rankstream.settings import ExperimentSettings, Settings
from streams.training.curves.curve_estimator import CurveEnds
from streams.training.curves.known_curve import KnownCurve
from streams.training.gathering import Gathered
from streams.training.versions.logging_version import (
    as_credited,
    compared_queries,
    logging_version,
)

MODEL = ModelSettings(
    features=8, versions="trained", normalisation="none",
    training=TrainingSettings(cutoff=2),
)  # fmt: skip


def chunk_of(differences: list[float], values: list[float]) -> QueryChunk:
    """One query of items whose second feature is the difference."""
    n = len(differences)
    features = np.zeros((n, 3), np.float32)
    features[:, 1] = differences
    is_kept = np.isfinite(values)
    return QueryChunk(
        np.array([0, n]), features, np.where(is_kept, values, 7.0), is_kept, np.ones(1)
    )


def test_queries_of_all_chunks_have_values_and_differences() -> None:
    """Values lie in [0, 1]; of what is not known it is 0."""
    chunks = [chunk_of([0.5, -0.5], [1.5, np.nan]), chunk_of([0.25], [-0.1])]
    queries, features = compared_queries(chunks, np.array([1.0, 0.5]), 1)

    assert queries.offsets.tolist() == [0, 2, 3]
    assert queries.differences.tolist() == [0.5, -0.5, 0.25]
    assert queries.relevance.tolist() == [1.0, 0.0, 0.0]
    assert queries.query(1).examination.tolist() == [1.0]
    assert features.shape == (3, 3)


def test_differences_that_are_none_are_refused() -> None:
    """As where something else logged the features."""
    with pytest.raises(ValueError, match=r"differences must lie in \[-1, 1\]; got 3"):
        compared_queries([chunk_of([3.0], [0.5])], np.ones(1), 1)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (BiasCurve(np.ones(1), np.zeros(1), is_ratio_only=True), "1 ranks alone"),
        (BiasCurve(np.array([0.8, 0.5]), np.array([0.1, 0.05])), "with trust bias"),
    ],
)
def test_curves_that_do_not_say_who_looks_are_refused(
    curve: BiasCurve, said: str
) -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match=said):
        logging_version(MODEL, np.zeros(8), cast("Gathered", None), curve, print)


class OneChunk:
    """What was gathered: two items, in which rankers agree, or differ."""

    def __init__(self, differences: tuple[float, float] = (0.0, 0.0)) -> None:
        self._differences = differences

    def chunks(self, least_support: float) -> tuple[list[QueryChunk], list[QueryChunk]]:
        """Training and held-out queries."""
        assert least_support > 0.0
        features = np.zeros((2, 8), np.float32)
        features[:, 1] = self._differences
        known = np.ones(2, np.bool_)
        values = np.full(2, 0.5)
        one = QueryChunk(np.array([0, 2]), features, values, known, np.ones(1))
        return [one], [one]


@pytest.mark.parametrize("is_ratio_only", [False, True])
def test_rankers_that_are_equal_are_told_so(is_ratio_only: bool) -> None:
    """Nothing is optimised where there is no variance; curves in ratios will do."""
    gathered = cast("Gathered", OneChunk())
    curve = BiasCurve(np.array([1.0, 0.5]), np.zeros(2), is_ratio_only)
    with pytest.raises(ValueError, match="their difference has no variance"):
        logging_version(MODEL, np.zeros(8), gathered, curve, print)


@pytest.mark.parametrize(
    ("examination", "said"),
    [
        ([1.0, 0.5], ""),
        ([0.5, 0.25], ""),
        ([1.0, 0.3], "experiments.boost credits lists by an examination"),
    ],
)
def test_a_curve_that_lists_are_not_credited_by_is_said(
    examination: list[float], said: str
) -> None:
    """In the record of the training, with the ranks; scale does not matter."""
    curve = BiasCurve(np.array([1.0, 0.48, 0.3]), np.zeros(3), is_ratio_only=True)
    ends = CurveEnds(np.array([1.0, 0.4, 0.2]), np.array([1.0, 0.6, 0.4]))
    known = KnownCurve(curve, "looks@0.1", (12,), "", ends)
    experiment = ExperimentSettings(
        rankers={"a": "", "b": ""}, method="logging-policy", length=2,
        options={"model": "lists", "examination": examination},
    )  # fmt: skip
    settings = Settings(experiments={"boost": experiment})
    found = as_credited("lists", settings, known)
    assert found.warning.startswith(said)
    assert found.warning.endswith("ranks 2" if said else "")
    assert bool(found.warning) == bool(said)
    assert as_credited("other", settings, known).warning == ""
    without = as_credited("lists", settings, known._replace(ends=None))
    assert without.warning == found.warning


def test_the_floor_is_that_of_the_settings_over_a_look_at_rank_1() -> None:
    """Two items of .3 each do not come first in 1.2 of the lists."""
    training = msgspec.structs.replace(MODEL.training, floor=0.3)
    model = msgspec.structs.replace(MODEL, training=training)
    gathered = cast("Gathered", OneChunk((0.5, -0.5)))
    curve = position_curve([0.5, 0.25])
    with pytest.raises(ValueError, match=r"at most 0.5 for 2 items .*; got 0.6: lower"):
        logging_version(model, np.zeros(8), gathered, curve, print)
