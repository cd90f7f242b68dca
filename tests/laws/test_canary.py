"""How often canaries are judged wrongly: few runs of `tests.long_run_canary`."""

import math

import numpy as np
import pytest

from models.evaluation.canary import CANARY, CLICKS, LISTS, SERVED, judge, scores_of
from models.evaluation.canary_judgement import WITHOUT_CLICK, Rules, Verdict
from models.evaluation.session_sequence import mean_interval
from models.evaluation.sums import N_GROUPS
from tests.canary_runs import (
    EVERY,
    FIXED,
    RAMP,
    Lists,
    Seen,
    World,
    lists_of,
    look,
    rules_of,
)

N_RUNS = 200
MOST = 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / N_RUNS)


def count(sums: np.ndarray, lists: Lists, share: float, begin: int, end: int) -> None:
    """Add lists of one stage, one by one."""
    for i in range(begin, end):
        arm = int(lists.drawn[i] < share)
        sums[lists.group[i], arm, LISTS] += 1
        sums[lists.group[i], arm, CLICKS:] += lists.counted[i, arm]


def judged(world: World, rules: Rules, n: int, seed: int) -> Seen:
    """What `look` does, by `judge`."""
    lists = lists_of(world, rules, n, seed=seed)
    sums = np.zeros((1, N_GROUPS, 2, 2 + len(rules.guardrails)), np.int64)
    unbalanced = may_go = False
    for begin in range(0, n, EVERY):
        share = rules.shares[len(sums) - 1]
        count(sums[-1], lists, share, begin, begin + EVERY)
        found = judge(sums, rules)
        unbalanced |= not found.is_balanced
        if found.verdict is Verdict.WORSE:
            shown, came = found.canary_lists, begin + EVERY
            return Seen(shown, came, len(sums), unbalanced, may_go)
        if found.clicks.low > -rules.margin and not found.needed:
            if len(sums) < len(rules.shares):
                sums = np.concatenate([sums, np.zeros_like(sums[:1])])
            else:
                may_go = True
    return Seen(0, n, len(sums), unbalanced, may_go)


@pytest.mark.parametrize("effect", [1.0, 0.8])
@pytest.mark.parametrize("guardrails", [(), (WITHOUT_CLICK, "twice")])
def test_runs_are_judged_as_verdicts_are(
    effect: float, guardrails: tuple[str, ...]
) -> None:
    """Look by look, on a ramp that rises; only that an imbalance ends nothing."""
    shares = (0.05, 0.25, 0.5)
    rules = rules_of(shares, guardrails=guardrails)
    world = World("5", effect=effect)
    runs = [look(world, rules, 10_000, seed=seed) for seed in range(3)]
    assert runs == [judged(world, rules, 10_000, seed) for seed in range(3)]
    assert max(one.stage for one in runs) == 3


@pytest.mark.parametrize(
    ("world", "shares"),
    [
        (World("1"), FIXED),
        (World("1", spread=2.0), FIXED),
        (World("1"), RAMP),
        (World("5"), FIXED),
        (World("5", drift=3.0), (0.05, 0.1, 0.25, 0.5)),
        (World("20, returning"), (0.05, 0.1, 0.25, 0.5)),
        (World("Pareto"), FIXED),
    ],
)
def test_a_version_that_is_as_good_is_seldom_withdrawn(
    world: World, shares: tuple[float, ...]
) -> None:
    """In at most 5 % of runs, of 20,000 lists, looked at every hundred."""
    rules = rules_of(shares)
    runs = [look(world, rules, 20_000, seed=seed) for seed in range(N_RUNS)]
    assert np.mean([one.withdrawn > 0 for one in runs]) <= MOST
    assert np.mean([one.unbalanced for one in runs]) <= 0.01


def test_guardrails_share_what_may_err() -> None:
    """Three quantities together err as seldom as one."""
    rules = rules_of(FIXED, guardrails=(WITHOUT_CLICK, "twice"))
    runs = [look(World("1"), rules, 20_000, seed=seed) for seed in range(N_RUNS)]
    assert np.mean([one.withdrawn > 0 for one in runs]) <= MOST


@pytest.mark.parametrize(
    ("lengths", "effect", "within"),
    [("1", 0.5, 1_000), ("5", 0.5, 1_000), ("1", 0.8, 4_000), ("5", 0.8, 4_000)],
)
def test_a_version_that_is_worse_is_withdrawn_in_time(
    lengths: str, effect: float, within: int
) -> None:
    """In 95 % of runs, after this many lists of the canary."""
    rules, world = rules_of(FIXED), World(lengths, effect=effect)
    runs = [
        look(world, rules, 30 * within, seed=seed, most=within) for seed in range(60)
    ]
    assert np.mean([0 < one.withdrawn <= within for one in runs]) >= 0.95


