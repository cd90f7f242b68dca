"""When a difference counts as shown although the lists of a session are alike.

The lists of one user share a taste, so bounds that take lists for independent err too
often where sessions are long. Whole sessions fall into groups by a hash, and a
decision must stand

- without each group in turn, so that no one user, and no group, decides alone;
- without each quarter of the groups, as of many groups each one is hardly missed; and
- with more than `ASKED_FROM` groups with lists, for sessions to come too, by the
  mixture of `session_sequence` from one side; what that guarantees begins with its
  `LEAST_GROUPS`.

With fewer groups the last cannot be asked, and the others are no proof: a few long
sessions of one taste in each group pass them.

References
----------
Those of `session_sequence`; leaving out one group: Efron & Stein (1981).
"""

import math
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.evaluation.bounds.any_time import PLANNED
from models.evaluation.bounds.families import (
    INTERACTIONS,
    SUMS,
    TOTAL,
    Bound,
    Confidence,
    add_row,
    add_sums,
    confidence,
    is_above_zero,
)
from models.evaluation.bounds.several_queries import (
    PLANNED_SQUARES,
    ClassSums,
    lower_bound_over_queries,
    sums_of_classes,
    without,
)
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_sequence import SCALE_WEIGHTS, SCALES
from models.kernels.compilation import compiled

PLANNED_INTERACTIONS = 1000.0
"""Lists of one comparison at which the rule for sessions to come is narrowest."""

LARGEST_PLANNED_ERROR = 0.5

ASKED_FROM = 16.0
"""Groups with lists. Some ten effective ones are needed to pass at .95, whatever the
difference."""

N_PARTS = 4
"""Quarters of the groups."""


class Rule(NamedTuple):
    """What a difference has to show; set before the data.

    Parameters
    ----------
    epsilon
        The confidence of each comparison, in [0, 1].
    planned
        Of `any_time.log_weights_of_rates`.
    is_by_session
        Whether it must stand without each group and quarter, and for sessions to come.
    planned_interactions
        Lists at which the rule for sessions to come is narrowest, above 0.
    """

    bound: Bound = Bound.ANY_TIME
    epsilon: float = 0.95
    planned: float = PLANNED
    is_by_session: bool = True
    planned_interactions: float = PLANNED_INTERACTIONS


class Standing(NamedTuple):
    """How far each comparison got; a later test is taken where the earlier is passed.

    Parameters
    ----------
    is_bound : [n_comparisons]
        The lower bound of the difference is above 0.
    is_spread : [n_comparisons]
        It is without each group, and each quarter of the groups, too.
    is_to_come : [n_comparisons]
        It is for sessions to come, too, or groups are too few to ask.
    effective_groups : [n_comparisons]
        Groups of equal size that would carry as much.
    """

    is_bound: Flags
    is_spread: Flags
    is_to_come: Flags
    effective_groups: Floats


@compiled
def log_one_sided_evidence(score: float, size: float, error: float) -> float:
    """Logarithm of the mixture of `session_sequence` over rates above 0 alone.

    Parameters
    ----------
    score
        R, the squared standard score of a sum above 0.
    size
        Lists so far over those that were planned, above 0.
    error
        The level for which the planned size is narrowest, in (0, 1].
    """
    doubled = -2.0 * math.log(min(error, LARGEST_PLANNED_ERROR))
    best = doubled + math.log(doubled + 1.0)
    top, total = -math.inf, 0.0
    for j in range(SCALES.shape[0]):
        information = best * size * SCALES[j]
        exponent = 0.5 * score * information / (1.0 + information)
        # Half a normal distribution of rates has all of its weight on one side.
        term = math.log(SCALE_WEIGHTS[j]) - 0.5 * math.log1p(information) + exponent
        term += math.log1p(math.erf(math.sqrt(exponent)))
        if term > top:
            total = total * math.exp(top - term) + 1.0
            top = term
        else:
            total += math.exp(term - top)
    return top + math.log(total)


