"""Neural PDGD and P-MGD in vectorised numpy, as the published code has them.

Neural PDGD fills the tensors of `rankstream.commands.benchmarks.pdgd_rival`; P-MGD
samples 10,000 assignments of the clicked documents, and has from them the preferences
between all pairs of rankers, or, leaner than what was published, only those against
the one that learns. They are the rivals of the benchmark, and an independent check of
the kernels.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.click_models.click_model import ClickModel
from models.closed_loops.world import World
from rankstream.commands.benchmarks.pdgd_rival import document_coefficients

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

N_SAMPLES = 10_000
TAU = 3.0


class Network(NamedTuple):
    """One hidden layer of sigmoid units, as matrices."""

    weights: Floats
    biases: Floats
    last: Floats


def network_of(parameters: Floats, n_features: int, n_hidden: int) -> Network:
    """The layers that lie in a flat vector; they share its memory."""
    end = n_features * n_hidden
    return Network(
        parameters[:end].reshape(n_features, n_hidden),
        parameters[end : end + n_hidden],
        parameters[end + n_hidden :],
    )


def live_neural_in_numpy(  # noqa: PLR0913  what the compiled loop takes
    world: World,
    users: ClickModel,
    parameters: Floats,
    n_hidden: int,
    n_impressions: int,
    *,
    cutoff: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Parameters after a closed loop of PDGD with a hidden layer."""
    learned = parameters.copy()
    network = network_of(learned, world.features.shape[1], n_hidden)
    for _ in range(n_impressions):
        query = int(rng.integers(len(world.offsets) - 1))
        span = slice(world.offsets[query], world.offsets[query + 1])
        features = world.features[span].astype(np.float64)
        active = 1.0 / (1.0 + np.exp(-(features @ network.weights + network.biases)))
        scores = active @ network.last
        rows = np.argsort(-(scores + rng.gumbel(size=len(scores))))[:cutoff]
        clicks = users.sample_clicks(world.labels[span][rows], rng=rng)
        if clicks.any() and not clicks.all():
            coefficients = document_coefficients(scores, rows, clicks)
            learned += learning_rate * network_gradient(
                network, features[rows], active[rows], coefficients
            )
    return learned


def network_gradient(
    network: Network, features: Floats, active: Floats, coefficients: Floats
) -> Floats:
    """Gradient of a weighted sum of scores, by back-propagation, as a flat vector."""
    slopes = coefficients[:, None] * network.last * active * (1.0 - active)
    return np.concatenate(
        [
            (features.T @ slopes).ravel(),
            slopes.sum(axis=0),
            coefficients @ active,
        ]
    )


def live_mgd_in_numpy(  # noqa: PLR0913  what the compiled loop takes
    world: World,
    users: ClickModel,
    parameters: Floats,
    n_candidates: int,
    n_impressions: int,
    *,
    all_pairs: bool,
    cutoff: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Parameters after a closed loop of P-MGD with sampled assignments."""
    learned = parameters.copy()
    for _ in range(n_impressions):
        query = int(rng.integers(len(world.offsets) - 1))
        span = slice(world.offsets[query], world.offsets[query + 1])
        directions = rng.normal(size=(n_candidates, len(learned)))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        rankers = np.concatenate([learned[None, :], learned + directions])
        scores = rankers @ world.features[span].T
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
        rows = multileaved(ranks, cutoff, rng)
        clicks = users.sample_clicks(world.labels[span][rows], rng=rng)
        if clicks.any():
            assignment = assignment_of(ranks, rows, clicks)
            placed = sampled_clicks(assignment, N_SAMPLES, rng)
            if all_pairs:
                preferences = preferences_of_all(placed)[:, 0]
            else:
                preferences = preferences_against_first(placed)
            is_winner = preferences[1:] > 0.0
            if is_winner.any():
                learned += learning_rate * directions[is_winner].mean(axis=0)
    return learned


def multileaved(ranks: Integers, cutoff: int, rng: np.random.Generator) -> Integers:
    """A probabilistically multileaved list of rankers [n_rankers, n]."""
    shares = ranks.astype(np.float64) ** -TAU
    rows = np.empty(min(cutoff, ranks.shape[1]), np.int64)
    for place in range(len(rows)):
        chances = (shares / shares.sum(axis=1)[:, None]).mean(axis=0)
        rows[place] = rng.choice(len(chances), p=chances)
        shares[:, rows[place]] = 0.0
    return rows


def assignment_of(ranks: Integers, rows: Integers, clicks: Flags) -> Floats:
    """P(ranker | clicked document, all above it), [n_clicks, n_rankers]."""
    shares = ranks.astype(np.float64) ** -TAU
    shown = shares[:, rows]
    above = np.cumsum(shown, axis=1) - shown
    chances = (shown / (shares.sum(axis=1)[:, None] - above))[:, clicks].T
    return np.asarray(chances / chances.sum(axis=1)[:, None])


def sampled_clicks(
    assignment: Floats, n_samples: int, rng: np.random.Generator
) -> Integers:
    """How many clicked documents each ranker placed, [n_samples, n_rankers]."""
    upper = np.cumsum(assignment, axis=1)
    placed = np.zeros((n_samples, assignment.shape[1]), np.int64)
    for bounds in upper:
        teams = np.searchsorted(bounds, rng.random(n_samples) * bounds[-1])
        placed[np.arange(n_samples), teams] += 1
    return placed


def preferences_of_all(placed: Integers) -> Floats:
    """Mean sign of every difference between two rankers, [n_rankers, n_rankers]."""
    signs = np.sign(placed[:, :, None] - placed[:, None, :])
    return np.asarray(signs.mean(axis=0))


def preferences_against_first(placed: Integers) -> Floats:
    """Mean sign of every ranker's clicks less those of ranker 0, [n_rankers]."""
    return np.asarray(np.sign(placed - placed[:, :1]).mean(axis=0))
