"""What rankings are worth by estimated values."""

import itertools

import numpy as np
import pytest

from models.losses.ranking_worth import METRICS, query_worths, worths_of


@pytest.mark.parametrize("metric", METRICS)
def test_ties_have_the_mean_of_all_their_orders(metric: str) -> None:
    """Of known values alone; others have their ranks. The cutoff parts the last."""
    scores = np.array([1.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    values = np.array([0.5, -1.0, 3.0, np.nan, 0.25, 2.0])
    is_kept = np.isfinite(values)
    worths = worths_of(metric, 6 if metric == "arp" else 4)
    by_rank = np.zeros(6)
    by_rank[: len(worths)] = worths
    orders = [
        float(by_rank @ np.nan_to_num(values[list(order)]))
        for order in itertools.permutations(range(6))
        if (np.diff(scores[list(order)]) <= 0.0).all()
    ]
    offsets = np.array([0, 6, 6, 12])
    found = query_worths(
        np.tile(scores, 2), np.tile(values, 2), np.tile(is_kept, 2), offsets, worths
    )

    assert found == pytest.approx([np.mean(orders), 0.0, np.mean(orders)])


def test_metrics_are_those_of_their_names() -> None:
    """Of a list with one relevant item at rank 2."""
    scores, values = np.array([0.5, 1.0, 0.2]), np.array([1.0, 0.0, 0.0])
    found = {
        metric: query_worths(
            scores, values, np.ones(3, bool), np.array([0, 3]), worths_of(metric, 3)
        )[0]
        for metric in METRICS
    }

    assert found == {
        "dcg": pytest.approx(1.0 / np.log2(3.0)),
        "precision": pytest.approx(1.0 / 3.0),
        "arp": -2.0,
    }


def test_what_cannot_be_valued_is_refused() -> None:
    """No such metric, no ranks, scores that are no numbers."""
    with pytest.raises(ValueError, match=r"metric must be one of dcg, .* got 'map'"):
        worths_of("map", 3)
    with pytest.raises(ValueError, match="a whole number, at least 1; got 0"):
        worths_of("dcg", 0)
    with pytest.raises(ValueError, match="scores of rankings must be finite; got nan"):
        query_worths(
            np.array([np.nan]), np.ones(1), np.ones(1, bool), np.array([0, 1]),
            np.ones(1),
        )  # fmt: skip
