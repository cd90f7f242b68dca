"""A/A experiments that somebody peeks at: `python -m tests.long_run_peeking`.

Prints one JSON object a kind: of 2,000 experiments of 10,000 impressions each, looked
at after every 100, in how many the interval ever excluded the truth; and, for known
differences, the median impressions to a decision over the size of a fixed sample.
`python -m tests.long_run_peeking ten` does the differences of lists of ten only, and
`sessions` looks at sessions with tastes after every impression: false winners of 400
experiments of 10,000 impressions, and the median sessions to a decision over a
cluster-robust sample of fixed size.
"""

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.peeking import (
    World,
    fixed_size,
    look,
    of_ten,
    rotated,
    with_difference,
    without_relevance,
)
from tests.session_peeking import (
    LENGTHS,
    METHODS,
    false_winners,
    fixed_sessions,
    median_sessions,
    with_tastes,
)
from tests.session_peeking import look as look_at_sessions
from tests.session_peeking import with_difference as with_difference_and_tastes

N_EXPERIMENTS, N_IMPRESSIONS = 2_000, 10_000
PLANNED = 1.5e5
BOUNDED: dict[str, Any] = {"largest_weight": 4.0, "largest_preference": 16.0}
"""Options of pairwise preference for lists of ten."""


def without_difference() -> list[tuple[str, World]]:
    """The worlds where nobody is better."""
    world = without_relevance(50, 10, seed=1)
    return [
        ("different lists", world),
        ("rotated lists", rotated(10)),
        ("a ranker learns", World(world.rankings, world.click, learns=True)),
        ("bounded", World(world.rankings, world.click, **BOUNDED)),
    ]


def with_differences() -> list[tuple[str, World, float]]:
    """Worlds where the first ranker is better, and the squares to plan for."""
    four = [(f"four, {s}", with_difference(s), PLANNED) for s in (0.05, 0.1, 0.2)]
    return four + of_ten_with_differences()


def of_ten_with_differences() -> list[tuple[str, World, float]]:
    """Lists of ten, of 20 documents: three that are required, and a large one."""
    found = []
    for noise in (0.4, 0.6, 0.8, 1.6):
        bounded, plain = of_ten(noise, **BOUNDED), of_ten(noise)
        draft = of_ten(noise, is_draft=True)
        found += [
            (f"ten, bounded pairwise preference, {noise}", bounded, 80_000.0),
            (f"ten, pairwise preference, {noise}", plain, 1e6),
            (f"ten, team draft, {noise}", draft, 1e4),
        ]
    return found


def told(figures: dict[str, Any]) -> None:
    """Print one object."""
    json.dump(figures, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run all of them; 1 if a sequence erred too often or decided too late."""
    if arguments not in ([], ["ten"], ["sessions"]):
        sys.stdout.write(__doc__ or "")
        return 0 if arguments == ["--help"] else 2
    if arguments == ["sessions"]:
        return int(not all([*tastes_hold(), *differences_are_found()]))
    failed = False
    is_short = arguments == ["ten"]
    for name, world in [] if is_short else without_difference():
        seen = look(
            world,
            N_EXPERIMENTS,
            N_IMPRESSIONS,
            truth=0.0,
            planned_squares=PLANNED,
            seed=1,
        )
        failed |= seen.sequence_erred > 0.06 * N_EXPERIMENTS
        told(
            {
                "world": name,
                "sequence_erred": seen.sequence_erred / N_EXPERIMENTS,
                "fixed_erred": seen.fixed_erred / N_EXPERIMENTS,
                "with_outcome": seen.outcome_share,
            }
        )
    for name, world, planned in (
        of_ten_with_differences() if is_short else with_differences()
    ):
        failed |= not decides(name, world, planned)
    return int(failed)


def decides(name: str, world: World, planned: float) -> bool:
    """Whether the truth is covered, and found soon where that is required."""
    n_runs, n_known = (500, 500_000) if name.startswith("four") else (200, 40_000)
    known = look(world, 20, n_known, truth=0.0, planned_squares=planned, seed=2)
    size = fixed_size(known.mean, known.variance)
    seen = look(
        world,
        n_runs,
        100 * math.ceil(size / 20),
        truth=known.mean,
        planned_squares=planned,
        seed=3,
    )
    median = float(np.median(seen.decisions)) / size
    told(
        {
            "world": name,
            "difference": known.mean,
            "fixed_size": size,
            "median_over_fixed_size": median if median < math.inf else "over 5",
            "sequence_erred": seen.sequence_erred / n_runs,
        }
    )
    is_required = ", pairwise" not in name and "1.6" not in name
    return seen.sequence_erred <= 0.06 * n_runs and (median <= 3.0 or not is_required)


def tastes_hold() -> Iterator[bool]:
    """Whether sessions that share a taste name a winner seldom enough, by world."""
    n_runs = 400
    most = 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / n_runs)
    worlds = [(method, lengths, 1) for method in METHODS for lengths in LENGTHS]
    worlds += [(method, str(n), n) for method in METHODS for n in (2, 5)]
    for method, lengths, repeats in worlds:
        world = with_tastes(method, lengths, repeats=repeats)
        share = false_winners(world, n_runs, N_IMPRESSIONS)
        came = [
            look_at_sessions(world, N_IMPRESSIONS, seed=seed, to_the_end=True).came
            for seed in range(50)
        ]
        told(
            {
                "method": method,
                "impressions_a_session": lengths,
                "impressions_a_draw": repeats,
                "false_winners": share,
                "those_that_came_differ": float(np.mean(np.array(came) > 0)),
            }
        )
        yield share <= most


def differences_are_found() -> Iterator[bool]:
    """Whether known differences with tastes are found in time, by world."""
    for method in METHODS:
        for strength in (0.05, 0.1, 0.2):
            for lengths in ("1", "5", "20"):
                world = with_difference_and_tastes(strength, method, lengths)
                size = fixed_sessions(world, 200_000, seed=10_000)
                n = int(6 * size) * int(lengths)
                ratio = median_sessions(world, 200, n) / size
                told(
                    {
                        "method": method,
                        "strength": strength,
                        "impressions_a_session": lengths,
                        "fixed_sessions": size,
                        "median_over_fixed": ratio if ratio < math.inf else "over 6",
                    }
                )
                yield ratio <= 2.5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
