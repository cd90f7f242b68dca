"""Run drawn schedules by hand, or one of them again.

python -m tests.streams.kafka.delivery 0 10000     those that end badly
python -m tests.streams.kafka.delivery 253         what happened in one, step by step
"""

import logging
import sys

from tests.streams.kafka.delivery.world import World


def main() -> int:
    """Print what becomes of schedules; 1 where any ends badly."""
    logging.disable(logging.WARNING)
    seeds = [int(each) for each in sys.argv[1:]]
    if len(seeds) == 1:
        outcome = World(seeds[0]).run()
        print(outcome)  # noqa: T201  this is what it is run for
        return int(bool(outcome.faults))
    n_bad = 0
    for seed in range(*seeds):
        outcome = World(seed).run()
        if outcome.faults:
            n_bad += 1
            print(f"{seed}: {outcome.faults[0]}")  # noqa: T201
    print(f"{len(range(*seeds))} schedules, {n_bad} of them end badly")  # noqa: T201
    return int(bool(n_bad))


if __name__ == "__main__":
    sys.exit(main())
