"""Scores of a query's documents in single precision, several at a time, compiled.

The same function as `models.rankers.layers`, with the float32 weights that a
snapshot serves. For loops that score all candidates again and again; products are
added without being rounded first, so that bits may differ between kinds of machines.

`activations` is scratch: float32 [n_documents, sum of hidden sizes], the layers of
one document end to end.
"""

import numpy as np

from models.arrays import Singles
from models.kernels.compilation import fused
from models.kernels.prefetch import ask_for
from models.kernels.tiles import LANES, ROWS, fill_products, sum_products
from models.rankers.layers import RELU, SIGMOID, Shape

ROUNDER = np.float32(12582912.0)
"""1.5 * 2^23: added to a number, its last bits are that number, rounded."""

PER_LOG_2 = np.float32(1.4426950408889634)
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
WIDEST = np.float32(80.0)
LARGEST = np.float32(1e30)
ZERO, HALF = np.float32(0.0), np.float32(0.5)
ONE, TWO = np.float32(1.0), np.float32(2.0)
THIRD, FOURTH = np.float32(1.0 / 6.0), np.float32(1.0 / 24.0)
FIFTH, SIXTH = np.float32(1.0 / 120.0), np.float32(1.0 / 720.0)
SEVENTH = np.float32(1.0 / 5040.0)
FEW = 4 * ROWS
"""Documents that go through all layers together."""

BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)


@fused
def squash(
    sums: Singles, stride: int, n_rows: int, biases: Singles, scale: np.float32
) -> None:
    """Each sum becomes the sigmoid of scale * (sum + bias).

    Parameters
    ----------
    sums, biases : [at least (n_rows - 1) * stride + n_units], [n_units]
        As in `activate`.
    """
    for row in range(n_rows):
        units = sums[row * stride : row * stride + biases.shape[0]]
        for i in range(biases.shape[0]):
            x = min(max(-scale * (units[i] + biases[i]), -WIDEST), WIDEST)
            rounded = np.float32(x * PER_LOG_2 + ROUNDER)
            k = rounded - ROUNDER
            r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
            p = SEVENTH * r + SIXTH
            p = p * r + FIFTH
            p = p * r + FOURTH
            p = p * r + THIRD
            p = p * r + HALF
            p = p * r + ONE
            p = p * r + ONE
            bits = np.int32((rounded.view(np.int32) + BIAS) << MANTISSA_BITS)
            units[i] = ONE / (ONE + p * bits.view(np.float32))


@fused
def activate(
    sums: Singles, stride: int, n_rows: int, biases: Singles, activation: int
) -> None:
    """Each sum of a unit becomes, with its bias, what the unit gives.

    Parameters
    ----------
    sums : [at least (n_rows - 1) * stride + n_units]
        Those of a document lie end to end, `stride` numbers after those of another.
    biases : [n_units]
    """
    if activation == SIGMOID:
        squash(sums, stride, n_rows, biases, ONE)
        return
    if activation != RELU:
        squash(sums, stride, n_rows, biases, TWO)
    for row in range(n_rows):
        units = sums[row * stride : row * stride + biases.shape[0]]
        for i in range(biases.shape[0]):
            if activation == RELU:
                units[i] = max(units[i] + biases[i], ZERO)
            else:
                units[i] = TWO * units[i] - ONE


