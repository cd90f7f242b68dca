"""What bounds of a difference guarantee, and when: `python -m tests.long_run_bounds`.

Prints one JSON object a row; `coverage`, `rare`, `deployed`, `ever-wrong`, `median` or
`tastes` does one kind only, and `--runs N` another number of runs than 1,000. 1 is
returned where a bound errs more than its confidence and two standard errors allow, or
the bound at any time decides later than it has to.

- `coverage`: how often the lower and the upper bound hold, of lists of the fixed case.
- `rare`: the same where what speaks against a difference comes once in 100 lists, and
  how often that is missed without a range.
- `deployed`: how often the fixed case is decided, also with too little a range.
- `ever-wrong`: of streams of 8,192 lists without a difference, looked at after each
  list, and logged by what was decided, in how many the first policy is ever better.
- `median`: lists until the better policy is found, on the fixed case.
- `tastes`: of streams of 4,096 lists of users with two tastes, how many are ever wrong,
  by lists of a session.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from models.evaluation.bounds.families import (
    Bound,
    confidence,
    intervals,
    lower_bounds,
)
from models.evaluation.differences import DifferenceSums
from tests.compared_policies import (
    FIXED_MEAN,
    LABELS,
    SAME,
    Stream,
    click_if_seen,
    first_decision,
    fixed_clicks,
    of_runs,
    with_tastes,
)
from tests.difference_sums import stacked, sum_differences

LEVELS = (0.5, 0.9, 0.95)
SIZES = (64, 512, 4096)
N_LISTS, N_OF_TASTES = 8192, 4096
LENGTHS = (1, 5, 20, 50)
SCATTER = 0.03
"""Of shares that were seen before."""

MOST_BY_TASTES = (0.02, 0.03, 0.07, 0.2)
"""Ever wrong with the rule for sessions, by lists of a session, at most."""


def told(**figures: Any) -> None:
    """Print one object."""
    json.dump(figures, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def two_errors(share: float, n_runs: int) -> float:
    """Two standard errors of a share of runs."""
    return 2.0 * math.sqrt(share * (1.0 - share) / n_runs)


def most(error: float, n_runs: int) -> float:
    """Share of runs that may err: two standard errors above what is expected."""
    return error + two_errors(error, n_runs)


def evidence_of_runs(
    n_runs: int, n: int, seed: int
) -> Iterator[tuple[DifferenceSums, np.ndarray]]:
    """Sums of runs of the fixed case, some at a time."""
    rng = np.random.default_rng(seed)
    at_once = max(1, 200_000 // n)
    for start in range(0, n_runs, at_once):
        clicks = fixed_clicks(min(at_once, n_runs - start), n, rng)
        yield of_runs(clicks, np.zeros(n, np.int64))


def coverage(n_runs: int) -> Iterator[bool]:
    """Each bound, on either side."""
    for n in SIZES:
        runs = list(evidence_of_runs(n_runs, n, seed=1))
        for bound in Bound:
            for epsilon in LEVELS:
                sure = confidence(bound, epsilon)
                found = np.concatenate(
                    [intervals(sums, starts, sure) for sums, starts in runs]
                )
                low = float((found[:, 0] <= FIXED_MEAN).mean())
                high = float((found[:, 1] >= FIXED_MEAN).mean())
                told(bound=bound, epsilon=epsilon, lists=n, lower=low, upper=high)
                yield 1.0 - min(low, high) <= most(1.0 - epsilon, n_runs)


def rare(n_runs: int) -> Iterator[bool]:
    """What speaks against a difference comes seldom; without a range that is missed."""
    rng, n, rate = np.random.default_rng(4), 64, 0.01
    clicks = rng.random((n_runs, n, 1)) < rate
    groups = np.zeros(n, np.int64)
    sums, starts = stacked(
        [sum_differences(each, groups, np.array([-1.0]), 1) for each in clicks]
    )
    none = np.zeros(len(sums.groups))
    without = sums._replace(gains=none, losses=none, largest=none)
    for bound in Bound:
        for epsilon in LEVELS:
            sure = confidence(bound, epsilon)
            holds = float((lower_bounds(sums, starts, sure) <= -rate).mean())
            told(bound=bound, epsilon=epsilon, lists=n, rare=holds)
            yield 1.0 - holds <= most(1.0 - epsilon, n_runs)
            if bound in (Bound.ONE_LOOK, Bound.PER_ITEM):
                missed = lower_bounds(without, starts, sure) > -rate
                told(bound=bound, epsilon=epsilon, lists=n, rare_missed=missed.mean())
                yield float(missed.mean()) > 1.0 - epsilon or epsilon == LEVELS[0]


def deployed(n_runs: int) -> Iterator[bool]:
    """The fixed case, at both of its sizes."""
    for n, epsilon, floor, one_look in (
        (200, 0.5, 0.45, 0.21),
        (1000, 0.95, 0.80, 0.62),
    ):
        runs = list(evidence_of_runs(n_runs, n, seed=2))
        for bound in Bound:
            sure = confidence(bound, epsilon)
            low = np.concatenate(
                [lower_bounds(sums, starts, sure) for sums, starts in runs]
            )
            share = float((low > 0.0).mean())
            told(bound=bound, epsilon=epsilon, lists=n, deployed=share)
            if bound is Bound.ANY_TIME:
                yield share >= floor
            elif bound is Bound.ONE_LOOK:
                right = share
                yield abs(share - one_look) <= SCATTER + two_errors(one_look, n_runs)
        sure = confidence(Bound.ONE_LOOK, epsilon)
        low = np.concatenate(
            [
                lower_bounds(sums._replace(gains=0.0 * sums.gains), starts, sure)
                for sums, starts in runs
            ]
        )
        share = float((low > 0.0).mean())
        told(bound="range too little", epsilon=epsilon, lists=n, deployed=share)
        yield share > right + SCATTER


def decisions(
    stream: Stream, bound: Bound, epsilon: float, n: int, n_runs: int
) -> np.ndarray:
    """When each run first finds the first policy better."""
    sure = confidence(bound, epsilon)
    return np.array([first_decision(stream, sure, n, seed) for seed in range(n_runs)])


def ever_wrong(n_runs: int) -> Iterator[bool]:
    """Streams without a difference."""
    stream = Stream(click_if_seen(SAME)[None])
    for epsilon in LEVELS:
        shares = [
            float(np.isfinite(each).mean())
            for each in (
                decisions(
                    stream._replace(is_by_session=is_by_session),
                    Bound.ANY_TIME,
                    epsilon,
                    N_LISTS,
                    n_runs,
                )
                for is_by_session in (False, True)
            )
        ]
        told(epsilon=epsilon, lists=N_LISTS, ever_wrong=shares[0], with_rule=shares[1])
        yield max(shares) <= most(1.0 - epsilon, n_runs)


def median(n_runs: int) -> Iterator[bool]:
    """Lists until the better policy of the fixed case is found."""
    fixed = Stream(click_if_seen(LABELS)[None])
    by_session = fixed._replace(is_by_session=True)
    for epsilon in LEVELS:
        found = {
            name: float(np.median(decisions(stream, bound, epsilon, N_LISTS, n_runs)))
            for name, stream, bound in (
                ("any_time", fixed, Bound.ANY_TIME),
                ("with_rule", by_session, Bound.ANY_TIME),
                (
                    "with_rule_of_4_groups",
                    by_session._replace(n_groups=4),
                    Bound.ANY_TIME,
                ),
                (
                    "doubling_looks",
                    fixed._replace(is_doubling=True),
                    Bound.DOUBLING_LOOKS,
                ),
            )
        }
        told(epsilon=epsilon, **found)
        doubling = found["doubling_looks"]
        yield found["any_time"] <= 0.5 * doubling
        yield found["with_rule"] <= 0.6 * doubling


def tastes(n_runs: int) -> Iterator[bool]:
    """Users of two tastes, without and with the rule for sessions."""
    for length, at_most in zip(LENGTHS, MOST_BY_TASTES, strict=True):
        rule = with_tastes(length, is_by_session=True)
        shares = [
            float(np.isfinite(each).mean())
            for each in (
                decisions(stream, Bound.ANY_TIME, 0.95, N_OF_TASTES, n_runs)
                for stream in (with_tastes(length), rule, rule._replace(n_groups=4))
            )
        ]
        told(
            lists_of_a_session=length,
            ever_wrong=shares[0],
            with_rule=shares[1],
            with_rule_of_4_groups=shares[2],
        )
        yield shares[1] <= at_most < shares[0] or length == 1


KINDS: dict[str, Callable[[int], Iterator[bool]]] = {
    "coverage": coverage,
    "rare": rare,
    "deployed": deployed,
    "ever-wrong": ever_wrong,
    "median": median,
    "tastes": tastes,
}


def main(arguments: list[str]) -> int:
    """Run all kinds, or one; 1 if something does not hold."""
    n_runs = 1000
    if "--runs" in arguments:
        at = arguments.index("--runs")
        n_runs = int(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    if not set(arguments) <= set(KINDS):
        sys.stdout.write(__doc__ or "")
        return 0 if arguments == ["--help"] else 2
    failed = False
    for kind in arguments or KINDS:
        told(kind=kind, runs=n_runs)
        failed |= not all(list(KINDS[kind](n_runs)))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
