"""Canaries before sessions with tastes, looked at after every hundred lists.

Each session has a click rate of its own, gamma distributed around 1 click per list,
and clicks of its lists are Poisson. Sessions go on side by side: each list comes up to
`WINDOW` lists later than in a row; users that return come back at any time.
Compiled, and judged by the intervals that verdicts call.
"""

from typing import Any, NamedTuple

import numpy as np

from models.evaluation.canary import IMBALANCE_ALPHA
from models.evaluation.canary_judgement import WITHOUT_CLICK, Rules
from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    largest_score,
    means_within,
)
from models.evaluation.sums import N_GROUPS
from models.kernels.compilation import compiled

EVERY = 100
WINDOW = 500

LENGTHS = ("1", "5", "20", "Pareto", "20, returning")
"""Lists of a session; of Pareto's, P(more than n) is (n + 1)^-1.2."""

CUT = "Pareto, first 20"
"""The same, where only the first 20 lists of a session are counted."""

FIXED, RAMP = (0.05,), (0.01, 0.05, 0.25, 0.5)


class World(NamedTuple):
    """Sessions of these lengths.

    `spread` is the standard deviation of their click rates over the mean; the canary
    has `effect` times the clicks. All clicks grow to `drift` times from first to last.
    """

    lengths: str
    spread: float = 0.5
    effect: float = 1.0
    drift: float = 1.0


class Seen(NamedTuple):
    """What became of a canary.

    `withdrawn`: lists of the canary when it was worse, 0 if it never was; `lists`: of
    both arms until then or to the end; `stage`: the last, from 1; `unbalanced`: it ever
    looked so; `may_go`: it might have been served to all.
    """

    withdrawn: int
    lists: int
    stage: int
    unbalanced: bool
    may_go: bool


def rules_of(
    shares: tuple[float, ...],
    *,
    guardrails: tuple[str, ...] = (),
    margin: float = 0.5,
) -> Rules:
    """Of a canary that rises soon, as its margin is large."""
    return Rules(shares, 10_000, 50, margin=margin, guardrails=guardrails)


