"""What is said of a policy beside others: only what an interval says."""

import math

import numpy as np
import pytest

from models.estimators.jackknife import Jackknife
from models.estimators.policy_comparison import PolicyComparison
from models.estimators.policy_reward import PolicyReward
from streams.estimation.policy_rows import rows_of


def figures(low, high):
    """Of three policies, in the middle of their intervals."""
    low, high = np.array(low), np.array(high)
    return Jackknife(
        (low + high) / 2, high - low, low, high, 3, ("", "", ""), np.zeros((4, 3))
    )


def comparison(low, high, unseen=0.0):
    """Three policies whose differences lie there."""
    points = (PolicyReward(1.0, unseen, 0.1, 50.0),) * 3
    rewards, naive = figures([0.9] * 3, [1.1] * 3), figures([0.9] * 3, [1.1] * 3)
    names = "logged", "one", "other"
    return PolicyComparison(names, points, rewards, figures(low, high), naive)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, "better"), (-0.1, 0.3, ""), (-0.3, 0.1, ""), (-0.3, -0.1, "worse")],
)
def test_a_policy_is_better_where_its_whole_interval_is(low, high, verdict):
    """Or worse; else nobody knows."""
    found = rows_of(comparison([0.0, low, 0.0], [0.0, high, 0.0]), "")
    assert [row.verdict for row in found] == ["", verdict, ""]
    told = rows_of(comparison([0.0, low, 0.0], [0.0, high, 0.0]), "nobody knows")
    assert {row.verdict for row in told} == {""}
    assert all(math.isnan(row.low) and row.reason == "nobody knows" for row in told)


def test_what_is_rounded_otherwise_is_neither_better_nor_worse():
    """The same policy from propensities of single precision: 1e-9 of its reward."""
    found = rows_of(comparison([0.0, -2e-9, 1e-5], [0.0, -1e-9, 2e-5]), "")
    assert [row.verdict for row in found] == ["", "", "better"]


@pytest.mark.parametrize(
    ("unseen", "verdicts"), [(0.04, ["worse", "better"]), (0.06, ["", "better"])]
)
def test_what_was_not_seen_makes_nobody_worse(unseen, verdicts):
    """It counts as not relevant, so a difference is rather more than it says."""
    found = comparison([0.0, -0.3, 0.1], [0.0, -0.1, 0.3], unseen)
    assert [row.verdict for row in rows_of(found, "")][1:] == verdicts
