"""A curve that clicks told becomes one that estimators read."""

import numpy as np
import pytest

from models.bias.fitted_curve import FittedCurve
from models.bias.trust_anchor import Anchor
from models.estimators.bias_curve import BiasCurve, ratio_curve
from models.estimators.usable_curve import anchored_curve, usable_curve

NOTHING = np.full(3, np.nan)


def fitted(alpha: list[float], beta: list[float]) -> FittedCurve:
    """Without intervals."""
    known = np.array(alpha), np.array(beta)
    return FittedCurve(*known, NOTHING, NOTHING, NOTHING, NOTHING, ("", "", ""))


def test_ratios_up_to_the_first_unknown_rank() -> None:
    """What lies beyond is not used, and one rank alone is none."""
    curve = usable_curve(fitted([1.0, 1.2, np.nan], [0.0, -0.1, np.nan]))

    assert curve is not None
    assert curve.is_ratio_only
    assert curve.alpha.tolist() == [1.0, 1.2]
    assert curve.beta.tolist() == [0.0, -0.1]
    assert usable_curve(fitted([1.0, np.nan, 0.5], [0.0, np.nan, 0.0])) is None


def test_an_anchor_undoes_the_units_of_the_first_rank() -> None:
    """There and back."""
    whole = BiasCurve(np.array([0.4, 0.5, 0.3]), np.array([0.5, 0.2, 0.1]))
    told = ratio_curve(whole)
    curve = anchored_curve(
        fitted(told.alpha.tolist(), told.beta.tolist()), Anchor(0.4, 0.5)
    )

    assert curve is not None
    assert not curve.is_ratio_only
    assert curve.alpha == pytest.approx(whole.alpha)
    assert curve.beta == pytest.approx(whole.beta)
    assert anchored_curve(fitted([np.nan] * 3, [np.nan] * 3), Anchor(0.4, 0.5)) is None
