"""PDGD over flat arrays, compiled; see `models.learners.pdgd`."""

from typing import Any, NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import Number, compiled
from models.learners.parameters import REFUSED, UPDATED, WITHOUT_PREFERENCE
from models.learners.reversed_pairs import Pairs, logged_pair_coefficients
from models.optimisers.kernel import Optimiser, step
from models.rankers.layers import Shape, add_gradient, n_activations, score_rows

LARGEST = np.finfo(np.float64).max


@compiled
def are_finite(values: Floats) -> bool:
    """Whether no element of `values` [..] is NaN or infinite."""
    # Without a way out in between, machines look at several at once.
    n_finite: Number = 0
    for value in values.ravel():
        n_finite += abs(value) <= LARGEST
    return bool(n_finite == values.size)


@compiled
def first_wrong_interaction(
    score_offsets: Integers, shown: Integers, shown_offsets: Integers
) -> int:
    """The first interaction with a row out of range or shown twice, else -1.

    Parameters
    ----------
    score_offsets, shown_offsets : [n_interactions + 1]
    shown : [n_shown]
        As in `Interactions` of `models.learners.pdgd`.
    """
    for i in range(shown_offsets.shape[0] - 1):
        n = score_offsets[i + 1] - score_offsets[i]
        is_shown = np.zeros(n, np.bool_)
        for at in range(shown_offsets[i], shown_offsets[i + 1]):
            row = shown[at]
            if row < 0 or row >= n or is_shown[row]:
                return i
            is_shown[row] = True
    return -1


class PdgdOptions(NamedTuple):
    """What of PDGD is left out or exchanged; see `models.learners.pdgd`."""

    pairs: Pairs
    logged_slopes: bool


@compiled
def learn_one(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    rows: Integers,
    clicks: Flags,
    features: Floats,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    options: PdgdOptions,
    gradient: Floats,
) -> int:
    """Fold one interaction; returns what became of it.

    Parameters
    ----------
    scores : [n]
        Logged ones of all candidates.
    rows, clicks : [k]
        Of the shown ones, in displayed order.
    features : [k, n_features]
    parameters, gradient : [n_parameters]
        The gradient is scratch.
    """
    n_clicks = np.sum(clicks)
    if n_clicks in {0, clicks.shape[0]}:
        return WITHOUT_PREFERENCE
    if not are_finite(scores) or not are_finite(features):
        return REFUSED
    k = rows.shape[0]
    present = np.empty(k)
    activations = np.empty((k, n_activations(shape)))
    score_rows(parameters, shape, features, present, activations)
    if not are_finite(present):
        return REFUSED
    slopes_at = scores[rows] if options.logged_slopes else present
    coefficients = np.zeros(k)
    logged_pair_coefficients(
        scores, rows, clicks, slopes_at, coefficients, options.pairs
    )
    gradient[:] = 0.0
    add_gradient(gradient, coefficients, parameters, shape, features, activations)
    return UPDATED if step(parameters, gradient, optimiser) else REFUSED


@compiled
def learn_interactions(  # noqa: PLR0913  a kernel takes plain arrays
    batch: Any,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    options: PdgdOptions,
    counts: Integers,
    scratch: Floats,
) -> None:
    """Fold interactions one after another.

    Parameters
    ----------
    batch
        The arrays of `models.learners.pdgd.Interactions`.
    parameters, scratch : [n_parameters]
    counts : [3]
        By what becomes of an interaction; added to.
    """
    for i in range(batch.shown_offsets.shape[0] - 1):
        first, last = batch.shown_offsets[i], batch.shown_offsets[i + 1]
        became = learn_one(
            batch.scores[batch.score_offsets[i] : batch.score_offsets[i + 1]],
            batch.shown[first:last],
            batch.clicks[first:last],
            batch.features[first:last],
            parameters,
            shape,
            optimiser,
            options,
            scratch,
        )
        counts[became] += 1
