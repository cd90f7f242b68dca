"""Examination by rank from items that one policy showed at several ranks.

What was shown at rank r and at rank s by the same policy has the same relevance in
both places, so that the ratio of its click rates is that of examination. For a pair of
ranks, over all items seen at both,

    S[r, s] = sum of w(item) clicks(item, r) / shown(item, r)

has the expectation examination[r] * (sum of w relevance), and S[s, r] the same with
examination[s]: relevance falls out, however it depends on ranks.

It does so within one intervention only. A policy that was chosen from clicks shows
what happened to be clicked further up, where it is clicked as usual again: rates fall
with every promotion for no reason of ranks. So items of different policies are
different items.

References
----------
Agarwal, Zaitsev, Wang, Li, Najork & Joachims (WSDM 2019), sections 4 and 5: adjacent
chain, pivot and all pairs. Fang, Agarwal & Joachims (SIGIR 2019), section 3, for a
relevance of each pair of ranks.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.bias.examination import (
    NO_CLICKS,
    NOT_CONNECTED,
    NOT_SHOWN,
    estimate_examination,
)
from models.bias.fitted_curve import NEEDS_BOOTSTRAP, FittedCurve
from models.bias.logged_views import Views, check_views

UNITS_AT_ONCE = 1 << 16
"""Items whose counts at all ranks are held at once."""


def impression_weights(shown: Floats, elsewhere: Floats) -> Floats:
    """As if the rarer place had been all: n m / (n + m).

    A difference of two rates varies as 1 / n + 1 / m. They are those of lists and not
    of clicks, so no item counts more for its luck.

    Parameters
    ----------
    shown, elsewhere : [n_items]
        Lists with the item at either rank.
    """
    return shown * elsewhere / (shown + elsewhere)


class RankPairs(NamedTuple):
    """What items say that one policy showed at both ranks of a pair.

    Parameters
    ----------
    weights : [n_ranks, n_ranks]
        Sums of weights of items seen at both; symmetric, 0 on the diagonal.
    clicks : [n_ranks, n_ranks]
        In row r and column s, weighted click rates at r of items seen at r and s.
    """

    weights: Floats
    clicks: Floats

    def chain(self) -> Floats:
        """Ratios to rank 1, each rank by the one above it; [n_ranks]."""
        rows = np.arange(1, len(self.weights))
        steps = _quotients(self.clicks[rows, rows - 1], self.clicks[rows - 1, rows])
        return np.concatenate([[1.0], np.cumprod(steps)])

    def pivoted(self) -> Floats:
        """Ratios to rank 1, each rank by items that were seen there too; [n_ranks]."""
        steps = _quotients(self.clicks[1:, 0], self.clicks[0, 1:])
        return np.concatenate([[1.0], steps])


def rank_pairs(views: Views, *, n_ranks: int) -> RankPairs:
    """Add up all pairs of ranks at which one policy showed an item of a query.

    Raises
    ------
    ValueError
        Where counts are impossible or a rank is out of range.
    """
    check_views(views, n_ranks)
    weights, clicks = np.zeros((2, n_ranks, n_ranks))
    places, n_units = _units(views)
    order = np.argsort(places, kind="stable")
    places = places[order]
    shown, clicked = views.shown[order], views.clicked[order]
    rows = views.ranks[order] - 1
    for first in range(0, n_units, UNITS_AT_ONCE):
        begin, end = np.searchsorted(places, [first, first + UNITS_AT_ONCE])
        part = slice(begin, end)
        n = min(UNITS_AT_ONCE, n_units - first)
        keys = (places[part] - first) * n_ranks + rows[part]
        n_shown, n_clicked = (
            np.bincount(keys, column[part], n * n_ranks).astype(np.float64)
            for column in (shown, clicked)
        )
        shape = n, n_ranks
        counts = n_shown.reshape(shape), n_clicked.reshape(shape)
        _add_pairs(*counts, weights, clicks)
    return RankPairs(weights, clicks)


def harvest_adjacent(views: Views, *, n_ranks: int) -> FittedCurve:
    """Examination from pairs of neighbouring ranks, multiplied from the first on.

    Its errors add up from rank to rank. As in `rank_pairs`.
    """
    pairs = rank_pairs(views, n_ranks=n_ranks)
    return _fit(views, pairs.chain(), n_ranks)


def harvest_pivot(views: Views, *, n_ranks: int) -> FittedCurve:
    """Examination from pairs with the first rank, and from nothing else.

    As in `rank_pairs`.
    """
    pairs = rank_pairs(views, n_ranks=n_ranks)
    return _fit(views, pairs.pivoted(), n_ranks)


def harvest_all_pairs(views: Views, *, n_ranks: int) -> FittedCurve:
    """Examination from all pairs of ranks, each with a relevance of its own.

        clicks[r, s] ~ weights[r, s] * examination[r] * relevance[r, s]

    with relevance[r, s] = relevance[s, r], where the likelihood is largest. That is
    the position-based model once more, with pairs of ranks for documents. As in
    `rank_pairs`.
    """
    sums = rank_pairs(views, n_ranks=n_ranks)
    rows, others = np.nonzero(sums.weights)
    pairs = np.minimum(rows, others) * n_ranks + np.maximum(rows, others)
    shown = sums.weights[rows, others]
    clicked = np.minimum(sums.clicks[rows, others], shown)
    found = estimate_examination(
        pairs.astype(np.int64), rows + 1, shown, clicked, n_ranks=n_ranks
    )
    return _fit(views, found.ratios, n_ranks)


def _units(views: Views) -> tuple[Integers, int]:
    """Numbers of items, each of one policy and query; and how many there are."""
    places = np.zeros(len(views.items), np.int64)
    n_units = 1
    for column in (views.policies, views.queries, views.items):
        names, numbers = np.unique(column, return_inverse=True)
        keys = places * max(len(names), 1) + numbers
        found, places = np.unique(keys, return_inverse=True)
        n_units = len(found)
    return places.astype(np.int64), n_units


def _add_pairs(shown: Floats, clicked: Floats, weights: Floats, clicks: Floats) -> None:
    rates = _quotients(clicked, shown)
    for r in range(shown.shape[1]):
        for s in range(r):
            both = np.flatnonzero((shown[:, r] > 0.0) & (shown[:, s] > 0.0))
            if len(both):
                weight = impression_weights(shown[both, r], shown[both, s])
                weights[r, s] += weight.sum()
                weights[s, r] = weights[r, s]
                clicks[r, s] += float(weight @ rates[both, r])
                clicks[s, r] += float(weight @ rates[both, s])


def _quotients(above: Floats, below: Floats) -> Floats:
    quotients = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotients, where=below > 0.0)
    return quotients


def _fit(views: Views, ratios: Floats, n_ranks: int) -> FittedCurve:
    """A curve without intervals; a ratio of 0 is no examination."""
    rows = views.ranks - 1
    shown = np.bincount(rows, views.shown, n_ranks)
    clicked = np.bincount(rows, views.clicked, n_ranks)
    is_known = np.isfinite(ratios) & (ratios > 0.0)
    without = np.where(clicked > 0, NOT_CONNECTED, NO_CLICKS)
    without = np.where(shown > 0, without, NOT_SHOWN)
    reasons = np.where(is_known, NEEDS_BOOTSTRAP, without)
    reasons[0] = "" if is_known[0] else reasons[0]
    known = np.where(is_known, ratios, np.nan)
    ends = np.where(np.arange(n_ranks) == 0, known, np.nan)
    return _position(known, ends, tuple(reasons.tolist()))


def _position(ratios: Floats, ends: Floats, reasons: tuple[str, ...]) -> FittedCurve:
    zero = np.where(np.isfinite(ratios), 0.0, np.nan)
    return FittedCurve(ratios, zero, ends, ends, 0.0 * ends, 0.0 * ends, reasons)
