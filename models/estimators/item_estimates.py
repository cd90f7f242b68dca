"""What an estimator says of each item, and how much its value rests on."""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog, LogSums

NO_LISTS = "in no list's candidates"
UNKNOWN = "placements of some of its lists are not known"
NEVER_SHOWN = "could never be shown"
NOT_SHOWN = "was not shown"
AS_IRRELEVANT = "was not shown, which counts as not relevant"
OF_REGRESSION = "could never be shown: the value is that of the regression"


class ClickWeights(NamedTuple):
    """How much clicks weigh in the value of each item.

    Parameters
    ----------
    total, squares : [n_items]
        Sums of the weights of its clicks, and of their squares.
    largest : [n_items]
        Weight of the click that weighs most; 0 without clicks.
    """

    total: Floats
    squares: Floats
    largest: Floats


class ItemEstimates(NamedTuple):
    """Of each item, all groups and policies together.

    Parameters
    ----------
    values : [n_items]
        Not clipped, so they may lie outside [0, 1]; NaN where there is none.
    reasons : [n_items]
        Why there is no value, or what it is instead; empty where it is an estimate.
    support : [n_items]
        Sum of its expected alpha, or of its alpha where it was shown if the estimator
        takes that: so many lists with a sure look would tell as much, or less.
    unseen : [n_items]
        Share of its lists, in [0, 1], whose policies could never show it at a rank that
        the curve has; NaN where that is not known.
    clicks
        Weights of its clicks.
    remarks
        What who reads the values must know, one sentence each.
    """

    values: Floats
    reasons: tuple[str, ...]
    support: Floats
    unseen: Floats
    clicks: ClickWeights
    remarks: tuple[str, ...]

    @property
    def largest_share(self) -> Floats:
        """Share of the heaviest click in all clicks of the item; NaN without any."""
        return divided(self.clicks.largest, self.clicks.total)

    @property
    def effective_clicks(self) -> Floats:
        """How many clicks of one weight vary as little, [n_items]; 0 without any.

            (sum of w)^2 / sum of w^2

        References
        ----------
        Kish (Survey Sampling, 1965), section 11.7, for the effective sample size.
        """
        return np.nan_to_num(divided(self.clicks.total**2, self.clicks.squares))


def click_weights(
    items: Integers, clicked: Floats, weights: Floats, n: int
) -> ClickWeights:
    """Weights of the clicks of n items.

    `items`, `clicked` and `weights` [n_rows]; rows without clicks weigh nothing.
    """
    is_clicked = clicked > 0.0
    owners, heavy, n_each = items[is_clicked], weights[is_clicked], clicked[is_clicked]
    largest = np.zeros(n)
    np.maximum.at(largest, owners, heavy)
    total, squares = (
        summed(owners, n_each * heavy, n),
        summed(owners, n_each * heavy**2, n),
    )
    return ClickWeights(total, squares, largest)


def policy_click_weights(clicked: Floats, weights: Floats) -> ClickWeights:
    """The same where a click weighs as its policy says.

    `clicked` and `weights` [n_policies, n_items].
    """
    n_policies, n_items = clicked.shape
    items = np.tile(np.arange(n_items), n_policies)
    return click_weights(items, clicked.ravel(), weights.ravel(), n_items)


def summed(items: Integers, numbers: Floats, n: int) -> Floats:
    """Sums of numbers by item, [n]; `items` and `numbers` [n_rows], none at all too."""
    # Of no rows at all `bincount` gives integers.
    return np.bincount(items, numbers, n).astype(np.float64)


def unseen_share(sums: LogSums) -> Floats:
    """Share of lists whose policies could never show the item; see `ItemEstimates`.

    `sums` [n_policies, n_items]; NaN too for items in no list.
    """
    without = np.where(sums.alpha > 0.0, 0.0, sums.impressions)
    lists = sums.impressions.sum(axis=0)
    share = divided(without.sum(axis=0), lists)
    return np.where(np.isnan(sums.alpha).any(axis=0), np.nan, share)


def reasons_of(
    sums: LogSums, is_there: Floats | None = None, otherwise: str = NEVER_SHOWN
) -> tuple[str, ...]:
    """Why items have no value; `otherwise` where lists have them.

    Parameters
    ----------
    sums
        [n_policies, n_items].
    is_there : [n_items]
        More than 0 for items with a value, NaN where lists are unknown; without it,
        what is asked for is being in a list.
    """
    lists = sums.impressions.sum(axis=0)
    found = lists if is_there is None else is_there
    reasons = np.where(found > 0.0, "", otherwise)
    reasons = np.where(np.isnan(found), UNKNOWN, reasons)
    return tuple(np.where(lists > 0.0, reasons, NO_LISTS).tolist())


def remarks_of(
    log: ClickLog, curve: BiasCurve, *, asks_policies: bool = False
) -> tuple[str, ...]:
    """What is to be said of all values of an estimator that takes the curve.

    Parameters
    ----------
    asks_policies
        Whether it is about each policy by itself.
    """
    said = curve.remarks()
    n_beyond = int(log.clicked[log.ranks > curve.n_ranks].sum())
    if n_beyond:
        said.append(
            f"the curve has {curve.n_ranks} ranks: {n_beyond} clicks further down are "
            "left out"
        )
    if asks_policies and log.mixed:
        named = ", ".join(str(policy) for policy in sorted(log.mixed))
        said.append(
            f"lists of policies {named} had several placements, of which clicks are "
            "known together alone: each of them is corrected by their mean"
        )
    return tuple(said)


def examination(curve: BiasCurve) -> Floats:
    """What estimators that know no trust bias divide by, [n_ranks].

    alpha + beta, the probability that what is relevant is clicked: P(looked at) under
    plain position bias.

    Raises
    ------
    ValueError
        Where it is not more than 0, as ratios may say.
    """
    theta = curve.alpha + curve.beta
    if (theta <= 0.0).any():
        row = int((theta <= 0.0).argmax())
        raise ValueError(
            "alpha + beta must be more than 0 for an estimator without trust bias; got "
            f"{theta[row]:g} at rank {row + 1}: take one that corrects for it"
        )
    return theta


def divided(numbers: Floats, by: Floats) -> Floats:
    """Quotients; NaN where `by` is not more than 0.

    `numbers`, `by` [...] of shapes that go together.
    """
    result: Floats = np.full(np.broadcast(numbers, by).shape, np.nan)
    np.divide(numbers, by, out=result, where=by > 0.0)
    return result
