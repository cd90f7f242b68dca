"""Exponentials of many numbers at once, which machines do several at a time.

x = k log 2 + r with whole k and |r| <= log(2) / 2; exp(r) by its power series,
2 ** k by writing k into the exponent. Within two units of the last place of the
library's function, and the same bits on every machine.
"""

import math

import numpy as np

from models.arrays import Flags, Floats
from models.kernels.compilation import compiled

LOWEST = -708.0
"""Below this the result is no normal number; it is made exp(-708) or less, then 0."""

PER_LOG_2 = 1.4426950408889634
LOG_2_HIGH = 6.93147180369123816490e-01
LOG_2_LOW = 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0
"""1.5 * 2^52: added to a number, its last bits are that number, rounded."""

LANES = 8
"""Numbers that are compared or added side by side."""

BIAS, MANTISSA_BITS = 1023, 52


@compiled
def fill_exponentials(values: Floats, shift: float, out: Floats) -> None:
    """Fill `out` with exp(value - shift) for values of at most `shift`.

    What is below the range of normal numbers becomes 0.

    Parameters
    ----------
    values : [n]
    out : [at least n]
    """
    n = values.shape[0]
    powers = np.empty(n)
    bits = powers.view(np.int64)
    for d in range(n):
        x = max(values[d] - shift, LOWEST)
        rounded = x * PER_LOG_2 + ROUNDER
        powers[d] = rounded
        k = rounded - ROUNDER
        r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        out[d] = p * r + 1.0
    for d in range(n):
        bits[d] = (bits[d] + BIAS) << MANTISSA_BITS
    for d in range(n):
        out[d] = out[d] * powers[d] if values[d] - shift > LOWEST else 0.0


@compiled
def largest_of(values: Floats) -> float:
    """The largest of `values` [n], none of them NaN; -inf of none."""
    whole = values.shape[0] - values.shape[0] % LANES
    lanes = np.full(LANES, -np.inf)
    for begin in range(0, whole, LANES):
        for i in range(LANES):
            lanes[i] = max(lanes[i], values[begin + i])
    largest = -np.inf
    for i in range(LANES):
        largest = max(largest, lanes[i])
    for d in range(whole, values.shape[0]):
        largest = max(largest, values[d])
    return largest


@compiled
def sum_of(values: Floats) -> float:
    """The sum of `values` [n], always in the same order."""
    whole = values.shape[0] - values.shape[0] % LANES
    lanes = np.zeros(LANES)
    for begin in range(0, whole, LANES):
        for i in range(LANES):
            lanes[i] += values[begin + i]
    total = 0.0
    for i in range(LANES):
        total += lanes[i]
    for d in range(whole, values.shape[0]):
        total += values[d]
    return total


@compiled
def log_sum(one: float, other: float) -> float:
    """Log of the sum of two numbers given by their logs."""
    larger, smaller = max(one, other), min(one, other)
    if smaller == -np.inf:
        return larger
    return larger + math.log1p(math.exp(smaller - larger))


@compiled
def rest_log(scores: Floats, is_shown: Flags) -> float:
    """Log of the sum of exp(score) of the documents that are not shown.

    Parameters
    ----------
    scores, is_shown : [n]
    """
    n = scores.shape[0]
    lower = np.empty(n)
    for d in range(n):
        lower[d] = -np.inf if is_shown[d] else scores[d]
    top = largest_of(lower)
    if top == -np.inf:
        return top
    sizes = np.empty(n)
    fill_exponentials(lower, top, sizes)
    return top + math.log(sum_of(sizes))
