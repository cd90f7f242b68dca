"""Feed-forward scoring in one flat vector of parameters, compiled.

`sizes` names the layers: features, hidden layers, and 1 for the score. Parameters
lie layer by layer; a hidden layer of n inputs and h outputs takes n * h weights
(row by input) and then h biases, the score takes its weights only. With no hidden
layer this is a linear function. All hidden units have the same activation.

`activations` is scratch: [n_documents, sum of hidden sizes].
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled

Features = npt.NDArray[np.floating]


SIGMOID, TANH, RELU = range(3)
"""Activations of hidden units by number."""


class Shape(NamedTuple):
    """What a flat vector of parameters means: layers, and their activation.

    Parameters
    ----------
    sizes : [n_layers]
        Features, hidden layers, 1.
    activation
        Of hidden units, by number.
    """

    sizes: Integers
    activation: int


def n_parameters_of(sizes: tuple[int, ...]) -> int:
    """Length of the flat vector."""
    hidden = itertools.pairwise(sizes[:-1])
    return sum((inputs + 1) * outputs for inputs, outputs in hidden) + sizes[-2]


@compiled
def n_activations(shape: Shape) -> int:
    """Hidden units of all layers."""
    sizes = shape.sizes
    total = 0
    for layer in range(1, sizes.shape[0] - 1):
        total += sizes[layer]
    return total


@compiled
def _sigmoid(value: float) -> float:
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    small = math.exp(value)
    return small / (1.0 + small)


@compiled
def activated(value: float, activation: int) -> float:
    """What a hidden unit gives for its sum."""
    if activation == SIGMOID:
        return _sigmoid(value)
    if activation == TANH:
        return math.tanh(value)
    return max(value, 0.0)


@compiled
def slope_at(active: float, activation: int) -> float:
    """Derivative of a unit in its sum, from what it gave."""
    if activation == SIGMOID:
        return active * (1.0 - active)
    if activation == TANH:
        return 1.0 - active * active
    return 1.0 if active > 0.0 else 0.0


@compiled
def dot(weights: Floats, row: Features) -> float:
    """Inner product by eight sums in a fixed order, which machines do at once.

    Parameters
    ----------
    weights, row : [n]
    """
    size = weights.shape[0]
    whole = size - size % 8
    a = b = c = d = e = f = g = h = 0.0
    for i in range(0, whole, 8):
        a += weights[i] * row[i]
        b += weights[i + 1] * row[i + 1]
        c += weights[i + 2] * row[i + 2]
        d += weights[i + 3] * row[i + 3]
        e += weights[i + 4] * row[i + 4]
        f += weights[i + 5] * row[i + 5]
        g += weights[i + 6] * row[i + 6]
        h += weights[i + 7] * row[i + 7]
    total = ((a + e) + (b + f)) + ((c + g) + (d + h))
    for i in range(whole, size):
        total += weights[i] * row[i]
    return total


@compiled
def _hidden_layer(
    parameters: Floats, start: int, inputs: Features, out: Floats, activation: int
) -> int:
    """Fill `out` with one layer's activations; returns where the next one starts."""
    n_inputs: int = inputs.shape[0]
    n_outputs: int = out.shape[0]
    biases = start + n_inputs * n_outputs
    for unit in range(n_outputs):
        out[unit] = parameters[biases + unit]
    for i in range(n_inputs):
        value = inputs[i]
        row = start + i * n_outputs
        for unit in range(n_outputs):
            out[unit] += value * parameters[row + unit]
    for unit in range(n_outputs):
        out[unit] = activated(out[unit], activation)
    return biases + n_outputs


@compiled
def score_row(
    parameters: Floats, shape: Shape, row: Features, activations: Floats
) -> float:
    """Score of one document; leaves its hidden activations behind.

    Parameters
    ----------
    parameters : [n_parameters]
    row : [n_features]
    activations : [n_activations]
        Filled.
    """
    sizes, activation = shape.sizes, shape.activation
    n_hidden_layers = sizes.shape[0] - 2
    if n_hidden_layers == 0:
        return dot(parameters, row)
    first = activations[: sizes[1]]
    start = _hidden_layer(parameters, 0, row, first, activation)
    begin, end = 0, sizes[1]
    for layer in range(2, n_hidden_layers + 1):
        out = activations[end : end + sizes[layer]]
        inputs = activations[begin:end]
        start = _hidden_layer(parameters, start, inputs, out, activation)
        begin, end = end, end + sizes[layer]
    return dot(parameters[start:], activations[begin:end])


