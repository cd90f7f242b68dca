"""PDGD's closed loop over the tensor formula in numpy, on one core.

Data of the size of MSLR-WEB: 1,000 queries of 120 documents with 136 features and
five grades, perfect users, ten shown. Both loops are timed from the parameters that
10^5 impressions left, when scores are spread and the sums are hard, by what they take
of the core.
"""

import statistics
import time
from typing import Any

import numpy as np

from models.click_models.cascade import CascadeModel, cascade_of
from rankstream.lab.benchmarks.pdgd_rival import live_in_numpy
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.world import World

N_DOCUMENTS = 120
N_FEATURES = 136
CUTOFF = 10
LEARNING_RATE = 0.1
N_REPEATS = 3
GOAL, FLOOR = 80.0, 25.0


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """The figure of this benchmark.

    Parameters
    ----------
    quick
        Fewer queries and impressions, only to see that it works.
    """
    n_queries, n_before, n_timed, n_rival = (
        (50, 1_000, 1_000, 20) if quick else (1_000, 100_000, 200_000, 1_500)
    )
    world = generated_world(n_queries, rng=np.random.default_rng(1))
    users = cascade_of("perfect", 5)
    loop = LinearPdgdLoop(
        world,
        users,
        cutoff=CUTOFF,
        rng=np.random.default_rng(2),
    )
    loop.set_rate(LEARNING_RATE)
    loop.run(n_before)
    ours, rivals = [], []
    for repeat in range(N_REPEATS):
        # The rival starts from where this loop is, so that both do the same work.
        rivals.append(_rival_rate(world, users, loop, n_rival, repeat))
        started = time.process_time()
        loop.run(n_timed)
        ours.append(n_timed / (time.process_time() - started))
    value, rival = statistics.median(ours), statistics.median(rivals)
    return [
        {
            "name": "pdgd closed loop, 120 documents x 136 features",
            "value": value,
            "unit": "impressions/s",
            "rival": rival,
            "ratio": value / rival,
            "goal": GOAL,
            "floor": FLOOR,
        }
    ]


def generated_world(n_queries: int, *, rng: np.random.Generator) -> World:
    """Documents whose grade follows a hidden linear score, with noise."""
    n = n_queries * N_DOCUMENTS
    features = rng.random((n, N_FEATURES), dtype=np.float32)
    hidden = features @ rng.normal(size=N_FEATURES)
    relevance = (hidden - hidden.mean()) / hidden.std() + 0.5 * rng.normal(size=n)
    # About the shares of grades in MSLR-WEB: half 0, then ever fewer.
    labels = np.digitize(relevance, [0.1, 1.2, 2.2, 2.8])
    return World(features, labels, np.arange(n_queries + 1) * N_DOCUMENTS)


def _rival_rate(
    world: World,
    users: CascadeModel,
    loop: LinearPdgdLoop,
    n_impressions: int,
    seed: int,
) -> float:
    started = time.process_time()
    live_in_numpy(
        world,
        users,
        loop.parameters,
        n_impressions,
        cutoff=CUTOFF,
        learning_rate=LEARNING_RATE,
        rng=np.random.default_rng(seed),
    )
    return n_impressions / (time.process_time() - started)