@compiled
def stands_for_sessions_to_come(
    of_groups: Floats, error: float, planned: float
) -> bool:
    """Whether every mean of 0 or less is excluded, where groups are enough.

    Parameters
    ----------
    of_groups : [n_groups, n_sums]
        Sums of each group of sessions.
    error
        1 - epsilon, above 0.
    planned
        Lists at which that is narrowest.
    """
    # One user who asks much leaves as many groups, though fewer count.
    if (of_groups[:, INTERACTIONS] > 0.0).sum() <= ASKED_FROM:
        return True
    effective = effective_groups_of(of_groups)
    totals = of_groups[:, TOTAL]
    total = totals.sum()
    if total <= 0.0:
        return False
    score, size = (
        total * total / (totals * totals).sum(),
        of_groups[:, INTERACTIONS].sum(),
    )
    target = -math.log(error)
    against_none = log_one_sided_evidence(score, size / planned, error)
    # A mean far below 0 has the effective number of groups for its score.
    against_all = log_one_sided_evidence(effective, size / planned, error)
    return against_none > target and against_all > target


@compiled
def stands_without_any(parts: Floats, totals: Floats, sure: Confidence) -> bool:
    """Whether the difference is shown by all parts but one, whichever it is.

    Parameters
    ----------
    parts : [n_parts, n_sums]
        Sums of each group of sessions, or of several.
    totals : [n_sums]
        Of all parts.
    sure
        See `confidence`.
    """
    rest = totals.copy()
    for part in range(parts.shape[0]):
        if parts[part, INTERACTIONS] > 0.0:
            rest[:] = totals
            add_sums(rest, parts[part], -1.0)
            if not is_above_zero(rest, sure):
                return False
    return True


@compiled
def is_spread_over_groups(of_groups: Floats, totals: Floats, sure: Confidence) -> bool:
    """Whether the difference is shown without each group, and each quarter of them.

    Parameters
    ----------
    of_groups : [n_groups, n_sums]
        Sums of each group of sessions.
    totals : [n_sums]
        Of all groups.
    sure
        See `confidence`.
    """
    parts = np.zeros((N_PARTS, SUMS))
    n_groups = 0
    for group in range(of_groups.shape[0]):
        if of_groups[group, INTERACTIONS] > 0.0:
            add_sums(parts[n_groups % N_PARTS], of_groups[group], 1.0)
            n_groups += 1
    # Quarters first: they seldom stand.
    return stands_without_any(parts, totals, sure) and (
        n_groups <= N_PARTS or stands_without_any(of_groups, totals, sure)
    )


@compiled
def sums_of_groups(
    sums: DifferenceSums, first: int, last: int, place: Integers
) -> Floats:
    """Sums of each group of one comparison. [n_groups, n_sums].

    Parameters
    ----------
    first, last
        Its rows are those from the first to before the last.
    place : [largest group + 1]
        All -1, and so again afterwards.
    """
    found = np.zeros((last - first, SUMS))
    n_groups = 0
    for row in range(first, last):
        group = sums.groups[row]
        if place[group] < 0:
            place[group] = n_groups
            n_groups += 1
        add_row(found[place[group]], sums, row)
    place[sums.groups[first:last]] = -1
    return found[:n_groups]


@compiled
def effective_groups_of(of_groups: Floats) -> float:
    """How many groups of equal size would carry as much; 0 before any list.

    Parameters
    ----------
    of_groups : [n_groups, n_sums]
        Sums of each group of sessions.
    """
    sizes = of_groups[:, INTERACTIONS]
    squares = (sizes * sizes).sum()
    return float(sizes.sum() ** 2 / squares) if squares > 0.0 else 0.0


