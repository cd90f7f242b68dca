"""Counts by document and rank that the demonstration follows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from rankstream.lab.demonstration.demonstration import ExaminationCounts
from streams.stage import Change
from tests.models.counts.scope_values import ScopeValue
from tests.streams.statistics.statistics_records import (
    NAME,
    counted_record,
    scope_records,
)


def pipeline_with(*values: ScopeValue) -> Any:
    """What a pipeline gives of its state; a scope for each candidate set."""
    records = [counted_record()]
    for n, value in enumerate(values):
        records += scope_records(NAME._replace(candidate_set=bytes([n]) * 16), value)
    return SimpleNamespace(
        statistics=lambda: [Change("statistics", *pair) for pair in records]
    )


def test_documents_are_followed_over_sets_and_numbers() -> None:
    """Two lists in exchanged order, in sets that number them differently."""
    rng, items = np.random.default_rng(2), ("a", "b")
    values = ScopeValue(items), ScopeValue(items[::-1], most_lists=0, pieces=(1,))
    shown = 4_000
    for value in values:
        # Item 0 stands first: "a" in one scope, "b" in the other.
        liked = [0.8 if item == "a" else 0.4 for item in value.items]
        clicks = rng.random((shown, 2)) < np.array(liked) * (1.0, 0.5)
        value.take(
            [
                ClosedImpression(n % 2, [0, 1], {0: (np.flatnonzero(one) + 1).tolist()})
                for n, one in enumerate(clicks)
            ]
        )
    counts = ExaminationCounts(2)
    assert counts.estimate() is None
    counts.take(pipeline_with(values[0]))
    first = counts.estimate()
    assert first is not None
    assert np.isnan(first.ratios[1])
    for _ in range(2):
        counts.take(pipeline_with(*values))
        curve = counts.estimate()
        assert curve is not None
        assert curve.ratios[1] == pytest.approx(0.5, abs=0.03)
