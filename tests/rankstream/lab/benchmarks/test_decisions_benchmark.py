"""The benchmark decides what it says that it decides."""

from rankstream.lab.benchmarks.decisions import decided, evidence_from, statistics_of
from rankstream.lab.benchmarks.statistics import IMPRESSIONS


def test_all_queries_have_evidence() -> None:
    """Of all three policies, in groups for training and for selection."""
    evidence = evidence_from(statistics_of(6, 1))
    assert len(evidence.sets.queries) == 6
    assert not evidence.refused
    lists = [
        side.interactions.sum() for side in (evidence.training, evidence.selection)
    ]
    assert 0.6 * 6 * IMPRESSIONS < sum(lists) <= 6 * IMPRESSIONS
    found = decided(evidence)
    assert len(found.chosen) == 6
    assert found.over_general.differences.interactions().sum() > 0
