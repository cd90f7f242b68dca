"""Exact placement probabilities over rankings sampled by vectorised numpy."""

import time

import numpy as np

from models.arrays import Floats
from rankstream.lab.benchmarks.harness import Figure, beside_figure, in_turns, rate
from streams.native.placing import placements_of_scores

N_DOCUMENTS, CUTOFF, N_RANKINGS = 125, 10, 1_000


def measure(*, quick: bool = False) -> list[Figure]:
    """Both figures: ordinary scores, and those of a trained ranker."""
    rng = np.random.default_rng(1)
    ordinary = rng.standard_normal(N_DOCUMENTS)
    trained = rng.random(N_DOCUMENTS) * 60.0
    n_runs = 3 if quick else 9
    return [
        _figure("standard-normal scores", ordinary, n_runs, (6.0, 2.0)),
        _figure("score spread 60", trained, n_runs, (2.0, 1.0)),
    ]


def sampled_placements(scores: Floats, rng: np.random.Generator) -> Floats:
    """The rival: Gumbel top-k of many rankings at once, counted.

    [N_DOCUMENTS, CUTOFF], of `scores` [N_DOCUMENTS].
    """
    keys = scores + rng.gumbel(size=(N_RANKINGS, N_DOCUMENTS))
    top = np.argpartition(-keys, CUTOFF, axis=1)[:, :CUTOFF]
    within = np.argsort(-np.take_along_axis(keys, top, 1), axis=1)
    ranked = np.take_along_axis(top, within, 1)
    places = ranked * CUTOFF + np.arange(CUTOFF)
    counts = np.bincount(places.ravel(), minlength=N_DOCUMENTS * CUTOFF)
    return counts.reshape(N_DOCUMENTS, CUTOFF) / N_RANKINGS


def _figure(
    name: str, scores: Floats, n_runs: int, bounds: tuple[float, float]
) -> Figure:
    rng = np.random.default_rng(2)
    exact = placements_of_scores(scores[None], CUTOFF)[0]
    clock = time.perf_counter
    pairs = in_turns(
        lambda: rate(lambda: placements_of_scores(scores[None], CUTOFF), 20, clock),
        lambda: rate(lambda: sampled_placements(scores, rng), 5, clock),
        n_runs,
    )
    averaged = np.mean([sampled_placements(scores, rng) for _ in range(40)], axis=0)
    agrees = bool(np.abs(averaged - exact).max() < 0.02)
    is_whole = bool(np.abs(exact.sum(axis=0) - 1.0).max() < 1e-9)
    return beside_figure(
        f"placement probabilities, n = {N_DOCUMENTS}, k = {CUTOFF}, {name}",
        "lists/s",
        pairs,
        bounds,
        is_same=agrees and is_whole,
    )
