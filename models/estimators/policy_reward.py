"""What a policy would be worth per list, by the values of the items that it shows.

    reward = sum over items of  share * sum over ranks of
             P(item at rank) (relevant[rank] value + anyway[rank])

Share is that of the item's query in all lists. Under weights that say how likely a
click is, the reward is clicks per list; under those of DCG it is that.

References
----------
Oosterhuis & de Rijke (SIGIR 2020) and (WSDM 2021), section 3, for rewards of this form.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.item_estimates import ItemEstimates


class RankWeights(NamedTuple):
    """What an item at a rank is worth.

    Parameters
    ----------
    relevant : [n_ranks]
        Times its value.
    anyway : [n_ranks]
        Whatever its value.
    """

    relevant: Floats
    anyway: Floats


def click_weights_of(curve: BiasCurve) -> RankWeights:
    """Clicks per list: alpha times relevance, and beta anyway."""
    return RankWeights(curve.alpha, curve.beta)


def relevant_click_weights(curve: BiasCurve) -> RankWeights:
    """Clicks on what is relevant, per list: alpha + beta times relevance."""
    return RankWeights(curve.alpha + curve.beta, np.zeros(curve.n_ranks))


def look_weights(curve: BiasCurve) -> RankWeights:
    """Relevant items that are looked at, per list: alpha times relevance."""
    return RankWeights(curve.alpha, np.zeros(curve.n_ranks))


def dcg_weights(n_ranks: int) -> RankWeights:
    """DCG with linear gain: 1 / log2(1 + rank) times relevance.

    Examples
    --------
    >>> dcg_weights(3).relevant.tolist()[::2]
    [1.0, 0.5]
    """
    if n_ranks < 1:
        raise ValueError(f"ranks must be 1 or more; got {n_ranks}")
    discounts: Floats = 1.0 / np.log2(np.arange(2.0, n_ranks + 2.0))
    return RankWeights(discounts, np.zeros(n_ranks))


class PolicyReward(NamedTuple):
    """Of one policy.

    Parameters
    ----------
    value
        Per list; items without a value count as not relevant, so that it is rather too
        low.
    unsupported
        Share, in [0, 1], of what items could be worth if all were relevant that goes to
        those without support: without a value, or with one of a regression alone.
    largest_share
        Share of the heaviest click in all that clicks add; NaN without any.
    effective_clicks
        How many clicks of one weight vary as little; 0 without any.
    """

    value: float
    unsupported: float
    largest_share: float
    effective_clicks: float


class RewardSums(NamedTuple):
    """What a reward is made of, so that parts of a log add up.

    Parameters
    ----------
    value
        Worth of all lists; items without a value count as not relevant.
    worth, unsupported
        What items could be worth if all were relevant; that of items without support.
    clicks, squares
        Sums over clicks of what each adds, and of the squares.
    largest
        What the click adds that adds most.
    """

    value: float
    worth: float
    unsupported: float
    clicks: float
    squares: float
    largest: float

    def plus(self, other: "RewardSums") -> "RewardSums":
        """Those of both parts."""
        added = RewardSums(*(x + y for x, y in zip(self, other, strict=True)))
        return added._replace(largest=max(self.largest, other.largest))

    def per_list(self, n_lists: float) -> PolicyReward:
        """The reward, given the sum of what parts were weighed by."""
        return PolicyReward(
            self.value / n_lists,
            self.unsupported / self.worth if self.worth else 0.0,
            self.largest / self.clicks if self.clicks else np.nan,
            self.clicks**2 / self.squares if self.squares else 0.0,
        )


NO_REWARD = RewardSums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def reward_sums(
    found: ItemEstimates,
    expected: Floats,
    weights: RankWeights,
    absent: Floats | None = None,
) -> RewardSums:
    """What lists of a policy are worth together.

    Parameters
    ----------
    found
        Values of items.
    expected : [n_items, n_ranks]
        Lists of the policy that have the item there. Ranks that `weights` does not
        have count nothing.
    absent : [n_ranks]
        Lists that have there what is none of these items; none if not given.
    """
    n_ranks = min(expected.shape[1], len(weights.relevant))
    placed, relevant = expected[:, :n_ranks], weights.relevant[:n_ranks]
    others = np.zeros(n_ranks) if absent is None else absent[:n_ranks]
    worth = placed @ relevant
    unknown = float(others @ relevant)
    anyway = float((placed.sum(axis=0) + others) @ weights.anyway[:n_ranks])
    has_support = np.isfinite(found.values) & (found.support > 0.0)
    clicks = found.clicks
    return RewardSums(
        float((worth * np.nan_to_num(found.values)).sum()) + anyway,
        float(worth.sum()) + unknown,
        float(worth[~has_support].sum()) + unknown,
        float((worth * clicks.total).sum()),
        float((worth**2 * clicks.squares).sum()),
        float((worth * clicks.largest).max(initial=0.0)),
    )
