"""Looks at the evidence for a promotion, each of which spends a part of the error."""

import math

from scipy.special import stdtrit


def error_of_look(look: int, alpha: float) -> float:
    """What a look may err, alpha / (j (j + 1)): over all looks that adds up to alpha.

    Parameters
    ----------
    look
        From 1.
    alpha
        In (0, 1).

    Raises
    ------
    ValueError

    Examples
    --------
    >>> round(sum(error_of_look(j, 0.05) for j in range(1, 10_000)), 4)
    0.05
    """
    if look < 1:
        raise ValueError(f"a look must be the first, 1, or a later one; got {look}")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie in (0, 1); got {alpha}")
    return alpha / (look * (look + 1))


def interval_of_look(
    value: float, error: float, degrees: int, level: float
) -> tuple[float, float]:
    """Ends of the interval that errs in `level` of all cases, half to each side.

    Parameters
    ----------
    value, error
        An estimate and its standard error, in one unit.
    degrees
        Of freedom of the error: groups less one.
    level
        In (0, 1); see `error_of_look`.
    """
    if degrees < 1 or math.isnan(error):
        return -math.inf, math.inf
    half = float(stdtrit(degrees, 1.0 - 0.5 * level)) * error
    return value - half, value + half
