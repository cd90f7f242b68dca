"""Exact placement probabilities over rankings sampled by vectorised numpy."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from streams.native.placing import placements_of_scores

Floats = npt.NDArray[np.float64]

N_DOCUMENTS, CUTOFF, N_RANKINGS = 125, 10, 1_000


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Both figures: ordinary scores, and those of a trained ranker."""
    rng = np.random.default_rng(1)
    ordinary = rng.standard_normal(N_DOCUMENTS)
    trained = rng.random(N_DOCUMENTS) * 60.0
    n_runs = 3 if quick else 9
    return [
        _figure("standard-normal scores", ordinary, n_runs, goal=6.0, floor=2.0),
        _figure("score spread 60", trained, n_runs, goal=2.0, floor=1.0),
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
    name: str, scores: Floats, n_runs: int, *, goal: float, floor: float
) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    exact = placements_of_scores(scores[None], CUTOFF)[0]
    ours, rival, ratios = [], [], []
    for _ in range(n_runs):
        ours.append(_rate(lambda: placements_of_scores(scores[None], CUTOFF), 20))
        rival.append(_rate(lambda: sampled_placements(scores, rng), 5))
        ratios.append(ours[-1] / rival[-1])
    averaged = np.mean([sampled_placements(scores, rng) for _ in range(40)], axis=0)
    agrees = bool(np.abs(averaged - exact).max() < 0.02)
    is_whole = bool(np.abs(exact.sum(axis=0) - 1.0).max() < 1e-9)
    return {
        "name": f"placement probabilities, n = {N_DOCUMENTS}, k = {CUTOFF}, {name}",
        "value": median(ours),
        "unit": "lists/s",
        "rival": median(rival),
        "ratio": median(ratios) if agrees and is_whole else None,
        "goal": goal,
        "floor": floor,
    }


def _rate(work: Callable[[], object], n_times: int) -> float:
    started = time.perf_counter()
    for _ in range(n_times):
        work()
    return n_times / (time.perf_counter() - started)
