"""What versions lose with and without a bound: `python -m tests.long_run_largest_loss`.

Takes some minutes. 25 logs of 1,000 lists of MQ2008 train a ranker each, with and
without `largest_loss`, and by the proximal loss; see `tests/falls_on_mq2008.py`. Prints
the table of `docs/training.md`. `python -m tests.long_run_largest_loss N` takes N logs.
"""

import sys

import numpy as np

from tests.falls_on_mq2008 import ARMS, Found, run_of, world

N_RUNS = 25


def table(runs: list[dict[str, Found]]) -> list[str]:
    """Rows of the page."""
    head = (
        "| training | lost, mean | lost, worst | runs that lost | largest loss, mean "
        "| largest loss, worst | least ratio | the same, no clicks | step, mean |"
    )
    rows = [head, "|---|---|---|---|---|---|---|---|---|"]
    for name in ARMS:
        columns = np.array([run[name] for run in runs]).T
        largest, ratio, lost, step, unclicked = columns
        cells = (
            f"{lost.mean():+.4f}", f"{lost.max():+.4f}", f"{(lost > 0).sum()}",
            f"{largest.mean():.4f}", f"{largest.max():.4f}", f"{ratio.min():.2g}",
            f"{unclicked.min():.2g}", f"{step.mean():.3f}",
        )  # fmt: skip
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def main(n_runs: int) -> None:
    """Print the table, and fail where a bound did not hold."""
    runs = [run_of(seed, world()) for seed in range(n_runs)]
    sys.stdout.write("\n".join(table(runs)) + "\n")
    broken = [
        (seed, name)
        for seed, run in enumerate(runs)
        for name, (_, bound) in ARMS.items()
        if run[name].lost > min(run[name].largest_loss + 1e-8, bound)
        or run[name].largest_loss > bound
    ]
    if broken:
        raise SystemExit(f"lost more than the bound: {broken}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS)
