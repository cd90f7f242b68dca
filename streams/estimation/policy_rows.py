"""What is shown of each policy that was valued."""

import math
from typing import NamedTuple

from models.estimators.adaptivity import Basis
from models.estimators.policy_comparison import PolicyComparison
from streams.estimation.curve_replicates import CurveReplicates

MOST_UNSEEN = 0.05
"""Above this share of what could never be seen it is said in words, and nobody is
called worse: what is not seen counts as not relevant."""

ROUNDED = 1e-6
"""A share of a reward below which a difference is how propensities were rounded.

Logs hold them in single precision.
"""

CHOSEN = "policies were chosen from these clicks"


class PolicyRow(NamedTuple):
    """Figures of a policy; NaN where there are none.

    Parameters
    ----------
    reward, low, high
        Per list, and the ends of its interval.
    difference, difference_low, difference_high
        The reward less that of the base.
    unseen, largest_share
        See `models.estimators.policy_reward`.
    verdict
        `better` or `worse` than the base where the interval of the difference says so;
        never `worse` above `MOST_UNSEEN`, and neither where all is rounding.
    reason
        Why there are no intervals; empty where there are.
    """

    name: str
    reward: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    unseen: float
    largest_share: float
    effective_clicks: float
    verdict: str
    reason: str


def no_interval(basis: Basis, curve: CurveReplicates) -> str:
    """Why no figure has an interval; empty where some may."""
    return curve.reason if basis.has_intervals else CHOSEN


def rows_of(comparison: PolicyComparison, without: str) -> list[PolicyRow]:
    """A row for each policy, what was logged first.

    Parameters
    ----------
    without
        Why none has an interval; empty where some may.
    """
    rewards, differences = comparison.rewards, comparison.differences
    rows = []
    for i, (name, point) in enumerate(
        zip(comparison.names, comparison.points, strict=True)
    ):
        reason = without or rewards.reasons[i]
        low, high, less, more = (
            math.nan if reason else float(numbers[i])
            for numbers in (*rewards[2:4], *differences[2:4])
        )
        difference = float(differences.values[i])
        is_told = abs(difference) > ROUNDED * abs(point.value)
        row = PolicyRow(
            name,
            point.value,
            low,
            high,
            difference,
            less,
            more,
            point.unsupported,
            point.largest_share,
            point.effective_clicks,
            _verdict(less, more, point.unsupported) if is_told else "",
            reason,
        )
        rows.append(row)
    return rows


def _verdict(less: float, more: float, unseen: float) -> str:
    if less > 0.0:
        return "better"
    return "worse" if more < 0.0 and unseen <= MOST_UNSEEN else ""
