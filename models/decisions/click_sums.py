"""Clicks kept so that two policies, whichever, can be compared on them.

Of a list that policy p logged, with c(d) whether item d was clicked,

    X = sum over d of c(d) w(d) - sum over d of w(d) b(d)
    w(d) = (lambda_1(d) - lambda_2(d)) / rho(d)

rho and b are the alpha and the beta that p expects of the item, over all its lists: of
p alone, as policies that follow from earlier clicks make pooled ones biased. Under
position bias alone b is 0. Then E[X] = sum over d of (lambda_1 - lambda_2) relevance.
Sums of X and X^2 over lists follow from how often each item was clicked, and each two:

    sum of X   = sum of c w            X^2 = (sum over d of c w)^2
    sum of X^2 = sum of c w^2 + 2 sum over pairs of c w w'

Items are numbered within their candidate set. A *row* is a group of sessions under one
logging policy.

References
----------
Oosterhuis & de Rijke (WWW 2021); Oosterhuis (PhD thesis, 2020), section 8.3.2, for
R_{i,d}, and section 10.5 for rho of the list's own policy; Vardasbi, Oosterhuis & de
Rijke (CIKM 2020), section 4, for b.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.evaluation.bounds.families import mirrored
from models.evaluation.differences import DifferenceSums
from models.evaluation.sums import class_bounds
from models.kernels.compilation import compiled

ROUNDING = 1e-12
"""Weights of two policies that differ by less than this share of the largest do not."""

MOST = float(class_bounds()[-1])
"""Lists that could say more, for or against, are left out, whatever they say: it takes
an item that is hardly ever examined, and bounds over several queries know no more."""


class LoggingPolicies(NamedTuple):
    """Policies that logged, sorted by candidate set; a *place* is an item of one.

    Parameters
    ----------
    sets : [n_policies]
        Number of the candidate set.
    starts : [n_policies + 1]
        Places of policy i stand from `starts[i]` to `starts[i + 1]`.
    propensities, anyway : [n_places]
        Expected alpha and beta of each item, over all lists of the policy.
    worths : [n_places]
        Its expected weight, lambda.
    lengths : [n_policies]
        Items that a list shows at ranks that have an alpha.
    """

    sets: Integers
    starts: Integers
    propensities: Floats
    anyway: Floats
    worths: Floats
    lengths: Integers


class ClickSums(NamedTuple):
    """Lists and clicks by row; rows are sorted by policy, then group.

    Parameters
    ----------
    policies, groups, interactions : [n_rows]
        Number of the policy, group of sessions, lists.
    clicks : [n_clicks, 3]
        Row, item, count; sorted.
    pairs : [n_pairs, 4]
        Row, item, other item, lists on which both were clicked; sorted.
    """

    policies: Integers
    groups: Integers
    interactions: Integers
    clicks: Integers
    pairs: Integers


def estimated_values(
    policies: LoggingPolicies, sums: ClickSums, set_starts: Integers
) -> Floats:
    """Relevance of items, [n_items of all sets]: clicks over propensities.

        value(d) = sum over policies of (clicks(d) - lists b(d)) / rho(d) / n(d)

    with n(d) the lists of policies that could show d, and n(d) = 0 for NaN. Sorting by
    it maximises the estimated reward of a list.

    Parameters
    ----------
    set_starts : [n_sets + 1]
        Where the items of sets begin.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), section 8.4.2, for the estimated rate of clicks.
    """
    return _values(policies, sums, set_starts)


@compiled
def _values(policies: LoggingPolicies, sums: ClickSums, set_starts: Integers) -> Floats:
    corrected, lists = np.zeros(set_starts[-1]), np.zeros(set_starts[-1])
    starts, propensities = policies.starts, policies.propensities
    n_lists, counts = np.zeros(len(policies.sets)), np.zeros(len(propensities))
    for row in range(len(sums.groups)):
        n_lists[sums.policies[row]] += sums.interactions[row]
    for row, item, n in sums.clicks:
        counts[starts[sums.policies[row]] + item] += n
    for policy in range(len(n_lists)):
        first = set_starts[policies.sets[policy]] - starts[policy]
        for place in range(starts[policy], starts[policy + 1]):
            if propensities[place] > 0.0:
                more = counts[place] - n_lists[policy] * policies.anyway[place]
                corrected[first + place] += more / propensities[place]
                lists[first + place] += n_lists[policy]
    for item in range(len(lists)):
        corrected[item] = corrected[item] / lists[item] if lists[item] else np.nan
    return corrected


class Differences(NamedTuple):
    """Sums of X of each candidate set.

    Parameters
    ----------
    sums
        Rows whose policies could show all items on which both policies differ, and
        whose lists can say no more than `MOST`.
    starts : [n_sets + 1]
        Where the rows of each set begin.
    unsupported : [n_sets]
        Lists of other policies: some item is never, or hardly ever, shown, though it
        matters.
    """

    sums: DifferenceSums
    starts: Integers
    unsupported: Integers

    def interactions(self) -> Integers:
        """Lists that count of each set, [n_sets]."""
        return self._by_set(self.sums.interactions).astype(np.int64)

    def clicks(self) -> Integers:
        """Clicks on them, [n_sets]."""
        return self._by_set(self.sums.clicks).astype(np.int64)

    def means(self) -> Floats:
        """Estimated difference per list of each set, [n_sets]; NaN without lists."""
        lists = self.interactions()
        totals = self._by_set(self.sums.totals)
        return np.where(lists > 0, totals / np.maximum(lists, 1), np.nan)

    def together(self) -> "Differences":
        """All sets as one comparison."""
        return Differences(
            self.sums, self.starts[[0, -1]], self.unsupported.sum(keepdims=True)
        )

    def turned(self) -> "Differences":
        """The other policy against the first, on the same lists."""
        return self._replace(sums=mirrored(self.sums))

    def _by_set(self, of_rows: Floats | Integers) -> Floats:
        n_sets = len(self.unsupported)
        owners = np.repeat(np.arange(n_sets), np.diff(self.starts))
        summed: Floats = np.bincount(owners, of_rows, n_sets).astype(np.float64)
        return summed  # of no rows at all they are integers


def differences_of(
    policies: LoggingPolicies,
    sums: ClickSums,
    set_starts: Integers,
    first: Floats,
    second: Floats | None = None,
) -> Differences:
    """How much one policy is better than another, of each candidate set.

    Parameters
    ----------
    set_starts : [n_sets + 1]
        Where the items of sets begin.
    first, second : [n_items of all sets]
        Expected weight of each item under either policy; NaN, for all items of a set,
        where a policy says nothing of it, and then nothing is known of the set. Without
        a second one it is the policy that logged each list.

    Raises
    ------
    ValueError
        Where weights are not those of the items.
    """
    for weights in (first, second):
        if weights is not None and len(weights) != set_starts[-1]:
            raise ValueError(
                "weights of a policy must be those of all items of all sets, "
                f"{set_starts[-1]}; got {len(weights)}"
            )
    least = ROUNDING * float(np.nanmax(np.abs(first), initial=0.0))
    own = second is None
    other = first if second is None else second
    weighed = _weighed(policies, set_starts, first, other, own, least)
    totals, squares, click_squares, clicks = _sums(policies.starts, sums, weighed)
    most = np.maximum(weighed.gains, weighed.losses)
    kept = (weighed.is_supported & (most <= MOST))[sums.policies]
    set_of, policy_of = policies.sets[sums.policies], sums.policies[kept]
    n_sets = len(set_starts) - 1
    return Differences(
        DifferenceSums(
            groups=sums.groups[kept],
            interactions=sums.interactions[kept],
            lengths=policies.lengths[policy_of],
            clicks=clicks[kept],
            gains=weighed.gains[policy_of],
            losses=weighed.losses[policy_of],
            largest=weighed.largest[policy_of],
            totals=totals[kept],
            squares=squares[kept],
            click_squares=click_squares[kept],
        ),
        np.searchsorted(set_of[kept], np.arange(n_sets + 1)),
        np.bincount(set_of[~kept], sums.interactions[~kept], n_sets).astype(np.int64),
    )


class _Weighed(NamedTuple):
    """w by place; by policy M+, M-, largest |w|, support, and the constant of X."""

    weights: Floats
    gains: Floats
    losses: Floats
    largest: Floats
    is_supported: Flags
    constants: Floats


@compiled
def _weighed(
    policies: LoggingPolicies,
    set_starts: Integers,
    first: Floats,
    second: Floats,
    own: bool,
    least: float,
) -> _Weighed:
    n, propensities = len(policies.sets), policies.propensities
    weights = np.zeros(len(propensities))
    gains, losses, largest = np.zeros(n), np.zeros(n), np.zeros(n)
    constants, is_supported = np.zeros(n), np.ones(n, np.bool_)
    for policy in range(n):
        start, end = policies.starts[policy], policies.starts[policy + 1]
        offset = set_starts[policies.sets[policy]] - start
        for place in range(start, end):
            other = policies.worths[place] if own else second[offset + place]
            more = first[offset + place] - other
            if abs(more) <= least:
                continue
            if not propensities[place] > 0.0 or np.isnan(more):
                is_supported[policy] = False
                break
            weights[place] = more / propensities[place]
            constants[policy] += weights[place] * policies.anyway[place]
        if not is_supported[policy]:
            continue
        ordered = np.sort(weights[start:end])
        k = min(policies.lengths[policy], end - start)
        for rank in range(k):
            losses[policy] += max(-ordered[rank], 0.0)
            gains[policy] += max(ordered[end - start - 1 - rank], 0.0)
        if end > start:
            largest[policy] = max(abs(ordered[0]), abs(ordered[-1]))
        # Both are at least 0 but for rounding: with no item relevant, E[X] is 0.
        gains[policy] = max(gains[policy] - constants[policy], 0.0)
        losses[policy] = max(losses[policy] + constants[policy], 0.0)
    return _Weighed(weights, gains, losses, largest, is_supported, constants)


@compiled
def _sums(
    starts: Integers, sums: ClickSums, weighed: _Weighed
) -> tuple[Floats, Floats, Floats, Integers]:
    """Sums of X and of X^2, of w^2 over clicks, and clicks, by row."""
    n, weights = len(sums.groups), weighed.weights
    totals, squares, click_squares = np.zeros(n), np.zeros(n), np.zeros(n)
    n_clicks = np.zeros(n, np.int64)
    for row, item, count in sums.clicks:
        weight = weights[starts[sums.policies[row]] + item]
        totals[row] += count * weight
        click_squares[row] += count * weight * weight
        n_clicks[row] += count
    for row, item, other, count in sums.pairs:
        start = starts[sums.policies[row]]
        squares[row] += 2.0 * count * weights[start + item] * weights[start + other]
    for row in range(n):
        constant = weighed.constants[sums.policies[row]]
        lists = sums.interactions[row] * constant
        together = squares[row] + click_squares[row]
        together += constant * (lists - 2.0 * totals[row])
        totals[row] -= lists
        squares[row] = max(together, 0.0)  # clicks that cancel out leave a rounding
    return totals, squares, click_squares, n_clicks
