"""Whether a canary may go on: a version that a share of sessions is served.

The others are served the old one. A hash says which, so that arms are dealt to whole
sessions, and sessions fall into groups by another hash. Of a list let Z be 1 in the
canary, p the share that is meant while it is shown, y what is counted, such as clicks,
and a the mean of y over all lists of both arms. By group of sessions,

    T_g = sum of (y - a) (Z - p),    N_g = sum of p (1 - p)

Where the canary moves y by d, T_g - d N_g is a sum over independent sessions of mean
0, and its variance grows by p (1 - p) var y with each list, as N_g does. So the
interval of `session_sequence` for the mean of T per N is one for d, and n there is the
sum of the N_g. Stages of different shares add up: p is fixed before the lists come,
and a list of a stage of .01 weighs p (1 - p) = .0099 against .25 of one of .5. Where d
changes, the mean by these weights is meant.

**Why around a.** Any constant a leaves the mean of T_g as it is. Only near the mean of
y do groups lie on both sides of 0, so that their squares tell how far T may stray.
y (Z / p - (1 - Z) / (1 - p)) has the same mean as (y - a) (Z - p) / p (1 - p), yet
before the first list of the canary it is below 0 in every group: sure of a loss that
nobody has seen, and soon after hardly less so. Of versions that are as good it
withdraws 1 to 11 % at a share of .05 and up to 43 % at .01, with sessions of 1 to 20
lists and an alpha of .05. That a is estimated moves T by (a - mean) times the sum of
Z - p, of orders 1 / sqrt(n) and sqrt(n): that stays as T grows by sqrt(n). With one
stage and n_1, n_0 lists, T / N is exactly the difference of the means per list times
n_1 n_0 / n^2 p (1 - p).

**What is first waited for.** The approximation is by a normal variate, and few lists
of the canary make it skew: nothing is said until `LEAST_GROUPS` effective groups
*of the canary's lists* have come, some 54 sessions of equal length; and of the lists
of the old version, which are the fewer where the share is above one half.

**Looking and rising.** The interval of d holds at all looks at once, with 1 - alpha_j,
so it may be asked in each stage again: a canary that is worse by more than the margin
rises, in any stage, only if its interval ever errs. Clicks and guardrails share alpha
equally; to be withdrawn without being worse, one of them must err, and to its lower
side. When a share rises depends on what was seen, and sessions that go on then keep
their arm or change to the canary: their later lists repeat what their first ones said,
as those of a longer session do, and they lie in one group.

**Balance.** Lists of a session are not dealt one by one, so a multinomial test of
lists (`balance.log_evidence`) takes a few long sessions for a fault, and sessions are
not counted. The sums of Z - p by group are of mean 0 and of independent sessions as
T_g is: the same interval, at `IMBALANCE_ALPHA` of its own, must hold 0. It begins
where the canary *should* have `LEAST_GROUPS`, so that one that nobody is shown is
found. It is of lists, so it also tells of a version with which users ask more often or
less: the means per list are of unlike lists then.

References
----------
Robbins (1970) and Waudby-Smith et al. (Annals of Statistics 2024), as of
`session_sequence`; Robinson (Econometrica 1988), residuals of both sides; Li, Morgan &
Zaslavsky (JASA 2018), weights of p (1 - p); Kohavi, Tang & Xu (2020), chapters 15 and
21, ramps and sample ratio mismatch.
"""

import math

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.canary_judgement import (
    Difference,
    Judgement,
    Rules,
    Verdict,
)
from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    groups_of_equal_size,
    mean_interval,
)

SERVED, CANARY = range(2)
"""Arms."""

LISTS, CLICKS = range(2)
"""Columns; those of guardrails follow in their order."""

IMBALANCE_ALPHA = 0.001
"""Probability that lists of arms dealt as meant are ever taken for dealt otherwise."""


