"""PDGD's closed loop in vectorised numpy, with the probabilities written out.

For every preference it fills a tensor of (pairs, positions, documents) with what
was still unplaced before each position of the exchanged list, as the definition of
the weight says, where the closed form of `models.learners.reversed_pairs` needs
none. It is the rival of the benchmark, and an independent check of the weights.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.click_models.click_model import ClickModel
from models.click_preferences import preference_pairs
from rankstream.lab.closed_loops.world import World

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Clicks = npt.NDArray[np.bool_]


TOP = 18.0
"""Where the largest score of a softmax is shifted to."""


class Weighted(NamedTuple):
    """Preferences of one list: positions and weight rho.

    `preferred`, `others`, `weights` [n_pairs].
    """

    preferred: Integers
    others: Integers
    weights: Floats


def list_log_probabilities(scores: Floats, lists: Integers) -> Floats:
    """Log probability of every placement of every list.

    Parameters
    ----------
    scores : [n]
    lists : [n_lists, k]
        Rows of the documents, in order.

    Returns
    -------
    [n_lists, k]
    """
    n_lists, k = lists.shape
    placed_now = np.zeros((n_lists, k, len(scores)))
    every_list = np.arange(n_lists)[:, None]
    placed_now[every_list, np.arange(1, k), lists[:, :-1]] = 1.0
    is_placed = np.cumsum(placed_now, axis=1) > 0.0
    left = np.where(is_placed, scores.min(), scores)
    shifts = TOP - left.max(axis=2)
    masses = np.exp(left + shifts[:, :, None])
    masses[is_placed] = 0.0
    placements: Floats = scores[lists] + shifts - np.log(masses.sum(axis=2))
    return placements


def weighted_preferences(scores: Floats, rows: Integers, clicks: Clicks) -> Weighted:
    """Preferences of a list and their rho, from whole tensors.

    `scores` [n]; `rows`, `clicks` [k].
    """
    preferred, others = preference_pairs(clicks).T
    pairs = np.arange(len(preferred))
    exchanged = np.repeat(rows[None, :], len(pairs), axis=0)
    exchanged[pairs, preferred] = rows[others]
    exchanged[pairs, others] = rows[preferred]
    positions = np.arange(len(rows))
    is_between = (positions >= np.minimum(preferred, others)[:, None]) & (
        positions <= np.maximum(preferred, others)[:, None]
    )
    shown = list_log_probabilities(scores, rows[None, :])
    swapped = list_log_probabilities(scores, exchanged)
    ratios_log = np.where(is_between, swapped - shown, 0.0).sum(axis=1)
    return Weighted(preferred, others, 1.0 / (1.0 + np.exp(-ratios_log)))


def document_coefficients(scores: Floats, rows: Integers, clicks: Clicks) -> Floats:
    """Every shown document's share of the gradient, [k].

    Arrays as in `weighted_preferences`.
    """
    pairs = weighted_preferences(scores, rows, clicks)
    shown = scores[rows]
    small = np.exp(-np.abs(shown[pairs.preferred] - shown[pairs.others]))
    weights = pairs.weights * small / (1.0 + small) ** 2
    coefficients = np.zeros(len(rows))
    np.add.at(coefficients, pairs.preferred, weights)
    np.subtract.at(coefficients, pairs.others, weights)
    return coefficients


def any_query(world: World, rng: np.random.Generator) -> slice:
    """The documents of a query, each query as likely as any other."""
    query = int(rng.integers(len(world.offsets) - 1))
    return slice(world.offsets[query], world.offsets[query + 1])


def live_in_numpy(  # noqa: PLR0913  what the compiled loop takes
    world: World,
    users: ClickModel,
    parameters: Floats,
    n_impressions: int,
    *,
    cutoff: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Parameters after a closed loop of sampling, clicking and learning.

    `parameters` [n_features].
    """
    learned = parameters.copy()
    for _ in range(n_impressions):
        span = any_query(world, rng)
        features = world.features[span]
        scores = features @ learned
        # The largest k of scores plus Gumbel noise are a Plackett-Luce draw.
        noisy = scores + rng.gumbel(size=len(scores))
        rows = np.argsort(-noisy)[:cutoff]
        clicks = users.sample_clicks(world.labels[span][rows], rng=rng)
        if clicks.any() and not clicks.all():
            coefficients = document_coefficients(scores, rows, clicks)
            learned += learning_rate * (coefficients @ features[rows])
    return learned