@compiled
def _standings(
    sums: DifferenceSums, starts: Integers, sure: Confidence, planned: float
) -> tuple[Flags, Floats]:
    """The three tests [n_comparisons, 3], and effective groups [n_comparisons]."""
    found = np.zeros((starts.shape[0] - 1, 3), np.bool_)
    effective = np.zeros(found.shape[0])
    place = np.full(sums.groups.max() + 1 if len(sums.groups) else 0, -1)
    for i in range(found.shape[0]):
        of_groups = sums_of_groups(sums, starts[i], starts[i + 1], place)
        totals = np.zeros(SUMS)
        for group in range(of_groups.shape[0]):
            add_sums(totals, of_groups[group], 1.0)
        effective[i] = effective_groups_of(of_groups)
        found[i, 0] = is_above_zero(totals, sure)
        found[i, 1] = found[i, 0] and is_spread_over_groups(of_groups, totals, sure)
        found[i, 2] = found[i, 1] and stands_for_sessions_to_come(
            of_groups, sure.error, planned
        )
    return found, effective


def standings(sums: DifferenceSums, starts: Integers, rule: Rule) -> Standing:
    """How far each comparison is from a decision.

    Parameters
    ----------
    sums
        Groups are numbered from 0.
    starts : [n_comparisons + 1]
        Where the rows of each comparison begin.

    Raises
    ------
    ValueError
        Where the rule, or a group, has no meaning.
    """
    if sums.groups.min(initial=0) < 0:
        raise ValueError(
            "groups of sessions must be numbered from 0; got "
            f"{sums.groups.min()}: take the numbers that statistics have"
        )
    if not 0.0 < rule.planned_interactions < math.inf:
        raise ValueError(
            "planned_interactions, the lists at which the rule for sessions is "
            f"narrowest, must be positive and finite; got {rule.planned_interactions}"
        )
    sure = confidence(rule.bound, rule.epsilon, rule.planned)
    found, effective = _standings(
        sums, starts.astype(np.int64), sure, rule.planned_interactions
    )
    return Standing(found[:, 0], found[:, 1], found[:, 2], effective)


def standing_over_queries(sums: DifferenceSums, rule: Rule) -> Standing:
    """How far one comparison over lists of several queries is from a decision.

    Parameters
    ----------
    sums
        Groups are numbered from 0.

    Returns
    -------
    Standing
        Of one comparison.

    Raises
    ------
    ValueError
        Where the rule has no meaning, or M- of a row is too large.
    """
    standing = standings(sums, np.array([0, len(sums.groups)]), rule)
    if rule.bound is not Bound.ANY_TIME:
        return standing
    of_classes = sums_of_classes(sums)

    def is_bound_by(kept: ClassSums) -> bool:
        return lower_bound_over_queries(kept, rule.epsilon, PLANNED_SQUARES) > 0.0

    n_groups = len(of_classes.totals)
    came = np.flatnonzero(of_classes.interactions.any(axis=1))
    parts = [came[start::N_PARTS] for start in range(min(N_PARTS, len(came)))]
    is_bound = is_bound_by(of_classes)
    is_spread = is_bound and all(
        is_bound_by(without(of_classes, left_out)) for left_out in [*parts, *came]
    )
    of_groups = sums_of_groups(sums, 0, len(sums.groups), np.full(n_groups, -1))
    is_to_come = is_spread and stands_for_sessions_to_come(
        of_groups, 1.0 - rule.epsilon, rule.planned_interactions
    )
    return standing._replace(
        is_bound=np.array([is_bound]),
        is_spread=np.array([is_spread]),
        is_to_come=np.array([is_to_come]),
    )


def are_better(sums: DifferenceSums, starts: Integers, rule: Rule) -> Flags:
    """Whether the first policy of each comparison is better with confidence.

    Parameters
    ----------
    starts : [n_comparisons + 1]
        Where the rows of each comparison begin.

    Returns
    -------
    [n_comparisons]

    Raises
    ------
    ValueError
        Where the rule has no meaning.
    """
    standing = standings(sums, starts, rule)
    return standing.is_to_come if rule.is_by_session else standing.is_bound
