"""Interventions in a closed loop, with clicks corrected for position and without.

A poor ranker that is sure of itself shows lists to users who hardly look below the
first ranks. It is trained three times from their clicks, and each version shows the
lists that the next one learns from. The same loop runs beside it with naive weights:
clicks over times shown, as if users looked at all ranks alike. Runs are paired: both
begin with the same ranker, and queries and users are drawn from the same seed.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.click_models.position_based import position_based_of
from producers.formats.letor import LetorData, generated_queries
from producers.simulation import Plan, Progress, simulate, step_ms_for
from rankstream.configuration.models import TRAINED
from rankstream.lab.benchmarks.harness import (
    NO_BOUNDS,
    Bounds,
    Figure,
    new_figure,
)
from rankstream.lab.simulation.pipelines import in_process
from rankstream.lab.simulation.queries import ndcg_of
from rankstream.lab.simulation.served_policies import Policy, ServedPolicies
from rankstream.settings import (
    ModelSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
    TrainingSettings,
)

N_RUNS, N_LISTS, N_INTERVENTIONS = 10, 4_000, 3
N_QUERIES, N_DOCUMENTS, N_FEATURES, N_GRADES = 60, 8, 6, 5
CUTOFF = 5
SEVERITY = 2.0
"""Users look at rank r with probability 1 / r ** SEVERITY."""

LIKED = 0.05, 0.25, 0.45, 0.65, 0.85
"""P(click | looked at), by grade."""

TEMPERATURE = 0.25
START_MS = 1_700_000_000_000
WINDOW_MS, DISORDER_MS, BEHIND = 10_000, 1_000, 100

NAIVE = (1.0,) * CUTOFF
"""Examination of users who look at all ranks alike."""


class Loop(NamedTuple):
    """What came of one run: the first policy, the last one, and trainings."""

    first: Policy
    last: Policy
    n_trained: int


def settings_with(n_lists: int, examination: tuple[float, ...]) -> Settings:
    """Those of a run; without an `examination` it is estimated."""
    training = TrainingSettings(
        first=n_lists // 4,
        last=n_lists * 3 // 4,
        interventions=N_INTERVENTIONS,
        cutoff=CUTOFF,
        # A few queries make few batches, so steps must be large.
        batch=4,
        learning_rate=0.1,
        held_out=0.3,
        temperature=TEMPERATURE,
        least_support=1.0,
        examination=list(examination),
    )
    model = ModelSettings(features=N_FEATURES, versions=TRAINED, training=training)
    return Settings(
        models={"loop": model},
        statistics=StatisticsSettings(groups=10),
        time=TimeSettings(disorder_ms=DISORDER_MS, click_window_ms=WINDOW_MS),
    )


def closed_loop(seed: int, n_lists: int, examination: tuple[float, ...]) -> Loop:
    """One run of the loop.

    Parameters
    ----------
    seed
        Of queries, of the ranker that shows the first lists, and of users.
    n_lists
        Lists that are shown.
    examination
        By rank, that clicks are corrected by; empty: estimated.
    """
    rng = np.random.default_rng(seed)
    data = generated_queries(
        n_queries=N_QUERIES, n_documents=N_DOCUMENTS, n_features=N_FEATURES,
        n_grades=N_GRADES, rng=rng,
    )  # fmt: skip
    users = position_based_of(N_GRADES, severity=SEVERITY, relevance=LIKED)
    settings = settings_with(n_lists, examination)
    step_ms = step_ms_for(BEHIND, window_ms=WINDOW_MS, disorder_ms=DISORDER_MS)
    plan = Plan(n_lists, START_MS, step_ms, cutoff=CUTOFF, learns_online=False)
    begun = _random_weights(data, rng)
    with in_process(settings, "loop", weights=begun) as joined:
        served = ServedPolicies(
            joined.ranker, lambda found: ndcg_of(found, data, CUTOFF)
        )

        def follow(progress: Progress) -> None:
            joined.interventions.follow(progress.shown)
            joined.ranker.refresh()
            served.follow(progress)

        progress = simulate(
            data, users, joined.ranker, joined.sink, plan, rng=rng, on_progress=follow
        )
        policies = served.policies(progress)
    # Nothing is shown by a version that comes after the last list.
    last = [each for each in policies if each.n_shown][-1]
    return Loop(policies[0], last, len(policies) - 1)


def _random_weights(
    data: LetorData, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """A ranker without merit that explores as little as those that are trained."""
    weights = rng.normal(size=N_FEATURES)
    scores = (data.features @ weights).reshape(-1, N_DOCUMENTS)
    weights /= scores.std(axis=1).mean() * TEMPERATURE
    return weights.astype(np.float32)


def measure(*, quick: bool = False) -> list[Figure]:
    """The figures of this benchmark.

    Parameters
    ----------
    quick
        Fewer runs and lists, only to see that it works.
    """
    n_runs, n_lists = (2, 1_000) if quick else (N_RUNS, N_LISTS)
    both = [
        (closed_loop(seed, n_lists, ()), closed_loop(seed, n_lists, NAIVE))
        for seed in range(n_runs)
    ]
    shown = np.array(
        [[(x.first.ndcg_shown, x.last.ndcg_shown) for x in y] for y in both]
    )
    ordered = np.array(
        [[(x.first.ndcg_test, x.last.ndcg_test) for x in y] for y in both]
    )
    gains = shown[:, :, 1] - shown[:, :, 0]
    runs = [
        {"seed": seed, "corrected": _as_dict(ours), "naive": _as_dict(naive)}
        for seed, (ours, naive) in enumerate(both)
    ]
    ends = [each.mean(axis=0)[:, 1] for each in (shown, ordered)]
    of = f"NDCG@{CUTOFF}"
    return [
        _over_errors(
            f"gain in {of} of lists shown, over 2 standard errors", gains[:, 0]
        )
        | {"runs": runs},
        _over_errors(
            f"gain in {of} of lists shown, above naive, over 2 standard errors",
            gains[:, 0] - gains[:, 1],
        ),
        _figure(f"{of} of lists shown at the end, over naive", *ends[0]),
        _figure(f"{of} of the order at the end, over naive", *ends[1]),
        _figure(
            f"{of} of lists shown at the end, over the start",
            *shown[:, 0].mean(axis=0)[::-1],
        ),
    ]


def _over_errors(name: str, found: npt.NDArray[np.float64]) -> Figure:
    bound = 2.0 * found.std(ddof=1) / np.sqrt(len(found))
    return _figure(name, found.mean(), bound, (None, 1.0))


def _figure(
    name: str, value: float, rival: float, bounds: Bounds = NO_BOUNDS
) -> Figure:
    ours, theirs = float(value), float(rival)
    return new_figure(name, ours, "NDCG", theirs, ours / theirs, bounds)


def _as_dict(loop: Loop) -> dict[str, Any]:
    return {
        "first": loop.first._asdict(),
        "last": loop.last._asdict(),
        "interventions": loop.n_trained,
    }
