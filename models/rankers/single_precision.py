"""Scores of a query's documents in single precision, several at a time, compiled.

The same function as `models.rankers.layers`, with the float32 weights that a
snapshot serves. For loops that score all candidates again and again.

`activations` is scratch: float32 [n_documents, sum of hidden sizes], the layers of
one document end to end.
"""

import numpy as np
import numpy.typing as npt

from models.compilation import compiled
from models.rankers.layers import RELU, SIGMOID, Shape, slope_at

Singles = npt.NDArray[np.float32]

ROUNDER = np.float32(12582912.0)
"""1.5 * 2^23: added to a number, its last bits are that number, rounded."""

PER_LOG_2 = np.float32(1.4426950408889634)
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
WIDEST = np.float32(80.0)
ONE, TWO, HALF = np.float32(1.0), np.float32(2.0), np.float32(0.5)
THIRD, FOURTH = np.float32(1.0 / 6.0), np.float32(1.0 / 24.0)
FIFTH, SIXTH = np.float32(1.0 / 120.0), np.float32(1.0 / 720.0)
SEVENTH = np.float32(1.0 / 5040.0)
BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)


@compiled
def squash(values: Singles, scale: np.float32) -> None:
    """Each value becomes the sigmoid of scale * value."""
    n = values.shape[0]
    powers = np.empty(n, np.float32)
    bits = powers.view(np.int32)
    for i in range(n):
        x = min(max(-scale * values[i], -WIDEST), WIDEST)
        rounded = x * PER_LOG_2 + ROUNDER
        powers[i] = rounded
        k = rounded - ROUNDER
        r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
        p = SEVENTH * r + SIXTH
        p = p * r + FIFTH
        p = p * r + FOURTH
        p = p * r + THIRD
        p = p * r + HALF
        p = p * r + ONE
        values[i] = p * r + ONE
    for i in range(n):
        bits[i] = (bits[i] + BIAS) << MANTISSA_BITS
    for i in range(n):
        values[i] = ONE / (ONE + values[i] * powers[i])


@compiled
def activate(values: Singles, activation: int) -> None:
    """Each sum of a unit becomes what the unit gives."""
    if activation == SIGMOID:
        squash(values, ONE)
    elif activation == RELU:
        for i in range(values.shape[0]):
            values[i] = max(values[i], np.float32(0.0))
    else:
        squash(values, TWO)
        for i in range(values.shape[0]):
            values[i] = TWO * values[i] - ONE


@compiled
def fill_sums(weights: Singles, start: int, inputs: Singles, sums: Singles) -> None:
    """Fill the sums of one layer's units for one document."""
    n_inputs, n_units = inputs.shape[0], sums.shape[0]
    biases = start + n_inputs * n_units
    sums[:] = weights[biases : biases + n_units]
    whole = n_inputs - n_inputs % 4
    for i in range(0, whole, 4):
        a, b, c, e = inputs[i], inputs[i + 1], inputs[i + 2], inputs[i + 3]
        at = start + i * n_units
        first = weights[at : at + n_units]
        second = weights[at + n_units : at + 2 * n_units]
        third = weights[at + 2 * n_units : at + 3 * n_units]
        fourth = weights[at + 3 * n_units : at + 4 * n_units]
        for unit in range(n_units):
            sums[unit] += (a * first[unit] + b * second[unit]) + (
                c * third[unit] + e * fourth[unit]
            )
    for i in range(whole, n_inputs):
        at = start + i * n_units
        row = weights[at : at + n_units]
        for unit in range(n_units):
            sums[unit] += inputs[i] * row[unit]


@compiled
def weighted_sum(weights: Singles, values: Singles) -> np.float32:
    """Inner product by eight sums in a fixed order."""
    size = weights.shape[0]
    whole = size - size % 8
    sums = np.zeros(8, np.float32)
    for i in range(0, whole, 8):
        for lane in range(8):
            sums[lane] += weights[i + lane] * values[i + lane]
    total = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + (
        (sums[2] + sums[6]) + (sums[3] + sums[7])
    )
    for i in range(whole, size):
        total += weights[i] * values[i]
    return np.float32(total)


@compiled
def score_documents(
    weights: Singles,
    shape: Shape,
    features: Singles,
    scores: Singles,
    activations: Singles,
) -> None:
    """Fill `scores` [n] and `activations` of the documents in `features`."""
    sizes = shape.sizes
    n_hidden = sizes.shape[0] - 2
    last = weights.shape[0] - sizes[n_hidden]
    for d in range(features.shape[0]):
        if n_hidden == 0:
            scores[d] = weighted_sum(weights, features[d])
            continue
        start, begin = 0, 0
        inputs = features[d]
        for layer in range(1, n_hidden + 1):
            sums = activations[d, begin : begin + sizes[layer]]
            fill_sums(weights, start, inputs, sums)
            activate(sums, shape.activation)
            start += (sizes[layer - 1] + 1) * sizes[layer]
            begin += sizes[layer]
            inputs = sums
        scores[d] = weighted_sum(weights[last:], inputs)


@compiled
def add_document_gradient(
    gradient: Singles,
    coefficient: np.float32,
    weights: Singles,
    shape: Shape,
    row: Singles,
    activations: Singles,
) -> None:
    """Add coefficient * d score / d weights of a document that was scored."""
    sizes = shape.sizes
    n_hidden = sizes.shape[0] - 2
    if n_hidden == 0:
        for i in range(row.shape[0]):
            gradient[i] += coefficient * row[i]
        return
    end = activations.shape[0]
    width = sizes[n_hidden]
    start = weights.shape[0] - width
    slopes = np.empty(width, np.float32)
    for unit in range(width):
        active = activations[end - width + unit]
        gradient[start + unit] += coefficient * active
        slope = np.float32(slope_at(active, shape.activation))
        slopes[unit] = coefficient * weights[start + unit] * slope
    for layer in range(n_hidden, 0, -1):
        n_inputs, n_units = sizes[layer - 1], sizes[layer]
        start -= (n_inputs + 1) * n_units
        end -= n_units
        inputs = row if layer == 1 else activations[end - n_inputs : end]
        add_layer_gradient(
            gradient[start : start + (n_inputs + 1) * n_units], inputs, slopes
        )
        if layer > 1:
            slopes = slopes_below(weights, start, slopes, inputs, shape.activation)


@compiled
def add_layer_gradient(part: Singles, inputs: Singles, slopes: Singles) -> None:
    """Add the gradient of one layer, weights and then biases."""
    n_units = slopes.shape[0]
    for i in range(inputs.shape[0]):
        value = inputs[i]
        row = part[i * n_units : (i + 1) * n_units]
        for unit in range(n_units):
            row[unit] += value * slopes[unit]
    biases = part[inputs.shape[0] * n_units :]
    for unit in range(n_units):
        biases[unit] += slopes[unit]


@compiled
def slopes_below(
    weights: Singles, start: int, slopes: Singles, inputs: Singles, activation: int
) -> Singles:
    """Slopes of the sums of the layer below."""
    n_inputs, n_units = inputs.shape[0], slopes.shape[0]
    below = np.empty(n_inputs, np.float32)
    for i in range(n_inputs):
        row = weights[start + i * n_units : start + (i + 1) * n_units]
        total = weighted_sum(row, slopes)
        below[i] = total * np.float32(slope_at(inputs[i], activation))
    return below
