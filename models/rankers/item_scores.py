"""Scores of items with float32 features by layers of any shape, compiled.

Sums of products are float64, added in one order: the same bits on every run.
"""

from models.arrays import Floats, Singles
from models.kernels.compilation import compiled
from models.rankers.layers import Shape, score_rows


@compiled
def fill_scores(
    features: Singles,
    parameters: Floats,
    shape: Shape,
    scores: Floats,
    activations: Floats,
) -> None:
    """Fill `scores` [n] by `features` [n, n_features] and parameters [n_parameters].

    `activations` [at least n, n_hidden_units] are filled too.
    """
    if shape.sizes.shape[0] == 2:
        _fill_products(features, parameters, scores)
    else:
        score_rows(parameters, shape, features, scores, activations)


@compiled
def _fill_products(features: Singles, weights: Floats, scores: Floats) -> None:
    """The same of a linear ranker: eight sums side by side, added at the end."""
    n_features = weights.shape[0]
    whole = n_features - n_features % 8
    for row in range(features.shape[0]):
        numbers = features[row]
        a = b = c = d = e = f = g = h = 0.0
        for i in range(0, whole, 8):
            a += numbers[i] * weights[i]
            b += numbers[i + 1] * weights[i + 1]
            c += numbers[i + 2] * weights[i + 2]
            d += numbers[i + 3] * weights[i + 3]
            e += numbers[i + 4] * weights[i + 4]
            f += numbers[i + 5] * weights[i + 5]
            g += numbers[i + 6] * weights[i + 6]
            h += numbers[i + 7] * weights[i + 7]
        for i in range(whole, n_features):
            a += numbers[i] * weights[i]
        scores[row] = ((a + e) + (c + g)) + ((b + f) + (d + h))
