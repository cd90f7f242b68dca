"""Probabilities as integers: expected exposures, and inverses of clicked places.

Sums of integers are the same in any order, and add up over partitions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats

Int64 = NDArray[np.int64]

EXPOSURE_ONE = 1 << 30
"""Fixed point of a placement probability of 1."""

INVERSE_ONE = 1 << 16
"""Fixed point of an inverse probability of 1."""

SQUARED_BITS = 40
"""An inverse square is high * 2^40 + low with 0 <= low < 2^40."""

LEAST_PROBABILITY = 2.0**-20
"""Smaller probabilities of clicked places are raised to this, and counted."""

LEAST_COMPUTED = 2.0**-21
"""Of a place in a Plackett-Luce list: what was shown had a probability."""

_LOW = (1 << SQUARED_BITS) - 1
_HALF = SQUARED_BITS // 2


class Inverses(NamedTuple):
    """Sums over clicks: 1/p, and low and high part of 1/p^2, each in 2^-16.

    `inverse`, `squared_low`, `squared_high` [...].
    """

    inverse: Int64
    squared_low: Int64
    squared_high: Int64


def fixed_exposures(probabilities: Floats) -> Int64:
    """round(2^30 p) of `probabilities` [...], halves to even."""
    return np.rint(probabilities * EXPOSURE_ONE).astype(np.int64)


def inverse_sums(probabilities: Floats, clicks: Int64) -> Inverses:
    """What `clicks` [...] of places that were shown with `probabilities` [...] add.

    0 where a probability is 0; those below 2^-20 count as that.

    Raises
    ------
    OverflowError
        If a sum does not fit 63 bits.
    """
    raised = np.maximum(probabilities, LEAST_PROBABILITY)
    counted = np.where(probabilities > 0, clicks, 0)
    once = np.rint(INVERSE_ONE / raised).astype(np.int64)
    squared = np.rint(INVERSE_ONE / (raised * raised)).astype(np.int64)
    # 2^56 times a count may not fit; each 20 bits of the low part do.
    low = squared & _LOW
    upper = product(counted, low >> _HALF)
    lower = product(counted, low & ((1 << _HALF) - 1))
    rest = lower + ((upper & ((1 << _HALF) - 1)) << _HALF)
    high = product(counted, squared >> SQUARED_BITS)
    high += (upper >> _HALF) + (rest >> SQUARED_BITS)
    return Inverses(product(counted, once), rest & _LOW, high)


def product(counts: Int64, units: Int64 | int) -> Int64:
    """Products of numbers that are not negative; `counts`, `units` [...].

    Raises
    ------
    OverflowError
        If it does not fit 62 bits.
    """
    if (np.multiply(counts, units, dtype=np.float64) >= 2.0**62).any():
        raise OverflowError("a sum of a scope must stay below 2^62; it does not")
    return counts * units
