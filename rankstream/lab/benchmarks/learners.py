"""Learners in their compiled loops, each over vectorised numpy, on one core.

Data of the size of MSLR-WEB: 1,000 queries of 120 documents with 136 features and five
grades, perfect users, ten shown. Loops are timed after they have learned for a while,
PDGD's from the parameters that 10^5 impressions left, when scores are spread and the
sums are hard; rivals start from the same parameters. Time is what a core was busy, so
that neighbours on the machine count for neither side.
"""

from collections.abc import Callable
from statistics import median

import numpy as np
import numpy.typing as npt

from models.click_models.cascade import cascade_of
from models.learners.duel_learner import DuelConfig
from models.learners.learner import TrainingExample
from models.learners.pdgd import PdgdConfig, PdgdLearner
from rankstream.lab.benchmarks.harness import (
    NO_BOUNDS,
    Bounds,
    Figure,
    in_turns,
    new_figure,
    rate,
)
from rankstream.lab.benchmarks.learners_rival import (
    Teams,
    live_in_numpy,
    live_mgd_in_numpy,
    live_neural_in_numpy,
    scores_against_first,
    scores_of_all,
)
from rankstream.lab.closed_loops.duel_loop import DuelLoop
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.pair_loop import PairLoop
from rankstream.lab.closed_loops.world import Loop, World

Counting = Callable[[Teams, int], npt.NDArray[np.int64]]

N_DOCUMENTS, N_FEATURES = 120, 136
CUTOFF = 10
LEARNING_RATE = 0.1
N_HIDDEN = 64
N_CANDIDATES = 49
N_REPEATS = 3
LISTS = (10, 50, 100)
CANDIDATES = (100, 1_000, 10_000)
MILLION_S = 20.0
"""What a million impressions may take at most."""


def measure(*, quick: bool = False) -> list[Figure]:
    """The figures of `bench learners`.

    Parameters
    ----------
    quick
        Fewer queries and impressions, only to see that it works.
    """
    (linear,) = measure_pdgd(quick=quick)
    seconds = 1e6 / linear["value"]
    world = _world(quick=quick)
    return [
        linear,
        new_figure(
            "pdgd linear, a million impressions of 120 x 136",
            seconds,
            "s",
            MILLION_S,
            MILLION_S / seconds,
            (None, 1.0),
        ),
        neural_figure(world, quick=quick),
        *mgd_figures(world, quick=quick),
        *update_figures(quick=quick),
    ]


def measure_pdgd(*, quick: bool = False) -> list[Figure]:
    """The figure of `bench pdgd`, and the first one of `bench learners`."""
    n_before, n_timed, n_rival = (
        (1_000, 1_000, 20) if quick else (100_000, 200_000, 1_500)
    )
    world, users = _world(quick=quick), cascade_of("perfect", 5)
    config = PdgdConfig(N_FEATURES, learning_rate=LEARNING_RATE)
    rng = np.random.default_rng(2)
    loop = LinearPdgdLoop(config, world, users, cutoff=CUTOFF, rng=rng)
    loop.run(n_before)

    def rival(rng: np.random.Generator) -> None:
        live_in_numpy(
            world, users, loop.parameters, n_rival,
            cutoff=CUTOFF, learning_rate=LEARNING_RATE, rng=rng,
        )  # fmt: skip

    name = "pdgd closed loop, 120 documents x 136 features"
    return [_figure(name, loop, n_timed, rival, n_rival, (80.0, 25.0))]


def neural_figure(world: World, *, quick: bool) -> Figure:
    """PDGD with a hidden layer."""
    users = cascade_of("perfect", 5)
    n_before, n_timed, n_rival = (200, 200, 10) if quick else (20_000, 20_000, 800)
    config = PdgdConfig(N_FEATURES, "neural", (N_HIDDEN,), seed=1)
    loop = PairLoop(config, world, users, rng=np.random.default_rng(2))
    loop.run(n_before)

    def rival(rng: np.random.Generator) -> None:
        live_neural_in_numpy(
            world, users, loop.parameters, N_HIDDEN, n_rival,
            cutoff=CUTOFF, learning_rate=LEARNING_RATE, rng=rng,
        )  # fmt: skip

    name = f"pdgd neural ({N_HIDDEN}), 120 x 136, over the tensor formula"
    return _figure(name, loop, n_timed, rival, n_rival, (20.0, 8.0))


