"""PDGD, linear and neural, and P-MGD in vectorised numpy.

PDGD has the probabilities written out: for every preference it fills a tensor of
(pairs, positions, documents) with what was still unplaced before each position of the
exchanged list, as the definition of the weight says, where the closed form of
`models.learners.reversed_pairs` needs none. P-MGD samples 10,000 assignments of the
clicked documents, as the published code does, and counts them between all pairs of
rankers, as that does too; or as leanly as numpy can: only against the ranker that
learns, and by what each document changes. They are the rivals of the benchmark, and an
independent check of the kernels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.click_models.click_model import ClickModel
from models.click_preferences import preference_pairs
from rankstream.lab.closed_loops.world import World

Teams = npt.NDArray[np.uint8]

TOP = 18.0
"""Where the largest score of a softmax is shifted to."""

N_SAMPLES = 10_000
N_CELLS = 1_024
TAU = 3.0


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


def weighted_preferences(scores: Floats, rows: Integers, clicks: Flags) -> Weighted:
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


def document_coefficients(scores: Floats, rows: Integers, clicks: Flags) -> Floats:
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


class Network(NamedTuple):
    """One hidden layer of sigmoid units, as matrices.

    `weights` [n_features, n_hidden]; `biases` and `last` [n_hidden].
    """

    weights: Floats
    biases: Floats
    last: Floats


def network_of(parameters: Floats, n_features: int, n_hidden: int) -> Network:
    """The layers that lie in a flat vector; they share its memory.

    `parameters` [(n_features + 2) * n_hidden].
    """
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
    """Parameters after a closed loop of PDGD with a hidden layer.

    `parameters` as in `network_of`.
    """
    learned = parameters.copy()
    network = network_of(learned, world.features.shape[1], n_hidden)
    for _ in range(n_impressions):
        span = any_query(world, rng)
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
    """Gradient of a weighted sum of scores, by back-propagation, as a flat vector.

    `features` [k, n_features], `active` [k, n_hidden], `coefficients` [k].
    """
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
    counted: Callable[[Teams, int], Integers],
    cutoff: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Parameters after a closed loop of P-MGD with sampled assignments.

    `parameters` [n_features].
    """
    learned = parameters.copy()
    for _ in range(n_impressions):
        span = any_query(world, rng)
        directions = rng.standard_normal((n_candidates, len(learned)), np.float32)
        directions /= np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, None]
        base = learned.astype(np.float32)
        scores = np.vstack([base, base + directions]) @ world.features[span].T
        shares = shares_of(scores)
        rows = multileaved(shares, cutoff, rng)
        clicks = users.sample_clicks(world.labels[span][rows], rng=rng)
        if clicks.any():
            assignment = assignment_of(shares, rows, clicks)
            teams = sampled_teams(assignment, N_SAMPLES, rng)
            is_winner = counted(teams, len(scores))[1:] > 0
            if is_winner.any():
                learned += learning_rate * directions[is_winner].mean(axis=0)
    return learned


def shares_of(scores: npt.NDArray[np.floating]) -> Floats:
    """1 / rank^tau [n_rankers, n] of all documents, by `scores` [n_rankers, n]."""
    order = np.argsort(-scores, axis=1)
    shares = np.empty(scores.shape)
    by_rank = np.arange(1.0, scores.shape[1] + 1) ** -TAU
    np.put_along_axis(shares, order, by_rank[None, :], axis=1)
    return shares


def multileaved(shares: Floats, cutoff: int, rng: np.random.Generator) -> Integers:
    """A probabilistically multileaved list of rankers with `shares` [n_rankers, n]."""
    left = shares.copy()
    rows = np.empty(min(cutoff, shares.shape[1]), np.int64)
    for place in range(len(rows)):
        chances = np.cumsum((1.0 / left.sum(axis=1)) @ left)
        rows[place] = np.searchsorted(chances, rng.random() * chances[-1], "right")
        left[:, rows[place]] = 0.0
    return rows


def assignment_of(shares: Floats, rows: Integers, clicks: Flags) -> Floats:
    """P(ranker | clicked document, all above it), [n_clicks, n_rankers].

    `shares` [n_rankers, n] of all documents; `rows`, `clicks` [k] of the shown ones.
    """
    shown = shares[:, rows]
    above = np.cumsum(shown, axis=1) - shown
    chances = (shown / (shares.sum(axis=1)[:, None] - above))[:, clicks].T
    return np.asarray(chances / chances.sum(axis=1)[:, None])


def sampled_teams(
    assignment: Floats, n_samples: int, rng: np.random.Generator
) -> Teams:
    """Whose each clicked document is, in every sample, [n_clicks, n_samples].

    Numbers between 0 and 1 fall into cells, nearly all of which belong to one ranker;
    only those in the others are searched for. `assignment` [n_clicks, n_rankers].
    """
    bounds = np.arange(N_CELLS + 1) / N_CELLS
    teams = np.empty((len(assignment), n_samples), np.uint8)
    for own, chances in zip(teams, assignment, strict=True):
        upper = np.cumsum(chances)
        upper[-1] = np.inf
        ranker_at = np.searchsorted(upper, bounds, "right").astype(np.uint8)
        is_shared = ranker_at[:-1] != ranker_at[1:]
        drawn = rng.random(n_samples)
        cells = (drawn * N_CELLS).astype(np.int64)
        np.take(ranker_at, cells, out=own)
        unsure = np.flatnonzero(is_shared[cells])
        own[unsure] = np.searchsorted(upper, drawn[unsure], "right")
    return teams


def scores_of_all(teams: Teams, n_rankers: int) -> Integers:
    """As in `scores_against_first`, but of the differences between all pairs."""
    n_samples = teams.shape[1]
    placed = np.zeros((n_rankers, n_samples), np.int8)
    for own in teams:
        placed[own, np.arange(n_samples)] += 1
    found = np.empty((n_rankers, n_rankers), np.int64)
    for other, row in enumerate(placed):
        is_more = np.count_nonzero(placed > row, axis=1)
        found[:, other] = is_more - np.count_nonzero(placed < row, axis=1)
    return found[:, 0]


def scores_against_first(teams: Teams, n_rankers: int) -> Integers:
    """Samples in which each ranker placed more than ranker 0, less those with fewer.

    A ranker that placed nothing loses wherever ranker 0 placed something; the n-th
    document that it placed corrects that by what it does to the sign.
    `teams` [n_clicks, n_samples].
    """
    of_first = (teams == 0).sum(axis=0, dtype=np.int8)
    found = np.full(n_rankers, -np.count_nonzero(of_first), np.float64)
    for place, own in enumerate(teams):
        ahead = -of_first
        for earlier in teams[:place]:
            ahead += earlier == own
        # From behind to level, or from level to ahead: -1 or 0 before it counts.
        found += np.bincount(own, (ahead + 1).view(np.uint8) < 2, n_rankers)
    found[0] = 0.0
    return found.astype(np.int64)
