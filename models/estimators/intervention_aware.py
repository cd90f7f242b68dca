"""Relevance from clicks that several policies logged, as if one had, their mean.

    relevance(item) = (clicks - sum of E[beta]) / sum of E[alpha]

Both sums are over all impressions of the item's candidate sets, under all policies
that logged, and expectations are over what each policy could have shown: alpha and
beta of each rank, times the probability that the item was there. An impression whose
candidates do not have the item adds nothing to clicks or to either sum; so does one
that could not show it. So the estimate is the same with and without them, and items
that came to a query later need no other treatment. Only averages depend on it: they
are over the impressions of candidate sets that have the item.

It is unbiased where policies were fixed before the clicks, or were chosen from clicks
of other groups. Where a policy was chosen from the same clicks it is not: an item
that is shown more once it was clicked, .9 instead of .1, is estimated at .3214 instead
of .5 after two impressions. That bias vanishes with their number.

Shapes: n_groups groups, n_items items; an item is one of a query.

References
----------
Oosterhuis & de Rijke (WSDM 2021), "Unifying Online and Counterfactual Learning to
Rank", and the chapter of that name in Oosterhuis (PhD thesis, 2020): the
intervention-aware estimator, its proof and the example.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, log_sums
from models.estimators.item_estimates import (
    ItemEstimates,
    policy_click_weights,
    reasons_of,
    remarks_of,
    unseen_share,
)

LEAST_SUPPORT = 25.0
"""Of an item, so that its value tells anything. Clicks vary at most as much as their
mean, so the standard error of a value is at most 1 / sqrt(support) without trust bias:
.2 here, and a value that could as well be .4 higher or lower orders no items."""

CLIP = 10.0
"""Training raises averages of alpha to `CLIP` / sqrt(impressions)."""


class ItemSums(NamedTuple):
    """What the estimate of each item is made of, by group.

    Parameters
    ----------
    impressions : [n_groups, n_items]
        Of candidate sets that have the item.
    alpha, beta : [n_groups, n_items]
        Sums of their expectations; that of alpha is the item's *support*.
    clicked : [n_groups, n_items]
        Clicks at ranks that the curve has.
    """

    impressions: Floats
    alpha: Floats
    beta: Floats
    clicked: Floats

    def of_groups(self, groups: npt.ArrayLike) -> "ItemSums":
        """Those of some groups; `groups` [n]."""
        rows = np.asarray(groups, np.int64)
        return ItemSums(*(table[rows] for table in self))


def item_sums(log: ClickLog, impressions: Floats, curve: BiasCurve) -> ItemSums:
    """Sums of all places under a curve, policies together.

    Ranks that the curve does not have are left out with their clicks, as if nobody
    saw them: what is left stays unbiased.

    Parameters
    ----------
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    """
    n_groups, _, n_items = impressions.shape
    is_known = log.ranks <= curve.n_ranks
    rows = log.ranks[is_known] - 1
    expected = log.expected[is_known]
    cells = log.groups[is_known] * n_items + log.items[is_known]

    def summed(numbers: Floats) -> Floats:
        sums = np.bincount(cells, numbers, n_groups * n_items)
        # Of no places at all they are integers.
        return sums.astype(np.float64).reshape(n_groups, n_items)

    return ItemSums(
        impressions.sum(axis=1),
        summed(curve.alpha[rows] * expected),
        summed(curve.beta[rows] * expected),
        summed(log.clicked[is_known].astype(np.float64)),
    )


class Estimates(NamedTuple):
    """Of each item, all groups together.

    Parameters
    ----------
    impressions : [n_items]
        Of candidate sets that have it.
    clicked : [n_items]
        Clicks at ranks that the curve has.
    support : [n_items]
        Sum of its expected alpha: so many impressions with a sure look would tell as
        much, or less.
    weights : [n_items]
        What one click counts: 1 over the average of alpha; infinite without support.
    values : [n_items]
        P(click | looked at) under plain position bias, relevance under trust bias;
        not clipped, so it may lie outside [0, 1]. NaN without support.
    """

    impressions: Floats
    clicked: Floats
    support: Floats
    weights: Floats
    values: Floats


def estimates(sums: ItemSums) -> Estimates:
    """Corrected relevance of each item, with nothing clipped.

    Examples
    --------
    One impression in which rank 2, looked at by half, was sure, and a click:

    >>> from models.estimators.bias_curve import position_curve
    >>> none, one = np.array([0]), np.array([1])
    >>> log = ClickLog(none, none, none, one + 1, one, one, np.array([1.0]))
    >>> sums = item_sums(log, np.array([[[1.0]]]), position_curve([1.0, 0.5]))
    >>> estimates(sums).values.tolist()
    [2.0]
    """
    impressions, alpha, beta, clicked = (table.sum(axis=0) for table in sums)
    values, weights = np.full_like(alpha, np.nan), np.full_like(alpha, np.inf)
    is_there = alpha > 0.0
    np.divide(clicked - beta, alpha, out=values, where=is_there)
    np.divide(impressions, alpha, out=weights, where=is_there)
    return Estimates(impressions, clicked, alpha, weights, values)


def intervention_aware(
    log: ClickLog, impressions: Floats, curve: BiasCurve, *, least: float = 0.0
) -> ItemEstimates:
    """Clicks of all policies less their E[beta], over their E[alpha].

    Parameters
    ----------
    log
        See `models.estimators.click_log`.
    impressions : [n_groups, n_policies, n_items]
        Lists that could have shown the item.
    least
        To which the average of alpha is raised, in training only.

    References
    ----------
    Oosterhuis & de Rijke (WSDM 2021), section 5; Oosterhuis (PhD thesis, 2020), section
    10.6 and its theorem.
    """
    sums = log_sums(log, impressions, curve).by_policy()
    found = estimates(item_sums(log, impressions, curve))
    alpha = sums.alpha.sum(axis=0)
    raised = np.maximum(alpha, least * found.impressions)
    is_there = raised > 0.0
    by = np.where(is_there, raised, 1.0)
    unclipped = np.where(alpha > 0.0, found.values, 0.0)
    weights = np.broadcast_to(is_there / by, sums.clicked.shape)
    return ItemEstimates(
        np.where(is_there, unclipped * (alpha / by), np.nan),
        reasons_of(sums, raised),
        alpha,
        unseen_share(sums),
        policy_click_weights(sums.clicked, weights),
        remarks_of(log, curve),
    )


def training_values(sums: ItemSums, n_impressions: int) -> Floats:
    """Values for training: averages of alpha are raised to a least one, [n_items].

        (clicks / n - average beta) / max(average alpha, min(10 / sqrt(N), 1))

    Small averages make values that one click moves far; raising them biases those
    values towards 0, ever less as N grows. NaN for items of no impression.

    Parameters
    ----------
    sums
        Of the training groups.
    n_impressions
        N: all impressions of the training groups, of all queries.

    References
    ----------
    Oosterhuis & de Rijke (WSDM 2021), experimental setup.
    """
    least = least_average(n_impressions)
    n, alpha, beta, clicked = (table.sum(axis=0) for table in sums)
    values: Floats = np.full_like(alpha, np.nan)
    is_there = n > 0.0
    n_there = np.where(is_there, n, 1.0)
    raised = np.maximum(alpha / n_there, least)
    np.divide((clicked - beta) / n_there, raised, out=values, where=is_there)
    return values


def least_average(n_impressions: int) -> float:
    """To what training raises averages of alpha, min(10 / sqrt(N), 1).

    `n_impressions` is N: all impressions of the training groups, at least 1.
    """
    if n_impressions < 1:
        raise ValueError(
            f"impressions of the training split must be 1 or more; got {n_impressions}"
        )
    return float(min(CLIP / np.sqrt(n_impressions), 1.0))


def effective_clicks(clicked: Floats, weights: Floats) -> float:
    """How many clicks of one weight vary as little as these do.

        (sum of c w)^2 / sum of c w^2

    Parameters
    ----------
    clicked, weights : [n_items]
        Items of infinite weight, which are those without support, are left out.

    References
    ----------
    Kish (Survey Sampling, 1965), section 11.7, for the effective sample size.
    """
    is_there = np.isfinite(weights) & (clicked > 0.0)
    counts, factors = clicked[is_there], weights[is_there]
    squared = float((counts * factors**2).sum())
    return float((counts * factors).sum()) ** 2 / squared if squared else 0.0
