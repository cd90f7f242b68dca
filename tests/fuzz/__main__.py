"""Mutated records through the compiled core: `python -m tests.fuzz --records N`.

Exit status 0 only if no sanitizer found anything; 1 where something was found, or where
no compiler has sanitizers.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.fuzzing import (
    driver,
    fuzz_side_by_side,
    real_records,
    records_of_inputs,
    records_of_scopes,
    sanitizer,
    write_corpus,
)
from tests.services import ServiceMissing


def main() -> int:
    """Run once, and say what was run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            by = sanitizer(folder)
        except ServiceMissing as missing:
            print(f"NOTHING WAS FUZZED: {missing}", file=sys.stderr)  # noqa: T201
            return 1
        program = driver(by, folder)
        done = []
        for kind, records in (
            ("log", real_records()),
            ("scopes", records_of_scopes()),
            ("inputs", records_of_inputs()),
        ):
            corpus = write_corpus(records, folder / kind)
            done += fuzz_side_by_side(program, corpus, options.records, options.seed)
    took_s = time.monotonic() - started_s
    print(f"sanitizers: {by.said}; seed {options.seed}; {took_s:.0f} s")  # noqa: T201
    for half in done:
        print(half.stdout + half.stderr, end="")  # noqa: T201
    return 0 if all(half.returncode == 0 for half in done) else 1


if __name__ == "__main__":
    sys.exit(main())
