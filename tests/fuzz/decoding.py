"""Spoilt records through the decoders in Python: `python -m tests.fuzz.decoding`.

Exit status 0 only if each of them raised what it says and nothing else.
"""

import argparse
import logging
import sys
import time

from tests.fuzz.decoders import TARGETS
from tests.fuzz.guided import Explored, explore, store_corpus, stored_corpus


def explore_all(n_records: int, seed: int) -> dict[str, Explored]:
    """Every target with its share of the records, from the stored corpus on."""
    stored = stored_corpus()
    share = -(-n_records // len(TARGETS))
    return {
        name: explore(target, [*target.seeds(), *stored.get(name, [])], share, seed)
        for name, target in TARGETS.items()
    }


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
    explored = explore_all(options.records, options.seed)
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