def judge(sums: Integers, rules: Rules) -> Judgement:
    """The verdict after what has come so far; it may be asked for at any time.

    What is worse is withdrawn whatever else holds. Where it may rise but for the lists
    of its stage, those are waited for, beyond `planned` too.

    Parameters
    ----------
    sums : [n_stages, n_groups, 2, 2 + n_guardrails]
        By stage that has begun, group of sessions and arm (`SERVED`, `CANARY`): lists,
        clicks, and guardrails in the order of the rules. Only lists that name a
        session and were made while both versions were served.

    Raises
    ------
    ValueError
        Where the shape is not that of the rules.

    Examples
    --------
    A hundred groups of nine lists of the old version and one of the canary; both are
    clicked once a list, give or take.

    >>> rules = Rules(shares=(0.1,), planned=1_000, least=50, margin=0.5)
    >>> sums = np.zeros((1, 100, 2, 2), np.int64)
    >>> sums[0, :, SERVED, LISTS] = 9
    >>> sums[0, :, SERVED, CLICKS] = 7 + np.arange(100) % 5
    >>> sums[0, :, CANARY, LISTS] = 1
    >>> sums[0, :, CANARY, CLICKS] = np.arange(100) % 3
    >>> found = judge(sums, rules)
    >>> found.verdict.value, found.clicks.words
    ('rise', 'clicks differ by -0.0100 per list (-0.3164 to +0.2964)')

    A version that is never clicked is worse:

    >>> sums[0, :, CANARY, CLICKS] = 0
    >>> found = judge(sums, rules)
    >>> found.verdict.value, found.clicks.words
    ('worse', 'clicks differ by -1.0000 per list (-1.0577 to -0.9423)')

    Before sessions are many nothing is said of it:

    >>> judge(sums[:, :20], rules).words.partition(";")[0]
    'too few sessions, or a few with most of the lists: they fill 20.0 of 100 groups \
evenly, and more than 35 are needed, some 54 sessions'
    """
    _check(sums, rules)
    lists = sums[..., LISTS].sum(axis=1)
    n_canary = int(lists[:, CANARY].sum())
    names = ("clicks", *rules.guardrails)
    clicks, *guardrails = (
        _difference(name, sums, column, rules)
        for column, name in enumerate(names, CLICKS)
    )
    needed = max(0, rules.least - int(lists[-1, CANARY]))
    is_balanced = _is_balanced(sums, rules)
    if any(one.is_worse for one in (clicks, *guardrails)):
        verdict = Verdict.WORSE
    elif not is_balanced:
        verdict = Verdict.IMBALANCE
    elif clicks.low > -rules.margin:
        verdict = Verdict.WAIT if needed else Verdict.RISE
    else:
        verdict = Verdict.UNDECIDED if n_canary >= rules.planned else Verdict.WAIT
    return Judgement(
        verdict=verdict,
        clicks=clicks,
        guardrails=tuple(guardrails),
        canary_lists=n_canary,
        served_lists=int(lists[:, SERVED].sum()),
        meant=float(_shares(sums, rules) @ lists.sum(axis=1)),
        effective_groups=groups_filled(sums),
        needed=needed,
        of_planned=n_canary / rules.planned,
        is_balanced=is_balanced,
        stage=len(sums),
        rules=rules,
    )


def scores_of(
    sums: Integers, shares: Floats, column: int, *, around: float | None = None
) -> tuple[Floats, Floats]:
    """T_g and N_g of a column, by group. [n_groups] each.

    Parameters
    ----------
    sums : [n_stages, n_groups, 2, n_columns]
    shares : [n_stages]
        Of sessions that are served the canary, in (0, 1).
    column
        Of what is averaged.
    around
        a; the mean of the column per list of all lists where nothing is said.

    Examples
    --------
    One group and a share of 1/2; two lists in each arm, with 2 clicks and 4.

    >>> sums = np.array([[[[2, 2], [2, 4]]]])
    >>> totals, sizes = scores_of(sums, np.array([0.5]), CLICKS)
    >>> totals.tolist(), sizes.tolist()
    ([1.0], [1.0])
    """
    lists = sums[..., LISTS]
    if around is None:
        around = float(sums[..., column].sum()) / max(1, int(lists.sum()))
    residuals = sums[..., column] - around * lists
    p = shares[:, None]
    totals = (1.0 - p) * residuals[..., CANARY] - p * residuals[..., SERVED]
    sizes = p * (1.0 - p) * lists.sum(axis=2)
    return totals.sum(axis=0), sizes.sum(axis=0)


