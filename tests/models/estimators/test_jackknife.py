"""Errors from groups left out one at a time."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from models.estimators.intervals import jackknife_intervals
from models.estimators.intervention_aware import ItemSums
from models.estimators.jackknife import NO_VALUE, TOO_FEW, UNDEFINED, jackknife

CLICKS = np.array([100.0, 3.0, 5.0, 4.0, 8.0])
KEPT = np.array([False, True, True, True, True])


def mean(is_kept):
    """Of the groups that are kept."""
    return CLICKS[is_kept].mean(keepdims=True)


def test_of_a_mean_it_is_that_of_students_t():
    """Groups that are not kept are nowhere."""
    found = jackknife(mean, KEPT, confidence=0.9)
    error = CLICKS[KEPT].std(ddof=1) / 2
    half = student.ppf(0.95, 3) * error
    assert found.values[0] == 5.0
    assert found.errors[0] == pytest.approx(error, rel=1e-12)
    assert found.low[0] == pytest.approx(5.0 - half, rel=1e-12)
    assert found.high[0] == pytest.approx(5.0 + half, rel=1e-12)
    assert found.degrees == 3
    assert found.reasons == ("",)
    assert found.without[:, 0].tolist() == [17 / 3, 5.0, 16 / 3, 4.0]


def test_intervals_of_relevance_are_a_jackknife():
    """Of the ratio of sums, where all groups have the item and clicks are many."""
    alpha, clicked = np.array([[50.0], [90.0], [9.0]]), np.array([[40.0], [60.0], [2]])
    sums = ItemSums(alpha, alpha, 0.1 * alpha, clicked)

    def ratio(is_kept):
        kept = clicked[is_kept].sum(axis=0) - 0.1 * alpha[is_kept].sum(axis=0)
        return kept / alpha[is_kept].sum(axis=0)

    ours = jackknife(ratio, np.ones(3, np.bool_))
    theirs = jackknife_intervals(sums)
    np.testing.assert_allclose(ours.low, theirs.low, rtol=1e-12)
    np.testing.assert_allclose(ours.high, theirs.high, rtol=1e-12)


def test_figures_that_need_a_group_have_no_interval():
    """Nor have those without a value; the others are as they were."""

    def needy(is_kept):
        second = 1.0 if is_kept[1] else np.nan
        return np.array([CLICKS[is_kept].sum(), second, np.nan, np.nan])

    found = jackknife(needy, KEPT)
    assert found.reasons == ("", UNDEFINED, NO_VALUE, NO_VALUE)
    assert np.isnan(found.errors).tolist() == [False, True, True, True]
    part = found.of(slice(1, 3))
    assert part.reasons == (UNDEFINED, NO_VALUE)
    assert part.without.shape == (4, 2)


def test_one_group_has_a_value_alone_and_none_is_refused():
    """So is a confidence that is none."""
    one = np.array([False, False, True, False, False])
    found = jackknife(mean, one)
    assert found.values[0] == 5.0
    assert found.reasons == (TOO_FEW,)
    assert math.isnan(found.high[0])
    with pytest.raises(ValueError, match="1 or more; got none"):
        jackknife(mean, ~KEPT & KEPT)
    with pytest.raises(ValueError, match=r"in \(0, 1\); got 1"):
        jackknife(mean, KEPT, confidence=1.0)
