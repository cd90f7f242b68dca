"""A step of LogOpt: its first part exact, against all of it from drawn clicks.

Both gradients are unbiased; ours varies less. So rates are those at equal variance: as
many steps a second as if the rival drew so many more lists that its gradient varied as
little. Both know propensities exactly, and both are compiled.
"""

import numpy as np

from models.arrays import Floats
from models.logging_policy.compared_query import ComparedQuery, compared_query
from models.logging_policy.query_scores import ScoresPlan, optimised_scores
from models.logging_policy.sampled_gradient import add_sampled_gradient
from models.logging_policy.second_moment import second_moment
from models.losses.placement_gradient import fill_weights
from rankstream.lab.benchmarks.harness import Figure, beside_figure, in_turns, rate
from rankstream.lab.benchmarks.policy_lists import measure_lists

N_ITEMS, LENGTH = 20, 10

N_LISTS, N_CLICKED_LISTS = 100, 1_000
"""Drawn in a step of ours, and in one of the rival's, as in the literature."""

BOUNDS = (30.0, 10.0)


def measure(*, quick: bool = False) -> list[Figure]:
    """One figure where optimisation begins, one where it ends, and those of lists."""
    query = planted_query(np.random.default_rng(1))
    begun = np.zeros(N_ITEMS)
    ended = optimised_scores(query, ScoresPlan(), rng=np.random.default_rng(2))
    steps = [
        _figure(name, scores, query, quick=quick)
        for name, scores in (("equal scores", begun), ("optimised scores", ended))
    ]
    return steps + measure_lists(quick=quick)


def planted_query(rng: np.random.Generator) -> ComparedQuery:
    """Two rankings that agree about most, and relevance of all grades."""
    one = rng.permutation(N_ITEMS)
    other = one[np.argsort(np.arange(N_ITEMS) + 3.0 * rng.normal(size=N_ITEMS))]
    relevance = 0.1 + 0.225 * rng.integers(0, 5, N_ITEMS).astype(np.float64)
    theta = 1.0 / np.arange(1.0, LENGTH + 1.0)
    return compared_query(np.stack([one, other]), relevance, theta)


def exact_first(
    scores: Floats, query: ComparedQuery, rng: np.random.Generator
) -> Floats:
    """Ours, [N_ITEMS]; `scores` [N_ITEMS]."""
    return second_moment(scores, query, n_lists=N_LISTS, rng=rng).gradient


def all_drawn(scores: Floats, query: ComparedQuery, rng: np.random.Generator) -> Floats:
    """The rival, [N_ITEMS]; `scores` [N_ITEMS]."""
    slopes, looked = np.zeros(N_ITEMS), np.empty(N_ITEMS)
    fill_weights(scores, query.examination, np.empty(N_ITEMS, np.int64), looked)
    add_sampled_gradient(
        scores, *query, query.difference, looked, N_CLICKED_LISTS, slopes, rng
    )
    return slopes


def _figure(name: str, scores: Floats, query: ComparedQuery, *, quick: bool) -> Figure:
    rng = np.random.default_rng(3)
    n_draws, n_times, n_runs = (60, 5, 3) if quick else (600, 50, 9)
    ours, rival = (
        np.stack([gradient(scores, query, rng) for _ in range(n_draws)])
        for gradient in (exact_first, all_drawn)
    )
    spreads = [float(each.var(axis=0, ddof=1).sum()) for each in (ours, rival)]
    gap = ours.mean(axis=0) - rival.mean(axis=0)
    error = np.sqrt((ours.var(axis=0) + rival.var(axis=0)) / n_draws)
    pairs = in_turns(
        lambda: rate(lambda: exact_first(scores, query, rng), n_times),
        lambda: (
            rate(lambda: all_drawn(scores, query, rng), n_times)
            * spreads[0]
            / spreads[1]
        ),
        n_runs,
    )
    return beside_figure(
        f"LogOpt, a step at equal variance, n = {N_ITEMS}, k = {LENGTH}, {name}",
        "steps/s",
        pairs,
        BOUNDS,
        is_same=bool((np.abs(gap) < 5.0 * error).all()),
    )
