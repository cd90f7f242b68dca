"""Standard errors of anything that is computed from groups, leaving out one at a time.

A group holds whole sessions, so users with tastes of their own do no harm. What a
figure rests on, such as a curve of bias, may be fitted again without each group: then
the error has that of the fit in it too.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from models.arrays import Flags, Floats
from models.estimators.intervals import spread_without_each

TOO_FEW = "fewer than two groups"
UNDEFINED = "without some group there is no value"
NO_VALUE = "no value"


class Jackknife(NamedTuple):
    """Figures and how far they may be off, [n] each.

    Parameters
    ----------
    values : [n]
        Of all groups.
    errors : [n]
        Standard errors; NaN where there are none.
    low, high : [n]
        Ends of the interval; NaN where there is none.
    degrees
        Of freedom: groups less one.
    reasons
        Why there is no interval; empty where there is one.
    without : [n_groups left out, n]
        The figures without each group, of those that are kept.
    """

    values: Floats
    errors: Floats
    low: Floats
    high: Floats
    degrees: int
    reasons: tuple[str, ...]
    without: Floats

    def of(self, columns: slice) -> "Jackknife":
        """Some of the figures."""
        return Jackknife(
            self.values[columns],
            self.errors[columns],
            self.low[columns],
            self.high[columns],
            self.degrees,
            self.reasons[columns],
            self.without[:, columns],
        )

    def only_where(self, is_told: Flags, reason: str) -> "Jackknife":
        """The same figures, without errors where `is_told` [n] says so, and why."""
        reasons = (
            why or ("" if told else reason)
            for why, told in zip(self.reasons, is_told.tolist(), strict=True)
        )
        errors, low, high = (
            np.where(is_told, numbers, np.nan)
            for numbers in (self.errors, self.low, self.high)
        )
        return self._replace(errors=errors, low=low, high=high, reasons=tuple(reasons))


def jackknife(
    statistic: Callable[[Flags], Floats],
    is_kept: Flags,
    *,
    confidence: float = 0.95,
) -> Jackknife:
    """Figures of the groups that are kept, and of all of them but one.

        error = sqrt((G - 1) / G * sum of (figure without g - their mean)^2)

    and the interval is as many of these to each side as the quantile of Student's
    distribution with G - 1 degrees of freedom. Where a figure is not defined without
    some group there is none: what is left says too little of the spread.

    Parameters
    ----------
    statistic
        Given which groups to use, [n_groups], the figures [n].
    is_kept : [n_groups]
        Groups that have something to say.
    confidence
        In (0, 1).

    References
    ----------
    Efron & Tibshirani (An Introduction to the Bootstrap, 1993), chapter 11.

    Examples
    --------
    >>> clicks = np.array([3.0, 5.0, 4.0])
    >>> found = jackknife(lambda kept: clicks[kept].mean(keepdims=True), clicks > 0)
    >>> round(float(found.errors[0]), 6) == round(3**-0.5, 6)
    True
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")
    if not is_kept.any():
        raise ValueError("groups that are kept must be 1 or more; got none")
    values = np.asarray(statistic(is_kept), np.float64)
    groups = np.flatnonzero(is_kept)
    without = np.full((len(groups), len(values)), np.nan)
    for row, group in enumerate(groups.tolist() if len(groups) > 1 else []):
        rest = is_kept.copy()
        rest[group] = False
        without[row] = statistic(rest)
    spread = spread_without_each(without, np.ones(without.shape, np.bool_))
    is_known = np.isfinite(without).all(axis=0) & np.isfinite(values)
    reasons = np.where(is_known, "", UNDEFINED)
    reasons = np.where(np.isfinite(values), reasons, NO_VALUE)
    if len(groups) < 2:
        is_known[:] = False
        reasons = np.where(np.isfinite(values), TOO_FEW, NO_VALUE)
    errors = np.where(is_known, spread, np.nan)
    degrees = max(len(groups) - 1, 0)
    half = stdtrit(max(degrees, 1.0), 0.5 + 0.5 * confidence) * errors
    return Jackknife(
        values,
        errors,
        values - half,
        values + half,
        degrees,
        tuple(reasons.tolist()),
        without,
    )
