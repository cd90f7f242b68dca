"""The benchmark decides what it says that it decides."""

import numpy as np

from rankstream.lab.benchmarks.decided_lists import UNKNOWN, store_of_decisions
from rankstream.lab.benchmarks.decisions import decided, evidence_from, statistics_of
from rankstream.lab.benchmarks.statistics import IMPRESSIONS
from rankstream.ranker import Ranker


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


def test_what_is_timed_finds_its_decisions() -> None:
    """Of half the queries without a tie, of the others with one, of one more none."""
    items = [f"item {row}" for row in range(20)]
    store = store_of_decisions(300, items)
    ranker = Ranker("m", store=store, decisions="d")
    assert ranker.refresh()
    features = np.ones((20, 10))
    for query, policy in (
        ("query 0", "deterministic"),
        ("query 1", "logged"),
        (UNKNOWN, "plackett-luce"),
    ):
        found = ranker.rank(features, query_id=query, items=items)
        assert found.policy == policy
