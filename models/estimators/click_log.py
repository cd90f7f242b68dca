"""What lists showed and what was clicked, by group, policy, item and rank.

The input of all estimators. A policy is one that logged, under one name (that of its
intervention); an item is one of a query. Shapes: n_groups groups, n_policies policies,
n_items items, which follow from `impressions` [n_groups, n_policies, n_items]: lists
of candidate sets that have the item.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.estimators.bias_curve import BiasCurve


class ClickLog(NamedTuple):
    """Counts of items at ranks, in rows that may repeat.

    Parameters
    ----------
    groups, policies, items : [n_places]
        Numbers from 0.
    ranks : [n_places]
        1-based.
    shown : [n_places]
        Lists on which the item was there.
    clicked : [n_places]
        Lists on which it was clicked there.
    expected : [n_places]
        Sum of the probabilities that it was there, over the lists of that group and
        policy; NaN where a list's probabilities are not known.
    mixed
        Policies whose lists had other probabilities from one to the next, so that
        clicks are known of all of them together alone.
    """

    groups: Integers
    policies: Integers
    items: Integers
    ranks: Integers
    shown: Integers
    clicked: Integers
    expected: Floats
    mixed: frozenset[int] = frozenset()


class LogSums(NamedTuple):
    """Sums over the ranks that a curve has.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists of candidate sets that have the item.
    shown, clicked : [n_groups, n_policies, n_items]
        Lists on which it was there, and clicked.
    alpha, beta : [n_groups, n_policies, n_items]
        Sums of expectations; NaN where the probabilities of a list are not known.
    shown_alpha, shown_beta : [n_groups, n_policies, n_items]
        Sums of those of the ranks at which it was.
    """

    impressions: Floats
    shown: Floats
    clicked: Floats
    alpha: Floats
    beta: Floats
    shown_alpha: Floats
    shown_beta: Floats

    def by_policy(self) -> "LogSums":
        """All groups together, [n_policies, n_items] each."""
        return LogSums(*(table.sum(axis=0) for table in self))


def log_sums(log: ClickLog, impressions: Floats, curve: BiasCurve) -> LogSums:
    """Sums of all rows under a curve.

    Ranks that the curve does not have are left out with their clicks. Where one list
    of a group and policy is unknown, so are the expectations of all items of its lists:
    which of them it could have shown is not known either.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.

    Raises
    ------
    ValueError
        Where rows do not go with one another or with the impressions.
    """
    check_places(log, impressions)
    is_known = log.ranks <= curve.n_ranks
    rows = log.ranks[is_known] - 1
    cells = np.ravel_multi_index(
        (log.groups[is_known], log.policies[is_known], log.items[is_known]),
        impressions.shape,
    )
    expected = np.nan_to_num(log.expected[is_known], nan=0.0)
    shown, clicked = log.shown[is_known], log.clicked[is_known]

    def summed(numbers: npt.NDArray[np.float64 | np.int64]) -> Floats:
        sums = np.bincount(cells, numbers, impressions.size)
        # Of no places at all they are integers.
        return sums.astype(np.float64).reshape(impressions.shape)

    is_unknown = _unknown_of_items(log, impressions)
    return LogSums(
        impressions.astype(np.float64),
        summed(shown),
        summed(clicked),
        np.where(is_unknown, np.nan, summed(curve.alpha[rows] * expected)),
        np.where(is_unknown, np.nan, summed(curve.beta[rows] * expected)),
        summed(curve.alpha[rows] * shown),
        summed(curve.beta[rows] * shown),
    )


def of_groups(
    log: ClickLog, impressions: Floats, is_kept: Flags
) -> tuple[ClickLog, Floats]:
    """Rows and impressions of some groups; the others keep their numbers.

    `is_kept` [n_groups], `impressions` [n_groups, n_policies, n_items]: those of groups
    that are not kept are 0.
    """
    kept = np.where(is_kept[:, None, None], impressions, 0.0)
    return _of_rows(log, is_kept[log.groups]), kept


def check_places(log: ClickLog, impressions: Floats) -> None:
    """Refuse rows that do not go with one another or with the impressions.

    `impressions` [n_groups, n_policies, n_items].
    """
    if impressions.ndim != 3:
        raise ValueError(
            "impressions must be by group, policy and item; got "
            f"{impressions.ndim} axes"
        )
    if not np.isfinite(impressions).all() or impressions.min(initial=0.0) < 0.0:
        raise ValueError("impressions must be numbers of at least 0; got others")
    if len({len(column) for column in log[:7]}) > 1:
        raise ValueError(
            f"columns must be of the same rows; got {[len(x) for x in log[:7]]}"
        )
    names = "groups", "policies", "items"
    for name, column, n in zip(names, log[:3], impressions.shape, strict=True):
        _refuse((column < 0) | (column >= n), column, f"{name} must lie in 0..{n - 1}")
    _refuse(log.ranks < 1, log.ranks, "ranks must be 1 or more")
    is_wrong = (log.clicked < 0) | (log.clicked > log.shown)
    _refuse(is_wrong, log.clicked, "clicked must lie in 0..shown")
    is_wrong = (log.expected < 0.0) | np.isinf(log.expected)
    _refuse(is_wrong, log.expected, "expected must be at least 0, or NaN if unknown")
    lists = impressions[log.groups, log.policies, log.items]
    is_wrong = (log.shown > 0) & (lists <= 0.0)
    _refuse(is_wrong, lists, "lists must have what they show among their candidates")


def _of_rows(log: ClickLog, is_kept: Flags) -> ClickLog:
    return ClickLog(
        log.groups[is_kept],
        log.policies[is_kept],
        log.items[is_kept],
        log.ranks[is_kept],
        log.shown[is_kept],
        log.clicked[is_kept],
        log.expected[is_kept],
        log.mixed,
    )


def _unknown(log: ClickLog, impressions: Floats) -> Flags:
    """Whether lists of a group and policy are unknown, [n_groups, n_policies]."""
    is_unknown = np.zeros(impressions.shape[:2], np.bool_)
    rows = np.isnan(log.expected)
    is_unknown[log.groups[rows], log.policies[rows]] = True
    return is_unknown


def _unknown_of_items(log: ClickLog, impressions: Floats) -> Flags:
    """Whether lists that have the item are unknown, as `impressions`."""
    is_unknown = _unknown(log, impressions)[:, :, None]
    return np.asarray(is_unknown & (impressions > 0.0))


def _refuse(is_wrong: Flags, numbers: Floats | Integers, rule: str) -> None:
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(f"{rule}; got {numbers[row]:g} in row {row}")
