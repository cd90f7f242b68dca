"""NDCG by hand."""

from math import log2

import numpy as np
import pytest

from models.evaluation.ndcg import dcg, mean_ndcg, ndcg_of_ranking


def test_gain_and_discount_are_those_of_the_literature() -> None:
    """2^label - 1 over log2(rank + 1), cut at the cutoff."""
    labels = np.array([0, 2, 1])

    assert dcg(labels, 3) == pytest.approx(3 / log2(3) + 1 / log2(4))
    assert dcg(labels, 2) == pytest.approx(3 / log2(3))


def test_the_best_ranking_has_one_and_no_relevance_has_zero() -> None:
    """Ratios to the ideal list; a query without relevance counts 0."""
    labels = np.array([0, 2, 1])

    assert ndcg_of_ranking(labels, np.array([1, 2, 0]), 10) == pytest.approx(1.0)
    assert ndcg_of_ranking(np.zeros(3, int), np.array([0, 1]), 10) == 0.0


def test_the_mean_leaves_out_queries_without_relevant_documents() -> None:
    """Of two queries one counts; equal scores go by row."""
    labels = np.array([0, 0, 1, 0])
    offsets = np.array([0, 2, 4])

    assert mean_ndcg(labels, np.zeros(4), offsets, 10) == pytest.approx(1.0)
    scores = np.array([0.0, 0.0, -1.0, 0.0])
    assert mean_ndcg(labels, scores, offsets, 10) == pytest.approx(1 / log2(3))
