"""Scores of documents from a snapshot's weights, in plain numpy.

A learner computes the same function in `models.rankers`; tests hold them together.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def normalised(features: Floats, how: str) -> Floats:
    """Features of one query's candidates on one scale.

    Parameters
    ----------
    features : [n_documents, n_features]
    how
        `min-max` (a constant feature becomes 0), `standard`, or `none`.

    Raises
    ------
    ValueError
        For another name.
    """
    if how == "none":
        return features
    if how == "min-max":
        shifted = features - features.min(axis=0)
        width = shifted.max(axis=0)
    elif how == "standard":
        shifted = features - features.mean(axis=0)
        width = np.where(np.ptp(features, axis=0) == 0, 0, features.std(axis=0))
    else:
        raise ValueError(
            f"normalisation must be min-max, standard or none; got {how!r}"
        )
    scaled: Floats = np.divide(
        shifted, width, out=np.zeros_like(shifted), where=width > 0
    )
    return scaled


def scores_of(features: Floats, weights: Floats, hidden: list[int]) -> Floats:
    """Scores of normalised documents.

    Parameters
    ----------
    features : [n_documents, n_features]
    weights : [n_weights]
        Layer by layer: weights [inputs, outputs], then biases; the last layer has
        one output and no bias. Hidden activations are sigmoids.

    Returns
    -------
    [n_documents]
    """
    start, layer = 0, features
    for width in hidden:
        end = start + layer.shape[1] * width
        matrix = weights[start:end].reshape(layer.shape[1], width)
        reach = layer @ matrix + weights[end : end + width]
        layer = 0.5 * (1.0 + np.tanh(0.5 * reach))
        start = end + width
    scores: Floats = (layer @ weights[start:]).astype(np.float32)
    return scores
