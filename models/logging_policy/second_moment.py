"""E[x^2] of a difference in clicks by a logging policy, and its gradient, compiled.

An estimate of one list is x, the sum over clicks of lambda / rho. Its expectation is
the same for all policies that can show what matters. So the policy of least variance
is that of the least

    E[x^2] = items + pairs
    items = sum over items of  zeta lambda^2 / rho
    pairs = sum over two different items of  a a' E[theta theta']
    a = zeta lambda / rho

as clicks on one list are independent given the list. Propensities rho of a
Plackett-Luce policy and their gradient are exact, so the items' part is; the pairs'
part is exact for short lists, and else of drawn ones.

References
----------
Oosterhuis & de Rijke (ICTIR 2020), equations 16 to 18, for the variance.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.logging_policy.compared_query import ComparedQuery
from models.logging_policy.drawn_pairs import WIDEST_SPREAD, add_drawn_pairs
from models.logging_policy.exact_pairs import MOST_ITEMS, add_exact_pairs
from models.losses.placement_gradient import add_expected_worth, fill_weights

N_LISTS = 100
"""Lists that are drawn of a query with more than `MOST_ITEMS` items."""


class SecondMoment(NamedTuple):
    """E[x^2] of one query; both parts, and what they follow from.

    Parameters
    ----------
    items, pairs
        Its two parts, of single clicks and of two on one list.
    gradient : [n]
        By log scores.
    propensities : [n]
        P(looked at) under the policy.
    """

    items: float
    pairs: float
    gradient: Floats
    propensities: Floats

    @property
    def value(self) -> float:
        """Both parts."""
        return self.items + self.pairs


def second_moment(
    scores: Floats,
    query: ComparedQuery,
    *,
    n_lists: int = N_LISTS,
    rng: np.random.Generator | None = None,
) -> SecondMoment:
    """E[x^2] under the Plackett-Luce policy of scores.

    Parameters
    ----------
    scores : [n]
        Within 700 of each other.
    n_lists
        Drawn for the pairs' part of more than `MOST_ITEMS` items, at least 2.
    rng
        Needed there, and never used else.

    Raises
    ------
    ValueError
        Where scores are not finite, too far apart or of another number of items; or
        lists must be drawn, and there is no generator or fewer than two lists.

    Examples
    --------
    >>> query = ComparedQuery(np.array([1.0, 0.0]), np.array([0.5, -0.5]), np.ones(1))
    >>> found = second_moment(np.zeros(2), query)
    >>> round(found.items, 9), found.pairs, found.gradient.round(9).tolist()
    (0.5, 0.0, [-0.25, 0.25])
    """
    n = len(query.relevance)
    values = np.array(scores, np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(f"scores must be finite, of {n} items; got {values.tolist()}")
    if np.ptp(values) > WIDEST_SPREAD:
        raise ValueError(
            f"scores must lie within {WIDEST_SPREAD:g}; got {np.ptp(values):g}"
        )
    if n > MOST_ITEMS and (rng is None or n_lists < 2):
        raise ValueError(
            f"lists of {n} items must be drawn, two at least; got {n_lists} and "
            f"{'no' if rng is None else 'a'} generator"
        )
    slopes, propensities = np.zeros(n), np.empty(n)
    items, pairs = add_second_moment(
        values, *query, n_lists, np.empty(n, np.int64), slopes, propensities,
        np.random.default_rng(0) if rng is None else rng,
    )  # fmt: skip
    return SecondMoment(items, pairs, slopes, propensities)


@compiled
def add_second_moment(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    relevance: Floats,
    differences: Floats,
    examination: Floats,
    n_lists: int,
    order: Integers,
    slopes: Floats,
    propensities: Floats,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Add the gradient by scores, and fill propensities; gives items and pairs.

    Where something that matters can never be looked at, both are infinite, and nothing
    is added.

    Parameters
    ----------
    scores, relevance, differences, slopes, propensities : [n]
        As in `second_moment`.
    examination : [k]
        With k <= n.
    order : [at least n]
        Scratch.
    """
    n = scores.shape[0]
    fill_weights(scores, examination, order, propensities)
    weights, by_propensity, items = np.zeros(n), np.zeros(n), 0.0
    for d in range(n):
        gain = relevance[d] * differences[d]
        if gain == 0.0:
            continue
        if propensities[d] <= 0.0:
            return np.inf, np.inf
        weights[d] = gain / propensities[d]
        items += weights[d] * differences[d]
        by_propensity[d] = -weights[d] * differences[d] / propensities[d]
    by_weight = np.zeros(n)
    if n <= MOST_ITEMS:
        pairs = add_exact_pairs(scores, weights, examination, slopes, by_weight)
    else:
        pairs = add_drawn_pairs(
            scores, weights, examination, n_lists, slopes, by_weight, rng
        )
    for d in range(n):
        if weights[d] != 0.0:
            by_propensity[d] -= by_weight[d] * weights[d] / propensities[d]
    add_expected_worth(scores, by_propensity, examination, order, slopes)
    return items, pairs
