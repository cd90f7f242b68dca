"""Learners in their compiled loops, each over vectorised numpy, on one core.

Data of the size of MSLR-WEB, perfect users, ten shown, as in the benchmark `pdgd`,
whose figure is the first of these. Loops are timed after they have learned for a
while, and rivals start from the same parameters. Time is what a core was busy, so that
neighbours on the machine count for neither side.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from models.click_models.cascade import cascade_of
from models.learners.duel_learner import DuelConfig
from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from rankstream.lab.benchmarks import pdgd
from rankstream.lab.benchmarks.learners_rival import (
    Teams,
    live_mgd_in_numpy,
    live_neural_in_numpy,
    scores_against_first,
    scores_of_all,
)
from rankstream.lab.closed_loops.duel_loop import DuelLoop
from rankstream.lab.closed_loops.pair_loop import PairLoop
from rankstream.lab.closed_loops.world import World

Counting = Callable[[Teams, int], npt.NDArray[np.int64]]

N_HIDDEN = 64
N_CANDIDATES = 49
N_REPEATS = 3
LISTS = (10, 50, 100)
CANDIDATES = (100, 1_000, 10_000)
MILLION_S = 20.0
"""What a million impressions may take at most."""


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """The figures of this benchmark.

    Parameters
    ----------
    quick
        Fewer queries and impressions, only to see that it works.
    """
    linear = pdgd.measure(quick=quick)[0]
    seconds = 1e6 / linear["value"]
    n_queries = 50 if quick else 1_000
    world = pdgd.generated_world(n_queries, rng=np.random.default_rng(1))
    return [
        linear,
        {
            "name": "pdgd linear, a million impressions of 120 x 136",
            "value": seconds,
            "unit": "s",
            "rival": MILLION_S,
            "ratio": MILLION_S / seconds,
            "goal": None,
            "floor": 1.0,
        },
        neural_figure(world, quick=quick),
        *mgd_figures(world, quick=quick),
        *update_figures(quick=quick),
    ]


def neural_figure(world: World, *, quick: bool) -> dict[str, Any]:
    """PDGD with a hidden layer."""
    users = cascade_of("perfect", 5)
    n_before, n_timed, n_rival = (200, 200, 10) if quick else (20_000, 20_000, 800)
    config = PdgdConfig(pdgd.N_FEATURES, "neural", (N_HIDDEN,), seed=1)
    loop = PairLoop(config, world, users, rng=np.random.default_rng(2))
    loop.run(n_before)

    def rival(repeat: int) -> None:
        live_neural_in_numpy(
            world, users, loop.parameters, N_HIDDEN, n_rival,
            cutoff=pdgd.CUTOFF, learning_rate=pdgd.LEARNING_RATE,
            rng=np.random.default_rng(repeat),
        )  # fmt: skip

    ours, theirs = _rates(loop.run, n_timed, rival, n_rival)
    name = f"pdgd neural ({N_HIDDEN}), 120 x 136, over the tensor formula"
    return _figure(name, ours, theirs, goal=20.0, floor=8.0)


def mgd_figures(world: World, *, quick: bool) -> list[dict[str, Any]]:
    """P-MGD with exact duels, over two ways to count sampled ones."""
    users = cascade_of("perfect", 5)
    n_before, n_timed = (100, 100) if quick else (10_000, 10_000)
    config = DuelConfig(pdgd.N_FEATURES, n_candidates=N_CANDIDATES)
    loop = DuelLoop(config, world, users, rng=np.random.default_rng(2))
    loop.run(n_before)

    def over(way: str, counted: Counting, n_rival: int, goal: float) -> dict[str, Any]:
        def rival(repeat: int) -> None:
            live_mgd_in_numpy(
                world, users, loop.parameters, N_CANDIDATES, n_rival, counted=counted,
                cutoff=pdgd.CUTOFF, learning_rate=config.learning_rate,
                rng=np.random.default_rng(repeat),
            )  # fmt: skip

        ours, theirs = _rates(loop.run, n_timed, rival, n_rival)
        name = f"p-mgd, {N_CANDIDATES} candidates, over 10,000 assignments {way}"
        figure = _figure(name, ours, theirs, goal=goal, floor=0.3 * goal)
        return figure if goal else figure | {"goal": None, "floor": None}

    return [
        over("between all pairs", scores_of_all, 2 if quick else 60, 200.0),
        over("against one, lean", scores_against_first, 2 if quick else 400, 0.0),
    ]


def update_figures(*, quick: bool) -> list[dict[str, Any]]:
    """What one update of a linear PDGD learner costs, by length and candidates."""
    n_timed = 20 if quick else 400
    costs = {(k, n): _update_s(k, n, n_timed) for k in LISTS for n in CANDIDATES}
    return [
        {
            "name": f"pdgd update, {k} shown of {n:,} candidates, over 100",
            "value": costs[k, n] * 1e6,
            "unit": "us",
            "rival": costs[k, CANDIDATES[0]] * 1e6,
            "ratio": costs[k, CANDIDATES[0]] / costs[k, n],
            "goal": None,
            "floor": None,
        }
        for k, n in costs
    ]


def _update_s(n_shown: int, n_candidates: int, n_timed: int) -> float:
    """Seconds of a core for one update, half of the documents clicked at random."""
    rng = np.random.default_rng(0)
    learner = PdgdLearner(PdgdConfig(pdgd.N_FEATURES))
    features = rng.random((n_shown, pdgd.N_FEATURES))
    examples = [
        TrainingExample(
            rng.normal(size=n_candidates),
            rng.permutation(n_candidates)[:n_shown],
            rng.random(n_shown) < 0.5,
            features,
        )
        for _ in range(20)
    ]
    times = []
    for _ in range(N_REPEATS + 1):
        started = time.process_time()
        for number in range(n_timed):
            learner.learn(examples[number % len(examples)])
        times.append((time.process_time() - started) / n_timed)
    return min(times)


def _rates(
    ours: Callable[[int], object],
    n_timed: int,
    rival: Callable[[int], None],
    n_rival: int,
) -> tuple[float, float]:
    """Impressions a second of both, in turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for repeat in range(N_REPEATS):
        started = time.process_time()
        rival(repeat)
        found[1].append(n_rival / (time.process_time() - started))
        started = time.process_time()
        ours(n_timed)
        found[0].append(n_timed / (time.process_time() - started))
    return statistics.median(found[0]), statistics.median(found[1])


def _figure(
    name: str, value: float, rival: float, *, goal: float | None, floor: float | None
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": "impressions/s",
        "rival": rival,
        "ratio": value / rival,
        "goal": goal,
        "floor": floor,
    }