def sessions_of(lengths: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """The session of each of `n` lists, in the order in which they are shown."""
    if lengths in {"Pareto", CUT}:
        each = np.ceil(rng.pareto(1.2, n) + 1e-9).astype(np.int64)
        each = np.minimum(each, 20 if lengths == CUT else n)
    else:
        each = np.full(n, int(lengths.partition(",")[0]))
    of_list = np.repeat(np.arange(n), np.minimum(each, n))[:n]
    if "returning" in lengths:
        return rng.permutation(of_list)
    return of_list[np.argsort(np.arange(n) + rng.uniform(0.0, WINDOW, n))]


class Lists(NamedTuple):
    """What is shown, list by list. [n] each, `counted` [n, 2, 1 + n_guardrails].

    `drawn` is where the hash of the list's session lies in [0, 1); `counted` has the
    quantities of either arm.
    """

    drawn: np.ndarray
    group: np.ndarray
    counted: np.ndarray


def lists_of(world: World, rules: Rules, n: int, *, seed: int) -> Lists:
    """Lists, before it is known which version is shown."""
    rng = np.random.default_rng(seed)
    session = sessions_of(world.lengths, n, rng)
    n_sessions = int(session.max()) + 1
    drawn, group = rng.random(n_sessions), rng.integers(N_GROUPS, size=n_sessions)
    shape = world.spread**-2
    rates = rng.gamma(shape, 1.0 / shape, n_sessions)[session]
    rates *= np.linspace(1.0, world.drift, n)
    clicks = np.stack([rng.poisson(rates), rng.poisson(rates * world.effect)], axis=1)
    counted = [clicks] + [
        clicks == 0 if name == WITHOUT_CLICK else clicks > 1
        for name in rules.guardrails
    ]
    return Lists(
        drawn[session], group[session], np.stack(counted, axis=2).astype(np.int64)
    )


def look(world: World, rules: Rules, n: int, *, seed: int, most: int = 0) -> Seen:
    """One canary, until it is worse, or to the end of `n` lists whatever is said.

    Its share rises where it may. What else would end it does not: neither a last rise
    nor lists as planned, and an imbalance is only noted.

    Parameters
    ----------
    most
        Lists of the canary after which it ends too, if above 0.
    """
    signs = [-1.0 if one == WITHOUT_CLICK else 1.0 for one in rules.guardrails]
    found = np.zeros(5, np.int64)
    _look(
        *lists_of(world, rules, n, seed=seed),
        np.array(rules.shares),
        np.array([1.0, *signs]),
        np.array([rules.alpha_each, rules.planned_information, rules.margin]),
        np.array([rules.least, most]),
        found,
    )
    withdrawn, lists, stage, unbalanced, may_go = found.tolist()
    return Seen(withdrawn, lists, stage, bool(unbalanced), bool(may_go))


@compiled
def _interval(totals: Any, sizes: Any, alpha: float, planned: float) -> Any:
    moments = np.zeros(6)
    for g in range(totals.shape[0]):
        t, n = totals[g], sizes[g]
        moments[0] += t
        moments[1] += n
        moments[2] += t * t
        moments[3] += t * n
        moments[4] += n * n
        moments[5] += abs(t)
    return means_within(moments, largest_score(moments[1] / planned, alpha))


@compiled
def _effective(sizes: Any) -> float:
    total, squares = 0.0, 0.0
    for size in sizes:
        total += size
        squares += size * size
    return total * total / squares if squares > 0.0 else 0.0


@compiled
def _look(  # noqa: PLR0913  one loop, compiled
    drawn: Any,
    group: Any,
    counted: Any,
    shares: Any,
    signs: Any,
    reals: Any,
    wholes: Any,
    found: Any,
) -> None:
    alpha, planned, margin = reals
    least, most = wholes
    n_columns, n_groups = signs.shape[0], N_GROUPS
    # By group: Z - p, p (1 - p), lists of the canary, of both arms; and by column y
    # and 1 times Z - p, of which a makes T.
    excess, sizes = np.zeros(n_groups), np.zeros(n_groups)
    canary, both = np.zeros(n_groups), np.zeros(n_groups)
    moved, totals = np.zeros((n_columns, n_groups)), np.zeros(n_columns)
    stage, in_stage, of_canary, meant = 0, 0, 0, 0.0
    for i in range(drawn.shape[0]):
        p, g = shares[stage], group[i]
        arm = 1 if drawn[i] < p else 0
        excess[g] += arm - p
        sizes[g] += p * (1.0 - p)
        canary[g] += arm
        both[g] += 1.0
        of_canary += arm
        in_stage += arm
        meant += p
        for c in range(n_columns):
            moved[c, g] += counted[i, arm, c] * (arm - p)
            totals[c] += counted[i, arm, c]
        if (i + 1) % EVERY:
            continue
        found[1], found[2] = i + 1, stage + 1
        share, effective = meant / (i + 1), _effective(both)
        share = min(share, 1.0 - share)
        sessions = share / (1.0 / effective - 1.0 / n_groups + 1e-300)
        if 1.0 / (1.0 / n_groups + 1.0 / sessions) > LEAST_GROUPS:
            low, high = _interval(excess, sizes, IMBALANCE_ALPHA, planned)
            found[3] |= low > 0.0 or high < 0.0
        is_enough = min(_effective(canary), _effective(both - canary)) > LEAST_GROUPS
        clicks_low, is_worse = -np.inf, False
        for c in range(n_columns):
            if is_enough:
                around = totals[c] / (i + 1)
                low, high = _interval(moved[c] - around * excess, sizes, alpha, planned)
                is_worse |= high < 0.0 if signs[c] > 0.0 else low > 0.0
                if c == 0:
                    clicks_low = low
        if is_worse:
            found[0] = of_canary
            return
        if 0 < most <= of_canary:
            return
        if clicks_low > -margin and in_stage >= least:
            if stage + 1 < shares.shape[0]:
                stage, in_stage = stage + 1, 0
            else:
                found[4] = 1
