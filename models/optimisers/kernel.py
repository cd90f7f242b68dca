"""Steps up a gradient over flat parameters, compiled; see `models.optimisers`."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Singles
from models.kernels.compilation import compiled

Gradient = npt.NDArray[np.floating]

SGD, ADAGRAD, ADAM = range(3)
"""Optimisers by number."""

RATE, DECAY, EPSILON, KEEP_MEAN, KEEP_SQUARE, STEPS = range(6)
"""Places of `numbers`: the rate decays and steps count up, all else stays."""

N_NUMBERS = 6

LARGEST = float(np.finfo(np.float32).max)
"""Beyond this a parameter could not be served, as snapshots hold float32."""


MAGNITUDE = np.int32(0x7FFFFFFF)
"""The bits of a float32 number but its sign."""


class Optimiser(NamedTuple):
    """An optimiser and its state.

    Parameters
    ----------
    kind
        One of `SGD`, `ADAGRAD` and `ADAM`.
    numbers : [6]
        By `RATE` to `STEPS`.
    mean : [n_parameters]
        Of gradients, for Adam; [0] for others.
    square : [n_parameters]
        Sums or means of squares of gradients; [0] for plain steps.
    """

    kind: int
    numbers: Floats
    mean: Floats
    square: Floats


@compiled
def moved(
    value: float, slope: float, optimiser: Optimiser, i: int
) -> tuple[float, float, float]:
    """A parameter after a step of AdaGrad or Adam, and its moments."""
    numbers = optimiser.numbers
    if optimiser.kind == ADAGRAD:
        square = optimiser.square[i] + slope * slope
        share = slope / (math.sqrt(square) + numbers[EPSILON])
        return value + numbers[RATE] * share, 0.0, square
    keep_mean, keep_square = numbers[KEEP_MEAN], numbers[KEEP_SQUARE]
    mean = keep_mean * optimiser.mean[i] + (1.0 - keep_mean) * slope
    square = keep_square * optimiser.square[i] + (1.0 - keep_square) * slope * slope
    steps = numbers[STEPS] + 1.0
    unbiased_mean = mean / (1.0 - keep_mean**steps)
    unbiased_square = square / (1.0 - keep_square**steps)
    share = unbiased_mean / (math.sqrt(unbiased_square) + numbers[EPSILON])
    return value + numbers[RATE] * share, mean, square


@compiled
def step(parameters: Floats, gradient: Gradient, optimiser: Optimiser) -> bool:
    """Move up the gradient; False, and nothing changes, if that could not be served.

    The rate decays with performed steps only.

    Parameters
    ----------
    parameters, gradient : [n_parameters]
    """
    if optimiser.kind == SGD:
        is_done = _step_plainly(parameters, gradient, optimiser.numbers[RATE])
    else:
        is_done = _step_by_moments(parameters, gradient, optimiser)
    if is_done:
        optimiser.numbers[RATE] *= optimiser.numbers[DECAY]
        optimiser.numbers[STEPS] += 1.0
    return is_done


@compiled
def step_served(
    parameters: Floats, weights: Singles, gradient: Singles, optimiser: Optimiser
) -> bool:
    """The same step, of parameters and of `weights`, which are what they serve as.

    Plain steps are read and written once where all numbers are far from the limit.

    Parameters
    ----------
    parameters, weights, gradient : [n_parameters]
    """
    rate = optimiser.numbers[RATE]
    near = np.float32(LARGEST / 4.0)
    steepest = np.float32(near / max(rate, 1.0))
    # As whole numbers magnitudes are in the same order, and NaN is above all.
    numbers, slopes = weights.view(np.int32), gradient.view(np.int32)
    largest, widest = np.int32(0), np.int32(0)
    for i in range(weights.shape[0]):
        largest = max(largest, np.int32(numbers[i] & MAGNITUDE))
        widest = max(widest, np.int32(slopes[i] & MAGNITUDE))
    is_far = largest > near.view(np.int32) or widest > steepest.view(np.int32)
    if is_far or optimiser.kind != SGD:
        is_done = step(parameters, gradient, optimiser)
        if is_done:
            weights[:] = parameters
        return is_done
    for i in range(weights.shape[0]):
        value = parameters[i] + rate * gradient[i]
        parameters[i] = value
        weights[i] = value
    optimiser.numbers[RATE] *= optimiser.numbers[DECAY]
    optimiser.numbers[STEPS] += 1.0
    return True


@compiled
def _step_plainly(parameters: Floats, gradient: Gradient, rate: float) -> bool:
    n_wrong = 0
    for i in range(parameters.shape[0]):
        # Written so that NaN is refused too; and to the end, several at once.
        if not abs(parameters[i] + rate * gradient[i]) <= LARGEST:
            n_wrong += 1
    if n_wrong > 0:
        return False
    for i in range(parameters.shape[0]):
        parameters[i] += rate * gradient[i]
    return True


@compiled
def _step_by_moments(
    parameters: Floats, gradient: Gradient, optimiser: Optimiser
) -> bool:
    for i in range(parameters.shape[0]):
        value, _, square = moved(parameters[i], gradient[i], optimiser, i)
        if not (abs(value) <= LARGEST and square < np.inf):
            return False
    for i in range(parameters.shape[0]):
        value, mean, square = moved(parameters[i], gradient[i], optimiser, i)
        parameters[i] = value
        optimiser.square[i] = square
        if optimiser.kind == ADAM:
            optimiser.mean[i] = mean
    return True