@pytest.mark.parametrize("lengths", ["1", "5", "20, returning"])
def test_a_version_that_is_worse_by_the_margin_seldom_rises(lengths: str) -> None:
    """In at most 5 % of runs, whenever one looks, to any of the later shares."""
    rules = rules_of((0.05, 0.25, 0.5), margin=0.2)
    world = World(lengths, effect=0.8)
    runs = [look(world, rules, 20_000, seed=seed) for seed in range(N_RUNS)]
    assert np.mean([one.stage > 1 for one in runs]) <= MOST


def plain_withdraws(lists: Lists, rules: Rules) -> bool:
    """Whether the mean of y (Z / p - (1 - Z) / (1 - p)) is ever below 0 for sure."""
    n, share = len(lists.drawn), rules.shares[0]
    arm = (lists.drawn < share).astype(int)
    clicks = lists.counted[np.arange(n), arm, 0]
    values = clicks * np.where(arm, 1.0 / share, -1.0 / (1.0 - share))
    sums = np.zeros((n // EVERY, 2, N_GROUPS))
    at = np.arange(n) // EVERY
    np.add.at(sums[:, 0], (at, lists.group), values)
    np.add.at(sums[:, 1], (at, lists.group), 1.0)
    return any(
        mean_interval(totals, sizes, rules.alpha, rules.planned / share)[1] < 0.0
        for totals, sizes in sums.cumsum(axis=0)
    )


@pytest.mark.parametrize(
    ("lengths", "share", "least"),
    [("20", 0.05, 0.07), ("5", 0.01, 0.15), ("20", 0.01, 0.3)],
)
def test_a_plain_difference_withdraws_what_hardly_anybody_saw(
    lengths: str, share: float, least: float
) -> None:
    """Of versions that are as good; the difference around the mean does not."""
    rules, world = rules_of((share,)), World(lengths)
    plain = [
        plain_withdraws(lists_of(world, rules, 6_000, seed=seed), rules)
        for seed in range(N_RUNS)
    ]
    ours = [
        look(world, rules, 6_000, seed=seed).withdrawn > 0 for seed in range(N_RUNS)
    ]
    assert np.mean(plain) >= least
    assert np.mean(ours) <= 0.02


def of_ramp(world: World, seed: int) -> np.ndarray:
    """Sums of four stages of as many lists, in `RAMP`."""
    rules = rules_of(RAMP)
    n = 20_000
    lists = lists_of(world, rules, n, seed=seed)
    stage = np.arange(n) * len(RAMP) // n
    arm = (lists.drawn < np.array(RAMP)[stage]).astype(int)
    sums = np.zeros((len(RAMP), N_GROUPS, 2, 2), np.int64)
    at = (stage, lists.group, arm)
    np.add.at(sums[..., LISTS], at, 1)
    np.add.at(sums[..., CLICKS], at, lists.counted[np.arange(n), arm, 0])
    return sums


@pytest.mark.parametrize("effect", [1.0, 0.8])
def test_days_with_more_clicks_do_not_favour_the_canary(effect: float) -> None:
    """A canary has most of its lists late: plain means compare other days.

    Clicks triple while the share rises from .01 to .5. By stages, each with the share
    that was in force, the canary's difference is that of lists weighted by p (1 - p).
    """
    world = World("5", effect=effect, drift=3.0)
    found = []
    for seed in range(100):
        sums = of_ramp(world, seed)
        totals, sizes = scores_of(sums, np.array(RAMP), CLICKS)
        lists, clicks = (sums[..., one].sum(axis=(0, 1)) for one in (LISTS, CLICKS))
        means = clicks / lists
        plain = means[CANARY] - means[SERVED]
        found.append((totals.sum() / sizes.sum(), plain))
    ours, plain = np.mean(found, axis=0)
    error = np.std(found, axis=0)[0] / math.sqrt(len(found))
    # Means of 1.25, 1.75, 2.25 and 2.75 clicks.
    shares = np.array(RAMP)
    weights = shares * (1.0 - shares)
    truth = (effect - 1.0) * float(weights @ [1.25, 1.75, 2.25, 2.75] / weights.sum())
    assert abs(ours - truth) < 3.0 * error
    assert plain - truth > 0.3


def test_that_the_mean_is_estimated_hardly_moves_scores() -> None:
    """Against those around the true mean: less than a fifth of their own deviation."""
    found = []
    for seed in range(100):
        sums = of_ramp(World("5"), seed)
        found.append(
            [
                scores_of(sums, np.array(RAMP), CLICKS, around=around)[0].sum()
                for around in (None, 1.0)
            ]
        )
    estimated, known = np.array(found).T
    assert np.std(estimated - known) < 0.2 * np.std(known)
    assert abs(np.mean(estimated)) < 3.0 * np.std(estimated) / 10.0