@fused
def weighted_sum(
    weights: Singles, at: int, values: Singles, start: int, size: int
) -> np.float32:
    """Inner product, whole vectors first.

    Parameters
    ----------
    weights : [at least at + size]
    values : [at least start + size]
    """
    whole = size - size % LANES
    total = sum_products(weights, values, (at, start, whole // LANES))
    for i in range(whole, size):
        total += weights[at + i] * values[start + i]
    return np.float32(total)


@fused
def score_documents(
    weights: Singles,
    shape: Shape,
    features: Singles,
    scores: Singles,
    activations: Singles,
    ahead: Singles,
) -> None:
    """Fill the scores and activations of documents.

    Parameters
    ----------
    weights : [n_parameters]
    features : [n, n_features]
    scores : [n]
    activations : [at least n, n_activations]
    ahead : [n_ahead, n_features]
        Features that are scored next; meanwhile they are asked for.
    """
    n, size = features.shape[0], ahead.size
    for d in range(0, n, FEW):
        last = min(d + FEW, n)
        ask_for(ahead.reshape(-1), d * size // n, last * size // n)
        # Less than a tile is scored together with some of those before.
        first = max(min(d, n - ROWS), 0)
        _score_few(
            weights,
            shape,
            features[first:last].reshape(-1),
            scores[first:last],
            activations[first:last],
        )


@fused
def bound_scores(scores: Singles) -> None:
    """Make all scores such as lists can be drawn by, for learners that diverge.

    What overflowed counts as the largest number, and what is none as 0.

    Parameters
    ----------
    scores : [..]
        Of any shape, in one piece.
    """
    flat = scores.reshape(-1)
    for i in range(flat.shape[0]):
        score = flat[i]
        if not abs(score) <= LARGEST:
            flat[i] = LARGEST if score > ZERO else -LARGEST if score < ZERO else ZERO


@fused
def _score_few(
    weights: Singles,
    shape: Shape,
    features: Singles,
    scores: Singles,
    activations: Singles,
) -> None:
    """The same for documents so few that all layers of them are near."""
    sizes = shape.sizes
    n, n_hidden = scores.shape[0], sizes.shape[0] - 2
    all_units: int = activations.shape[1]
    inputs, stride = features, sizes[0]
    start, begin = 0, 0
    for layer in range(1, n_hidden + 1):
        n_inputs, n_units = sizes[layer - 1], sizes[layer]
        out = activations.reshape(-1)[begin:]
        fill_products(
            inputs, (stride, 1), n, n_inputs, weights[start:], n_units, out, all_units
        )
        start += n_inputs * n_units
        biases = weights[start : start + n_units]
        activate(out, all_units, n, biases, shape.activation)
        start += n_units
        begin += n_units
        inputs, stride = out, all_units
    for d in range(n):
        scores[d] = weighted_sum(weights, start, inputs, d * stride, sizes[n_hidden])


@fused
def fill_gradient(
    gradient: Singles,
    coefficients: Singles,
    weights: Singles,
    shape: Shape,
    features: Singles,
    activations: Singles,
) -> None:
    """Fill the sum over documents of coefficient * d score / d weights.

    Parameters
    ----------
    gradient, weights : [n_parameters]
    coefficients : [k]
    features : [k, n_features]
        Of the documents with coefficients.
    activations : [k, n_activations]
        As `score_documents` left them for the same documents.
    """
    sizes = shape.sizes
    n, n_hidden = features.shape[0], sizes.shape[0] - 2
    if n_hidden == 0:
        _fill_weighted(gradient, coefficients, features.reshape(-1), features.shape[1])
        return
    all_units: int = activations.shape[1]
    active = activations.reshape(-1)
    width = sizes[n_hidden]
    start, begin = weights.shape[0] - width, all_units - width
    _fill_weighted(gradient[start:], coefficients, active[begin:], all_units)
    slopes = np.empty((n, width), np.float32)
    for x in range(n):
        for unit in range(width):
            slopes[x, unit] = coefficients[x] * weights[start + unit]
    for layer in range(n_hidden, 0, -1):
        n_inputs, n_units = sizes[layer - 1], sizes[layer]
        start -= (n_inputs + 1) * n_units
        _scale_by_slopes(slopes, active[begin:], all_units, shape.activation)
        part = gradient[start : start + (n_inputs + 1) * n_units]
        if layer == 1:
            _fill_layer_gradient(part, features.reshape(-1), n_inputs, slopes)
            return
        begin -= n_inputs
        _fill_layer_gradient(part, active[begin:], all_units, slopes)
        slopes = _slopes_below(weights[start:], slopes, n_inputs)


@fused
def _fill_weighted(out: Singles, factors: Singles, rows: Singles, stride: int) -> None:
    """Fill `out` with the weighted sum of rows that lie `stride` apart."""
    out[:] = ZERO
    for x in range(factors.shape[0]):
        row = rows[x * stride : x * stride + out.shape[0]]
        for i in range(out.shape[0]):
            out[i] += factors[x] * row[i]


@fused
def _scale_by_slopes(
    slopes: Singles, active: Singles, stride: int, activation: int
) -> None:
    """From the slopes of what units give to those of their sums."""
    for x in range(slopes.shape[0]):
        given = active[x * stride : x * stride + slopes.shape[1]]
        row = slopes[x]
        if activation == SIGMOID:
            for unit in range(row.shape[0]):
                row[unit] *= given[unit] * (ONE - given[unit])
        elif activation == RELU:
            for unit in range(row.shape[0]):
                row[unit] = row[unit] if given[unit] > ZERO else ZERO
        else:
            for unit in range(row.shape[0]):
                row[unit] *= ONE - given[unit] * given[unit]


@fused
def _fill_layer_gradient(
    part: Singles, inputs: Singles, stride: int, slopes: Singles
) -> None:
    """Fill the gradient of one layer, weights and then biases."""
    n, n_units = slopes.shape
    biases = part.shape[0] - n_units
    n_inputs = biases // n_units
    fill_products(
        inputs, (1, stride), n_inputs, n, slopes.reshape(-1), n_units, part, n_units
    )
    _fill_weighted(part[biases:], np.ones(n, np.float32), slopes.reshape(-1), n_units)


@fused
def _slopes_below(weights: Singles, slopes: Singles, n_inputs: int) -> Singles:
    """Slopes of what the units of the layer below give."""
    n, n_units = slopes.shape
    below = np.empty((n, n_inputs), np.float32)
    for x in range(n):
        for i in range(n_inputs):
            at = i * n_units
            below[x, i] = weighted_sum(weights, at, slopes[x], 0, n_units)
    return below
