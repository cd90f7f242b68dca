"""A/A experiments that somebody peeks at: `python -m tests.long_run_peeking`.

Prints one JSON object a kind: of 2,000 experiments of 10,000 impressions each, looked
at after every 100, in how many the interval ever excluded the truth; and, for known
differences, the median impressions to a decision over the size of a fixed sample.
"""

import json
import sys
from typing import Any

import numpy as np

from tests.peeking import (
    World,
    fixed_size,
    look,
    rotated,
    with_difference,
    without_relevance,
)

N_EXPERIMENTS, N_IMPRESSIONS = 2_000, 10_000
PLANNED = 1.5e5


def without_difference() -> list[tuple[str, World]]:
    """The worlds where nobody is better."""
    world = without_relevance(50, 10, seed=1)
    return [
        ("different lists", world),
        ("rotated lists", rotated(10)),
        ("sessions of five", World(world.rankings, world.click, session=5)),
        ("a ranker learns", World(world.rankings, world.click, learns=True)),
    ]


def told(figures: dict[str, Any]) -> None:
    """Print one object."""
    json.dump(figures, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def main() -> int:
    """Run all of them; 1 if a sequence erred too often or decided too late."""
    failed = False
    for name, world in without_difference():
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
    for strength in (0.05, 0.1, 0.2):
        world = with_difference(strength)
        known = look(world, 20, 500_000, truth=0.0, planned_squares=PLANNED, seed=2)
        size = fixed_size(known.mean, known.variance)
        seen = look(
            world,
            500,
            int(5 * size),
            truth=known.mean,
            planned_squares=PLANNED,
            seed=3,
        )
        median = float(np.median(seen.decisions)) / size
        failed |= median > 3.0 or seen.sequence_erred > 0.06 * 500
        told(
            {
                "difference": known.mean,
                "fixed_size": size,
                "median_over_fixed_size": median,
                "sequence_erred": seen.sequence_erred / 500,
            }
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
