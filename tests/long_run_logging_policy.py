"""How often intervals of a changed logging policy hold what is planted.

`python -m tests.long_run_logging_policy FILE`
prints a line for each kind of experiment, and writes it to FILE: 1,000 experiments
whose policy is optimised twice while they run, of sessions of 1, 5 and 20 lists with
tastes, without a difference and with known ones; policies fitted on other groups than
they are judged by, and on the same.
`python -m tests.long_run_logging_policy FILE N` takes N experiments of each.
"""

import json
import sys
from pathlib import Path

from tests.logging_experiments import coverage

N_RUNS = 1_000


def main(path: Path, n_runs: int) -> None:
    """All kinds, each as a line as soon as it is there."""
    for per_session in (1, 5, 20):
        for is_equal in (True, False):
            for on_all in (False, True):
                found = coverage(n_runs, per_session, is_equal=is_equal, on_all=on_all)
                row = {
                    "per_session": per_session, "is_equal": is_equal, "on_all": on_all,
                    "n": n_runs, **found._asdict(),
                }  # fmt: skip
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else N_RUNS)
