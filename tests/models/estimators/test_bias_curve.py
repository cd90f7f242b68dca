"""Curves of bias: what is refused, what is accepted and mentioned."""

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from tests.curve_factory import ratio_curve


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.2, np.nan, np.inf])
def test_examination_lies_between_zero_and_one(wrong):
    """Else it is no probability of looking, and the rank is named."""
    with pytest.raises(ValueError, match="at rank 2"):
        position_curve([1.0, wrong])


@pytest.mark.parametrize(
    ("alpha", "beta", "rule"),
    [
        ([0.5, 0.0], [0.1, 0.1], "alpha must be more than 0; got 0 at rank 2"),
        ([0.5, 0.5], [0.1, -0.1], "beta must be at least 0; got -0.1 at rank 2"),
        ([0.5, 0.7], [0.1, 0.4], "at most 1; got 1.1 at rank 2"),
        ([0.5, 0.7], [0.1], "of the same ranks"),
        ([], [], "one or more"),
    ],
)
def test_trust_bias_out_of_range_is_refused(alpha, beta, rule):
    """In words, with the rank."""
    with pytest.raises(ValueError, match=rule):
        BiasCurve(np.array(alpha), np.array(beta))


def test_printed_curves_may_add_up_to_one():
    """And to what rounding makes of it."""
    assert BiasCurve(np.array([0.35]), np.array([0.65])).remarks() == []


def test_a_curve_that_rises_is_accepted_and_mentioned():
    """Users may look more at the middle; a slip of the pen looks the same."""
    (said,) = position_curve([0.5, 0.4, 0.6]).remarks()
    assert "rises at rank 3" in said


def test_trust_bias_of_the_literature_does_not_rise():
    """The curve alpha does, but no relevant item is clicked more further down."""
    curve = BiasCurve(np.array([0.35, 0.53]), np.array([0.65, 0.26]))
    assert not curve.is_rising


def test_ratios_begin_at_the_first_rank():
    """They may be above 1, but must be in units of rank 1."""
    curve = BiasCurve(np.array([1.0, 1.2]), np.zeros(2), is_ratio_only=True)
    assert "up to scale" in curve.remarks()[0]
    with pytest.raises(ValueError, match="must begin with alpha 1 and beta 0"):
        BiasCurve(np.array([0.9, 0.5]), np.zeros(2), is_ratio_only=True)
    with pytest.raises(ValueError, match="more than 0; got 0 at rank 2"):
        BiasCurve(np.array([1.0, 0.0]), np.zeros(2), is_ratio_only=True)


def test_trust_bias_in_ratios_says_what_it_cannot_tell():
    """Values of it are relevance up to scale and offset."""
    curve = ratio_curve(BiasCurve(np.array([0.35, 0.5]), np.array([0.6, 0.2])))
    assert "up to scale and offset" in curve.remarks()[0]
