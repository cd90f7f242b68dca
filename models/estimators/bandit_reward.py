"""The reward of a target policy, from rounds with logged propensities.

Rounds are one place each, so a weight is of one item: P(item there | target) over
P(item there | its policy). Nothing is modelled, neither examination nor relevance;
what it costs is the variance of the weights, which `RoundReward` tells of.

Shapes: n_rounds rounds.
"""

from typing import NamedTuple

import numpy as np

from models.estimators.bandit_arrays import BanditArrays, Floats, Integers


class RoundReward(NamedTuple):
    """Mean reward of a round under a target policy.

    Parameters
    ----------
    naive
        Mean reward of the rounds as logged, whatever the target.
    inverse
        Mean of weight times reward: unbiased where each item that the target shows
        could be shown by the policy that logged.
    self_normalised
        The same over the mean weight: consistent only.
    naive_error, inverse_error, self_normalised_error
        Standard errors, lists taken as independent; that of the ratio is linearised.
        NaN of fewer than two lists.
    effective_rounds
        (sum of w)^2 / sum of w^2.
    largest_share
        Share of the largest weighted reward in all of them; NaN without any.
    n_unknown
        Rounds that were left out, as nobody knows their propensity.
    """

    naive: float
    inverse: float
    self_normalised: float
    naive_error: float
    inverse_error: float
    self_normalised_error: float
    effective_rounds: float
    largest_share: float
    n_unknown: int


def round_reward(
    log: BanditArrays, target: Floats, lists: Integers | None = None
) -> RoundReward:
    """The reward of a target policy from rounds of known propensities.

        inverse = mean of w r        self-normalised = sum of w r / sum of w
        w = P(item there | target) / P(item there | its policy)

    Parameters
    ----------
    target : [n_rounds]
        P(item there | target) of the item of each round, in [0, 1].
    lists : [n_rounds]
        Number of the list, user or group of each round, of which those of one share
        what they depend on; without it each round is by itself.

    Raises
    ------
    ValueError
        Where arrays have another length, or `target` is no probability.

    References
    ----------
    Horvitz & Thompson (JASA 1952) for the mean; Swaminathan & Joachims (NIPS 2015),
    section 4, for the ratio; Kish (Survey Sampling, 1965), section 11.7, for the
    effective number.

    Examples
    --------
    >>> from models.estimators.bandit_arrays import bandit_arrays
    >>> two, click = np.array([0, 1]), np.array([1, 0])
    >>> known, nothing = np.array([0.5, 0.5]), np.zeros((2, 0))
    >>> log = bandit_arrays(two, 0 * two, click, known, nothing, n_actions=2)
    >>> found = round_reward(log, np.array([0.25, 0.75]))
    >>> found.naive, found.inverse, found.effective_rounds
    (0.5, 0.25, 1.6)
    """
    if target.shape != log.pscore.shape:
        raise ValueError(
            f"the target must be of {log.n_rounds} rounds; got shape {target.shape}"
        )
    owners = np.arange(log.n_rounds) if lists is None else lists
    if owners.shape != log.pscore.shape:
        raise ValueError(
            f"lists must be of {log.n_rounds} rounds; got shape {owners.shape}"
        )
    is_wrong = ~((target >= 0.0) & (target <= 1.0))
    if is_wrong.any():
        raise ValueError(
            "P(item there | target) must lie in [0, 1]; got "
            f"{target[is_wrong][0]:g} in round {int(is_wrong.argmax())}"
        )
    is_known = ~np.isnan(log.pscore)
    reward = log.reward[is_known].astype(np.float64)
    weights = target[is_known] / log.pscore[is_known]
    weighted, total = weights * reward, float(weights.sum())
    ratio = float(weighted.sum()) / total if total else np.nan
    mean_weight = total / len(weights) if len(weights) else np.nan
    residual = weights * (reward - ratio) / mean_weight if total else weights * np.nan
    _, numbers = np.unique(owners[is_known], return_inverse=True)
    squares = float((weights**2).sum())
    return RoundReward(
        _mean(reward),
        _mean(weighted),
        ratio,
        _error(reward, numbers),
        _error(weighted, numbers),
        _error(residual, numbers),
        total**2 / squares if squares else 0.0,
        float(weighted.max() / weighted.sum()) if weighted.any() else np.nan,
        int((~is_known).sum()),
    )


def _mean(numbers: Floats) -> float:
    return float(numbers.mean()) if len(numbers) else np.nan


def _error(numbers: Floats, owners: Integers) -> float:
    """Standard error of the mean, from sums by owner."""
    n = int(owners.max(initial=-1)) + 1
    if n < 2:
        return np.nan
    sums = np.bincount(owners, numbers - numbers.mean(), n)
    return float(np.sqrt((sums**2).sum() * n / (n - 1)) / len(numbers))
