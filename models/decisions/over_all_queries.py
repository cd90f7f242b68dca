"""Whether the general policy replaces the logging one, over all queries together.

Two things are asked for, as one wrong answer changes every list:

- the bound of the difference, standing without any group and for sessions to come; and
- the paired interval that `evaluate` has: whole groups of sessions left out one at a
  time, so that it is as wide as users differ, whatever the bound assumes.

References
----------
Oosterhuis & de Rijke (WWW 2021); Oosterhuis (PhD thesis, 2020), section 8.3.2; Efron &
Tibshirani (1993), chapter 11, the jackknife.
"""

import math
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.estimators.intervals import FEW_CLICKS
from models.estimators.jackknife import Jackknife, jackknife
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_rule import Rule, standing_over_queries


class Lack(StrEnum):
    """What a difference has yet to show."""

    BOUND = "bound"
    GROUPS = "groups"
    SESSIONS = "sessions"
    INTERVAL = "interval"


class OverAll(NamedTuple):
    """How far the general policy is from replacing the logging one.

    Parameters
    ----------
    lacking
        What it has yet to show; nothing where it is better for sure.
    low, high
        Of the paired interval of the difference per list, 95 %; infinite where there
        is none.
    """

    lacking: tuple[Lack, ...]
    low: float
    high: float


def paired_difference(sums: DifferenceSums) -> Jackknife:
    """The mean difference per list, with the interval that `evaluate` has. [1].

    Groups without lists say nothing. Where fewer than two have clicks there is no
    interval: groups without any are all alike.

    Parameters
    ----------
    sums
        Of one comparison, over any queries and policies, with at least one list;
        groups are numbered from 0.
    """
    lists, clicks = (
        np.bincount(sums.groups, of_rows)
        for of_rows in (sums.interactions, sums.clicks)
    )
    totals = np.bincount(sums.groups, sums.totals)

    def mean(is_kept: Flags) -> Floats:
        return np.array([totals[is_kept].sum() / lists[is_kept].sum()])

    is_told = np.array([np.count_nonzero(clicks) > 1])
    return jackknife(mean, lists > 0.0).only_where(is_told, FEW_CLICKS)


def over_all_queries(sums: DifferenceSums, rule: Rule) -> OverAll:
    """Whether a difference over all lists is above 0 for sure, and what lacks.

    Parameters
    ----------
    sums
        Of one comparison, over any queries and policies; groups are numbered from 0.
    rule
        Of the bound; the interval is of 95 % always, as that of `evaluate`.

    Raises
    ------
    ValueError
        Where the rule has no meaning, or M- of a row is too large.
    """
    if not sums.interactions.any():
        return OverAll((Lack.BOUND, Lack.INTERVAL), -math.inf, math.inf)
    standing = standing_over_queries(sums, rule)
    stands = {Lack.BOUND: standing.is_bound}
    if rule.is_by_session:
        stands |= {Lack.GROUPS: standing.is_spread, Lack.SESSIONS: standing.is_to_come}
    # Of the bound, what comes later is asked where the earlier stands.
    lacking = [lack for lack, is_so in stands.items() if not is_so[0]][:1]
    found = paired_difference(sums)
    low, high = float(found.low[0]), float(found.high[0])
    if not low > 0.0:
        lacking.append(Lack.INTERVAL)
    if math.isnan(low):
        low, high = -math.inf, math.inf
    return OverAll(tuple(lacking), low, high)
