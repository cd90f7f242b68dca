"""When a difference counts as shown although the lists of a session are alike.

The lists of one user share a taste, so bounds that take lists for independent err too
often where sessions are long. Whole sessions fall into groups by a hash, and a
decision must stand

- without each group in turn, so that no one user, and no group, decides alone; and
- from `LEAST_GROUPS` effective groups on, for sessions to come too, by the mixture of
  `session_sequence` from one side.

With fewer groups the second cannot be asked, and the first is no proof: a few long
sessions of one taste in each group pass it.

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
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_sequence import LEAST_GROUPS, SCALE_WEIGHTS, SCALES
from models.kernels.compilation import compiled

PLANNED_INTERACTIONS = 1000.0
"""Lists of one comparison at which the rule for sessions to come is narrowest."""

LARGEST_PLANNED_ERROR = 0.5


class Rule(NamedTuple):
    """What a difference has to show; set before the data.

    Parameters
    ----------
    epsilon
        The confidence of each comparison, in [0, 1].
    planned
        Of `any_time.log_weights_of_rates`.
    is_by_session
        Whether it must stand without each group, and for sessions to come.
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
        It is without each group, too.
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
    total = n = squares = sizes = 0.0
    for group in range(of_groups.shape[0]):
        total += of_groups[group, TOTAL]
        n += of_groups[group, INTERACTIONS]
        squares += of_groups[group, TOTAL] ** 2
        sizes += of_groups[group, INTERACTIONS] ** 2
    if n * n <= LEAST_GROUPS * sizes:
        return True
    if total <= 0.0:
        return False
    target = -math.log(error)
    against_none = log_one_sided_evidence(total * total / squares, n / planned, error)
    # A mean far below 0 has the effective number of groups for its score.
    against_all = log_one_sided_evidence(n * n / sizes, n / planned, error)
    return against_none > target and against_all > target


@compiled
def stands_without_each_group(
    of_groups: Floats, totals: Floats, sure: Confidence
) -> bool:
    """Whether the difference is shown by all groups but one, whichever it is.

    Parameters
    ----------
    of_groups : [n_groups, n_sums]
        Sums of each group of sessions.
    totals : [n_sums]
        Of all groups.
    sure
        See `confidence`.
    """
    rest = totals.copy()
    for group in range(of_groups.shape[0]):
        if of_groups[group, INTERACTIONS] > 0.0:
            rest[:] = totals
            add_sums(rest, of_groups[group], -1.0)
            if not is_above_zero(rest, sure):
                return False
    return True


@compiled
def _standings(
    sums: DifferenceSums, starts: Integers, sure: Confidence, planned: float
) -> tuple[Flags, Floats]:
    """The three tests [n_comparisons, 3], and effective groups [n_comparisons]."""
    found = np.zeros((starts.shape[0] - 1, 3), np.bool_)
    effective = np.zeros(found.shape[0])
    place = np.full(sums.groups.max() + 1 if len(sums.groups) else 0, -1)
    for i in range(found.shape[0]):
        first, last = starts[i], starts[i + 1]
        of_groups = np.zeros((last - first, SUMS))
        n_groups = 0
        for row in range(first, last):
            group = sums.groups[row]
            if place[group] < 0:
                place[group] = n_groups
                n_groups += 1
            add_row(of_groups[place[group]], sums, row)
        place[sums.groups[first:last]] = -1
        of_groups = of_groups[:n_groups]
        totals = np.zeros(SUMS)
        sizes = 0.0
        for group in range(n_groups):
            add_sums(totals, of_groups[group], 1.0)
            sizes += of_groups[group, INTERACTIONS] ** 2
        if sizes > 0.0:
            effective[i] = totals[INTERACTIONS] ** 2 / sizes
        found[i, 0] = is_above_zero(totals, sure)
        found[i, 1] = found[i, 0] and stands_without_each_group(of_groups, totals, sure)
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
        Where the rule has no meaning.
    """
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