@compiled
def _add_layer_gradient(
    gradient: Floats, start: int, inputs: Features, slopes: Floats
) -> None:
    """Add the gradient of a layer whose units' sums have these slopes."""
    n_inputs, n_outputs = inputs.shape[0], slopes.shape[0]
    for i in range(n_inputs):
        value = inputs[i]
        row = start + i * n_outputs
        for unit in range(n_outputs):
            gradient[row + unit] += value * slopes[unit]
    biases = start + n_inputs * n_outputs
    for unit in range(n_outputs):
        gradient[biases + unit] += slopes[unit]


@compiled
def _slopes_below(
    parameters: Floats, start: int, slopes: Floats, inputs: Floats, activation: int
) -> Floats:
    """Slopes of the sums of the layer below; `inputs` are its activations."""
    n_inputs, n_outputs = inputs.shape[0], slopes.shape[0]
    below = np.empty(n_inputs)
    for i in range(n_inputs):
        row = start + i * n_outputs
        total = dot(slopes, parameters[row : row + n_outputs])
        below[i] = total * slope_at(inputs[i], activation)
    return below


@compiled
def add_row_gradient(
    gradient: Floats,
    coefficient: float,
    parameters: Floats,
    shape: Shape,
    row: Features,
    activations: Floats,
) -> None:
    """Add coefficient * d score / d parameters, after `score_row` of the same row.

    Parameters
    ----------
    gradient, parameters : [n_parameters]
    row : [n_features]
    activations : [n_activations]
        As `score_row` left them.
    """
    sizes, activation = shape.sizes, shape.activation
    n_features = sizes[0]
    n_hidden_layers = sizes.shape[0] - 2
    if n_hidden_layers == 0:
        for i in range(n_features):
            gradient[i] += coefficient * row[i]
        return
    end = n_activations(shape)
    width = sizes[n_hidden_layers]
    top = activations[end - width : end]
    start = parameters.shape[0] - width
    slopes = np.empty(width)
    for unit in range(width):
        gradient[start + unit] += coefficient * top[unit]
        slope = slope_at(top[unit], activation)
        slopes[unit] = coefficient * parameters[start + unit] * slope
    for layer in range(n_hidden_layers, 1, -1):
        end -= sizes[layer]
        start -= (sizes[layer - 1] + 1) * sizes[layer]
        inputs = activations[end - sizes[layer - 1] : end]
        _add_layer_gradient(gradient, start, inputs, slopes)
        slopes = _slopes_below(parameters, start, slopes, inputs, activation)
    _add_layer_gradient(gradient, 0, row, slopes)


@compiled
def score_rows(
    parameters: Floats,
    shape: Shape,
    features: Features,
    scores: Floats,
    activations: Floats,
) -> None:
    """Fill `scores` and `activations` for every document.

    Parameters
    ----------
    parameters : [n_parameters]
    features : [n, n_features]
    scores : [n]
    activations : [at least n, n_activations]
    """
    for d in range(features.shape[0]):
        scores[d] = score_row(parameters, shape, features[d], activations[d])


@compiled
def add_gradient(
    gradient: Floats,
    coefficients: Floats,
    parameters: Floats,
    shape: Shape,
    features: Features,
    activations: Floats,
) -> None:
    """Add sum over documents of coefficient * d score / d parameters.

    Parameters
    ----------
    gradient, parameters : [n_parameters]
    coefficients : [n]
    features : [n, n_features]
    activations : [n, n_activations]
        As `score_rows` left them.
    """
    for d in range(features.shape[0]):
        if coefficients[d] != 0.0:
            add_row_gradient(
                gradient,
                coefficients[d],
                parameters,
                shape,
                features[d],
                activations[d],
            )
