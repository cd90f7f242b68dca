"""A difference in clicks under a curve that was estimated, and what that adds to it.

Clicks that a curve is from are of other users than those who judge. So, given the
curve, the estimate errs by the judging users alone, and the curve's own error comes
beside it, independently: to first order that of slopes @ curve, whose variance is that
of refits without one group of its users each. As these are few, Student's t has one
degree of freedom less than there are.

References
----------
Efron & Stein (Annals of Statistics 1981) for the jackknife; the delta method for the
rest. Both are asymptotic in the number of clicks.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from models.arrays import Floats


class CreditedDifference(NamedTuple):
    """A difference as lists were credited.

    Parameters
    ----------
    mean, half_width
        The estimate, and half of its interval for one look.
    examination : [n_ranks]
        P(looked at | rank) that it was credited by, above 0, or a multiple of it.
    slopes : [n_ranks]
        Mean over lists of those of `models.interleaving.logging_policy_credit`.
    """

    mean: float
    half_width: float
    examination: Floats
    slopes: Floats

    def moved_by(self, curve: Floats) -> float:
        """By how much the estimate is more under another curve, to first order.

        Curves are brought to the scale of `examination`, on which nothing depends.

        Parameters
        ----------
        curve : [n_ranks]
            P(looked at | rank), above 0, or a multiple of it.
        """
        scaled = curve * (self.examination[0] / curve[0])
        return float(self.slopes @ (scaled - self.examination))


class RefittedDifference(NamedTuple):
    """A difference under a curve.

    Parameters
    ----------
    mean, low, high
        Its estimate, with an interval for one look.
    moved
        By how much that is more than under the curve that lists were credited by.
    curve_error
        The standard error that comes of the curve.
    """

    mean: float
    low: float
    high: float
    moved: float
    curve_error: float


def refitted_difference(
    credited: CreditedDifference,
    curve: Floats,
    without: Sequence[Floats],
    alpha: float,
) -> RefittedDifference:
    """The difference under another curve than it was credited by.

    Parameters
    ----------
    curve : [n_ranks]
        P(looked at | rank), above 0, or a multiple of it.
    without : [n_groups] of [n_ranks]
        The same without one group of its users each, two or more.
    alpha
        How often the interval may err.

    Raises
    ------
    ValueError
        Where there are fewer than two refits.
    """
    if len(without) < 2:
        raise ValueError(
            f"a curve must be refitted without two groups or more; got {len(without)}"
        )
    moved = credited.moved_by(curve)
    each = np.array([credited.moved_by(refit) for refit in without])
    n = len(each)
    curve_error = math.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
    quantile = float(stdtrit(n - 1, 1.0 - alpha / 2.0))
    half = math.hypot(credited.half_width, quantile * curve_error)
    mean = credited.mean + moved
    return RefittedDifference(mean, mean - half, mean + half, moved, curve_error)
