"""Spoilt records through the decoders in Python: `python -m tests.fuzz.decoding`.

Exit status 0 only if each of them raised what it says and nothing else.
"""

import argparse
import logging
import sys
import time

from tests.fuzz.decoders import TARGETS
from tests.fuzz.guided import Explored, explore, store_corpus, stored_corpus


def explore_one(name: str, n_records: int, seed: int) -> Explored:
    """A target with its share of the records of all, from the stored corpus on."""
    target, share = TARGETS[name], -(-n_records // len(TARGETS))
    seeds = [*target.seeds(), *stored_corpus().get(name, [])]
    return explore(target, seeds, share, seed)


def main() -> int:
    """Run once, and say what was run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.decoding")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--store", action="store_true", help="write the corpus anew from what was found"
    )
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # each record that is refused would be told of
    started_s = time.monotonic()
    explored = {
        name: explore_one(name, options.records, options.seed) for name in TARGETS
    }
    for name, found in explored.items():
        print(  # noqa: T201
            f"{name}: {found.n_tried} tried, {len(found.ends)} ends, "
            f"{len(found.seen)} features, {len(found.kept)} kept"
        )
        for fault, value in found.faults.items():
            print(f"  FOUND {fault}: {value!r:.2000}")  # noqa: T201
    print(f"seed {options.seed}, {time.monotonic() - started_s:.0f} s")  # noqa: T201
    if options.store:
        store_corpus(explored)
    return 1 if any(found.faults for found in explored.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