def _check(sums: Integers, rules: Rules) -> None:
    """Refuse sums of another shape."""
    n_columns = 2 + len(rules.guardrails)
    if (
        sums.ndim != 4
        or sums.shape[2:] != (2, n_columns)
        or not 1 <= len(sums) <= len(rules.shares)
    ):
        raise ValueError(
            f"sums must be [1 to {len(rules.shares)}, n_groups, 2, {n_columns}]; got "
            f"{list(sums.shape)}"
        )


def _shares(sums: Integers, rules: Rules) -> Floats:
    """Of the stages that have begun, [n_stages]."""
    return np.array(rules.shares[: len(sums)])


def _difference(name: str, sums: Integers, column: int, rules: Rules) -> Difference:
    """With its interval, once the lists of either arm fill groups enough."""
    totals, sizes = scores_of(sums, _shares(sums, rules), column)
    mean, low, high = math.nan, -math.inf, math.inf
    if sums[..., LISTS].any(axis=(0, 1)).all():
        mean = float(totals.sum()) / float(sizes.sum())
    if groups_filled(sums) > LEAST_GROUPS:
        low, high = mean_interval(
            totals, sizes, rules.alpha_each, rules.planned_information
        )
    return Difference(name, mean, low, high)


def _is_balanced(sums: Integers, rules: Rules) -> bool:
    """Whether the mean of Z - p may be 0."""
    shares = _shares(sums, rules)
    if groups_expected(sums, shares) <= LEAST_GROUPS:
        return True
    # Of a list itself, around 0: T is the sum of Z - p.
    excess, sizes = scores_of(sums, shares, LISTS, around=0.0)
    low, high = mean_interval(excess, sizes, IMBALANCE_ALPHA, rules.planned_information)
    return low <= 0.0 <= high


def groups_filled(sums: Integers) -> float:
    """Effective groups of the arm that has fewer: of the canary, if its share is small.

    Parameters
    ----------
    sums : [n_stages, n_groups, 2, n_columns]
    """
    by_group = sums[..., LISTS].sum(axis=0)
    return min(groups_of_equal_size(by_group[:, arm]) for arm in (SERVED, CANARY))


def groups_expected(sums: Integers, shares: Floats) -> float:
    """The same as it should be by the shares, from the lists of both arms.

    S sessions of equal length in G groups fill about 1 / (1 / G + 1 / S) of them. So
    the effective number for all lists tells S, and of S an arm has its share.

    Parameters
    ----------
    sums : [n_stages, n_groups, 2, n_columns]
    shares : [n_stages]

    Examples
    --------
    100 groups that 100 sessions fill like 50 of equal size: the canary's 20 are like
    16.7, 1 / (1 / 100 + 1 / 20).

    >>> sums = np.zeros((1, 100, 2, 2), np.int64)
    >>> sums[0, ::2, SERVED, LISTS] = 4
    >>> round(groups_expected(sums, np.array([0.2])), 1)
    16.7
    """
    lists = sums[..., LISTS].sum(axis=2)
    by_group = lists.sum(axis=0)
    effective = groups_of_equal_size(by_group)
    if not effective:
        return 0.0
    canary = float(shares @ lists.sum(axis=1)) / float(by_group.sum())
    share = min(canary, 1.0 - canary)
    n_groups = len(by_group)
    return 1.0 / (1.0 / n_groups + (1.0 / effective - 1.0 / n_groups) / share)