def mgd_figures(world: World, *, quick: bool) -> list[Figure]:
    """P-MGD with exact duels, over two ways to count sampled ones."""
    users = cascade_of("perfect", 5)
    n_before, n_timed = (100, 100) if quick else (10_000, 10_000)
    config = DuelConfig(N_FEATURES, n_candidates=N_CANDIDATES)
    loop = DuelLoop(config, world, users, rng=np.random.default_rng(2))
    loop.run(n_before)

    def over(
        way: str, counted: Counting, n_rival: int, bounds: Bounds = NO_BOUNDS
    ) -> Figure:
        def rival(rng: np.random.Generator) -> None:
            live_mgd_in_numpy(
                world, users, loop.parameters, N_CANDIDATES, n_rival, counted=counted,
                cutoff=CUTOFF, learning_rate=config.learning_rate, rng=rng,
            )  # fmt: skip

        name = f"p-mgd, {N_CANDIDATES} candidates, over 10,000 assignments {way}"
        return _figure(name, loop, n_timed, rival, n_rival, bounds)

    return [
        over("between all pairs", scores_of_all, 2 if quick else 60, (200.0, 60.0)),
        over("against one, lean", scores_against_first, 2 if quick else 400),
    ]


def update_figures(*, quick: bool) -> list[Figure]:
    """What one update of a linear PDGD learner costs, by length and candidates."""
    n_timed = 20 if quick else 400
    costs = {(k, n): _update_s(k, n, n_timed) for k in LISTS for n in CANDIDATES}
    return [
        new_figure(
            f"pdgd update, {k} shown of {n:,} candidates, over 100",
            costs[k, n] * 1e6,
            "us",
            costs[k, CANDIDATES[0]] * 1e6,
            costs[k, CANDIDATES[0]] / costs[k, n],
        )
        for k, n in costs
    ]


def _update_s(n_shown: int, n_candidates: int, n_timed: int) -> float:
    """Seconds of a core for one update, half of the documents clicked at random."""
    rng = np.random.default_rng(0)
    learner = PdgdLearner(PdgdConfig(N_FEATURES))
    features = rng.random((n_shown, N_FEATURES))
    examples = [
        TrainingExample(
            rng.normal(size=n_candidates),
            rng.permutation(n_candidates)[:n_shown],
            rng.random(n_shown) < 0.5,
            features,
        )
        for _ in range(20)
    ]

    def learn_all() -> None:
        for number in range(n_timed):
            learner.learn(examples[number % len(examples)])

    return 1.0 / (n_timed * max(rate(learn_all) for _ in range(N_REPEATS + 1)))


def _world(*, quick: bool) -> World:
    return generated_world(50 if quick else 1_000, rng=np.random.default_rng(1))


def generated_world(n_queries: int, *, rng: np.random.Generator) -> World:
    """Documents whose grade follows a hidden linear score, with noise."""
    n = n_queries * N_DOCUMENTS
    features = rng.random((n, N_FEATURES), dtype=np.float32)
    hidden = features @ rng.normal(size=N_FEATURES)
    relevance = (hidden - hidden.mean()) / hidden.std() + 0.5 * rng.normal(size=n)
    # About the shares of grades in MSLR-WEB: half 0, then ever fewer.
    labels = np.digitize(relevance, [0.1, 1.2, 2.2, 2.8])
    return World(features, labels, np.arange(n_queries + 1) * N_DOCUMENTS)


def _figure(
    name: str,
    loop: Loop,
    n_timed: int,
    rival: Callable[[np.random.Generator], None],
    n_rival: int,
    bounds: Bounds,
) -> Figure:
    """Impressions a second of both; the rival starts from where the loop is."""
    seeds = iter(range(N_REPEATS))
    pairs = in_turns(
        lambda: n_timed * rate(lambda: loop.run(n_timed)),
        lambda: n_rival * rate(lambda: rival(np.random.default_rng(next(seeds)))),
        N_REPEATS,
    )
    ours, theirs = (median(each) for each in zip(*pairs, strict=True))
    return new_figure(name, ours, "impressions/s", theirs, ours / theirs, bounds)
