"""PDGD over flat arrays, compiled; see `models.learners.pdgd`."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from models.compilation import compiled
from models.learners.reversed_pairs import logged_pair_coefficients
from models.rankers.layers import add_gradient, n_activations, score_rows

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UPDATED, WITHOUT_PREFERENCE, REFUSED = range(3)
N_COUNTS = 3
COUNT_NAMES = {
    "updates": UPDATED,
    "without_preference": WITHOUT_PREFERENCE,
    "refused": REFUSED,
}

LARGEST = float(np.finfo(np.float32).max)
"""Beyond this a parameter could not be served, as snapshots hold float32."""


@compiled
def are_finite(values: Floats) -> bool:
    """Whether no element is NaN or infinite."""
    for value in values.ravel():  # noqa: SIM110  kernels know no generators
        if not math.isfinite(value):
            return False
    return True


@compiled
def first_wrong_interaction(
    score_offsets: Integers, shown: Integers, shown_offsets: Integers
) -> int:
    """The first interaction with a row out of range or shown twice, else -1."""
    for i in range(shown_offsets.shape[0] - 1):
        n = score_offsets[i + 1] - score_offsets[i]
        is_shown = np.zeros(n, np.bool_)
        for at in range(shown_offsets[i], shown_offsets[i + 1]):
            row = shown[at]
            if row < 0 or row >= n or is_shown[row]:
                return i
            is_shown[row] = True
    return -1


@compiled
def move(parameters: Floats, gradient: Floats, rate: float) -> bool:
    """Add rate * gradient, unless a parameter could not be served then."""
    for i in range(parameters.shape[0]):
        # Written so that NaN is refused too.
        if not abs(parameters[i] + rate * gradient[i]) <= LARGEST:
            return False
    for i in range(parameters.shape[0]):
        parameters[i] += rate * gradient[i]
    return True


@compiled
def learn_one(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    rows: Integers,
    clicks: Flags,
    features: Floats,
    parameters: Floats,
    sizes: Integers,
    rate: float,
    gradient: Floats,
) -> int:
    """Fold one interaction; returns what became of it."""
    n_clicks = np.sum(clicks)
    if n_clicks in {0, clicks.shape[0]}:
        return WITHOUT_PREFERENCE
    if not are_finite(scores) or not are_finite(features):
        return REFUSED
    k = rows.shape[0]
    present = np.empty(k)
    activations = np.empty((k, n_activations(sizes)))
    score_rows(parameters, sizes, features, present, activations)
    if not are_finite(present):
        return REFUSED
    coefficients = np.zeros(k)
    logged_pair_coefficients(scores, rows, clicks, present, coefficients)
    gradient[:] = 0.0
    add_gradient(gradient, coefficients, parameters, sizes, features, activations)
    return UPDATED if move(parameters, gradient, rate) else REFUSED


@compiled
def learn_interactions(  # noqa: PLR0913  a kernel takes plain arrays
    batch: Any,
    parameters: Floats,
    sizes: Integers,
    rate: Floats,
    decay: float,
    counts: Integers,
    scratch: Floats,
) -> None:
    """Fold interactions one after another; `rate` decays with each update."""
    for i in range(batch.shown_offsets.shape[0] - 1):
        first, last = batch.shown_offsets[i], batch.shown_offsets[i + 1]
        became = learn_one(
            batch.scores[batch.score_offsets[i] : batch.score_offsets[i + 1]],
            batch.shown[first:last],
            batch.clicks[first:last],
            batch.features[first:last],
            parameters,
            sizes,
            rate[0],
            scratch,
        )
        counts[became] += 1
        if became == UPDATED:
            rate[0] *= decay
