"""What the preferences of one method allow to conclude about its rankers.

Intervals of all pairs hold together at 1 - alpha: each is made for alpha over the
number of pairs (Bonferroni). Only those `to_come` and `came` may be looked at more than
once. A ranker is better by both: better for sessions to come, as far as their number
tells, and, without any doubt about sessions, for those that came.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.betting import log_e_values
from models.evaluation.confidence_sequence import half_widths
from models.evaluation.intervals import clustered_half_widths, fixed_half_widths
from models.evaluation.session_sequence import session_intervals
from models.evaluation.standings import bradley_terry, copeland, cycles
from models.evaluation.sums import PreferenceSums, n_pairs_of, pairs_of, skew


class Conclusion(NamedTuple):
    """What holds of each pair, in the order of `sums`, and of each ranker.

    `mean` [n_pairs] is the preference of a pair's first ranker over its second. The
    intervals around it `to_come`, `came`, `fixed` and `sessions` [n_pairs, 2] have an
    infinite end where nothing can be said. `evidence` [n_rankers, n_rankers] holds
    natural logarithms of evidence that row is better than column. `copeland` and
    `bradley_terry` [n_rankers] go by means, as `cycles` do; `decided_cycles` by
    intervals that exclude 0. `best` is the ranker that is better than every other.
    """

    mean: Floats
    to_come: Floats
    came: Floats
    fixed: Floats
    sessions: Floats
    evidence: Floats
    copeland: Integers
    bradley_terry: Floats
    cycles: list[list[int]]
    decided_cycles: list[list[int]]
    best: int | None


def conclude(
    sums: PreferenceSums, alpha: float, *, planned: float, typical_square: float
) -> Conclusion:
    """Intervals, evidence and standings.

    Parameters
    ----------
    alpha
        Of all pairs together.
    planned
        Impressions for which intervals are narrowest.
    typical_square
        Of one impression's preference.
    """
    n = sums.n_rankers
    each = alpha / n_pairs_of(n)
    mean = sums.mean()
    to_come = session_intervals(sums, each, planned)
    came = half_widths(sums, each, typical_square * planned)
    is_better = (to_come[:, 0] > 0.0) & (mean > came)
    is_worse = (to_come[:, 1] < 0.0) & (mean < -came)
    decided = skew(np.where(is_better, 1.0, np.where(is_worse, -1.0, 0.0)), n)
    signs = np.sign(skew(mean, n)).astype(np.int64)
    wins = np.zeros((n, n))
    first, second = pairs_of(n)
    wins[first, second], wins[second, first] = sums.counts.T
    best = [i for i in range(n) if (np.delete(decided[i], i) > 0).all()]
    return Conclusion(
        mean=mean,
        to_come=to_come,
        came=_around(mean, came),
        fixed=_around(mean, fixed_half_widths(sums, each)),
        sessions=_around(mean, clustered_half_widths(sums, each)),
        evidence=log_e_values(sums),
        copeland=copeland(signs),
        bradley_terry=bradley_terry(wins),
        cycles=cycles(signs),
        decided_cycles=cycles(decided.astype(np.int64)),
        best=best[0] if best else None,
    )


def _around(mean: Floats, half: Floats) -> Floats:
    """Both ends of intervals of these half widths, [n_pairs, 2]."""
    return np.stack([mean - half, mean + half], axis=1)
