"""Neural PDGD in single precision learns as well as by the formula in double."""

import numpy as np

from models.click_models.cascade import CascadeModel
from models.learners.pdgd import PdgdConfig
from models.rankers.registry import ranker_of
from rankstream.lab.benchmarks.learners_rival import live_neural_in_numpy
from rankstream.lab.closed_loops.pair_loop import PairLoop
from rankstream.lab.closed_loops.performance import Conventions, Judge
from rankstream.lab.closed_loops.world import World

N_FEATURES, N_HIDDEN, N_QUERIES, N_DOCUMENTS = 10, 20, 40, 25
N_IMPRESSIONS, N_SEEDS, CUTOFF = 2_000, 8, 5
USERS = CascadeModel((0.05, 0.5, 0.95), (0.0, 0.0, 0.0))


def generated_world() -> World:
    """Grades that no linear function of the features tells."""
    rng = np.random.default_rng(5)
    n = N_QUERIES * N_DOCUMENTS
    features = rng.random((n, N_FEATURES), dtype=np.float32)
    hidden = features @ rng.normal(size=N_FEATURES) + 2.0 * np.abs(features[:, 0] - 0.5)
    labels = np.digitize(hidden, np.quantile(hidden, [0.7, 0.9]))
    return World(features, labels, np.arange(N_QUERIES + 1) * N_DOCUMENTS)


def test_curves_agree_with_the_formula_in_double_precision() -> None:
    """NDCG after 2,000 impressions, within the noise of seeds; and both learned."""
    world = generated_world()
    judge = Judge(world, Conventions(cutoff=CUTOFF))
    ranker = ranker_of("neural", N_FEATURES, (N_HIDDEN,))
    found: dict[str, list[float]] = {"before": [], "loop": [], "formula": []}
    for seed in range(N_SEEDS):
        config = PdgdConfig(N_FEATURES, "neural", (N_HIDDEN,), seed=seed)
        rng = np.random.default_rng(seed)
        loop = PairLoop(config, world, USERS, cutoff=CUTOFF, rng=rng)
        initial = loop.parameters.copy()
        loop.run(N_IMPRESSIONS)
        learned = live_neural_in_numpy(
            world, USERS, initial, N_HIDDEN, N_IMPRESSIONS,
            cutoff=CUTOFF, learning_rate=config.learning_rate, rng=rng,
        )  # fmt: skip
        for name, parameters in (
            ("before", initial),
            ("loop", loop.parameters),
            ("formula", learned),
        ):
            scores = ranker.score(parameters, world.features.astype(np.float64))
            found[name].append(judge.held_out(scores, rng=rng))

    differences = np.array(found["loop"]) - np.array(found["formula"])
    noise = differences.std(ddof=1) / np.sqrt(N_SEEDS)
    assert abs(differences.mean()) < 4.5 * noise
    assert noise < 0.02
    for name in ("loop", "formula"):
        assert np.mean(found[name]) > np.mean(found["before"]) + 0.1
