"""Selection on held-out clicks is unbiased, and its errors are what they say."""

import itertools

import numpy as np
import pytest

from models.losses.ranking_worth import query_worths, worths_of
from models.losses.selection import select

RELEVANCE = np.array([0.9, 0.2, 0.6])
LOOKS = np.array([1.0, 0.5])
"""P(rank is looked at), of the two ranks that are shown."""


def test_the_mean_over_all_logs_is_the_metric() -> None:
    """One list of two of three documents, drawn at random, and all clicks on it.

    Values are clicks over P(the document is looked at); every ranking's DCG@2 has the
    true one as its mean, and so have differences.
    """
    orders = [*itertools.permutations(range(3), 2)]
    propensity = np.array(
        [
            sum(LOOKS[order.index(d)] for order in orders if d in order) / len(orders)
            for d in range(3)
        ]
    )
    worths, known, offsets = worths_of("dcg", 2), np.ones(3, bool), np.array([0, 3])
    rankers = {
        "one": np.array([3.0, 2.0, 1.0]),
        "other": np.array([1.0, 2.0, 3.0]),
        "ties": np.array([1.0, 1.0, 0.0]),
    }
    mean = dict.fromkeys(rankers, 0.0)
    ahead = 0.0
    for order in orders:
        for clicks in itertools.product((0, 1), repeat=2):
            chance = 1.0 / len(orders)
            values = np.zeros(3)
            for rank, (row, clicked) in enumerate(zip(order, clicks, strict=True)):
                likely = LOOKS[rank] * RELEVANCE[row]
                chance *= likely if clicked else 1.0 - likely
                values[row] = clicked / propensity[row]
            found = select(
                {
                    name: query_worths(scores, values, known, offsets, worths)
                    for name, scores in rankers.items()
                },
                np.ones(1),
            )
            for name, value in zip(found.names, found.values, strict=True):
                mean[name] += chance * value
            ahead += chance * (found.values[0] - found.values[1])

    true = {
        name: query_worths(scores, RELEVANCE, known, offsets, worths)[0]
        for name, scores in rankers.items()
    }
    assert mean == pytest.approx(true)
    assert ahead == pytest.approx(true["one"] - true["other"])


def test_errors_are_the_spread_over_many_logs() -> None:
    """Of values, and of differences, which are known better as queries are shared."""
    rng = np.random.default_rng(6)
    n_logs, n_queries = 600, 40
    values, ahead, errors, behind_errors = [], [], [], []
    for _ in range(n_logs):
        shares = rng.integers(1, 5, n_queries).astype(float)
        hard = rng.normal(size=n_queries)
        drawn = {
            "good": 1.0 + hard + 0.4 * rng.normal(size=n_queries),
            "bad": hard + 0.4 * rng.normal(size=n_queries),
        }
        found = select(drawn, shares)
        values.append(found.values[0])
        ahead.append(found.behind[1])
        errors.append(found.errors[0])
        behind_errors.append(found.behind_errors[1])

    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)
    assert np.mean(behind_errors) == pytest.approx(np.std(ahead), rel=0.1)
    assert np.mean(behind_errors) < 0.7 * np.mean(errors)


def test_the_better_ranker_is_chosen_as_often_as_errors_say() -> None:
    """Who is 1.5 errors behind is chosen about once in 15 times, and never told off."""
    rng = np.random.default_rng(7)
    wrong = level = 0
    for _ in range(400):
        hard = rng.normal(size=50)
        gap = 1.5 * 0.5 * np.sqrt(2.0 / 50.0)
        found = select(
            {
                "good": hard + gap + 0.5 * rng.normal(size=50),
                "bad": hard + 0.5 * rng.normal(size=50),
            },
            np.ones(50),
        )
        wrong += found.chosen == "bad"
        level += "good" in found.level()

    assert wrong / 400 == pytest.approx(0.067, abs=0.04)
    assert level / 400 > 0.98
