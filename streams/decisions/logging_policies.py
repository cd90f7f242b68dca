"""Policies that logged the lists of a set: what they expect of items, each kept once.

Two lists of one policy, or of two that expect the same of all items, have the same
propensities, wherever they were counted; sums of their lists may be added.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.counts.fixed_point import Int64
from models.counts.placements import TAIL_SHUFFLE
from models.decisions.click_sums import LoggingPolicies
from models.estimators.bias_curve import BiasCurve
from streams.statistics.scopes import ScopeBatch, SortedItems


class Placements(NamedTuple):
    """Where policies put items; a row (policy, item, rank) may come again.

    Parameters
    ----------
    owners, items, ranks : [n]
        Number of the policy, of the item in its sorted set, and a rank from 1.
    probabilities : [n]
        What they add up to is P(item at rank).
    """

    owners: Int64
    items: Int64
    ranks: Int64
    probabilities: Floats

    def of(self, is_kept: Flags) -> "Placements":
        """Those of some policies, numbered anew; `is_kept` [n_policies]."""
        numbers = np.cumsum(is_kept) - 1
        kept = is_kept[self.owners]
        return Placements(
            numbers[self.owners[kept]],
            self.items[kept],
            self.ranks[kept],
            self.probabilities[kept],
        )


def joined(parts: Sequence[Placements], n_each: Sequence[int]) -> Placements:
    """Those of several tables of policies, one behind the other.

    `n_each` is how many policies each has.
    """
    firsts = np.cumsum([0, *n_each])[:-1]
    owners = [
        one.owners + first for one, first in zip(parts, firsts.tolist(), strict=True)
    ]
    none = np.zeros(0, np.int64)
    return Placements(
        np.concatenate([none, *owners]),
        np.concatenate([none, *(one.items for one in parts)]),
        np.concatenate([none, *(one.ranks for one in parts)]),
        np.concatenate([np.zeros(0), *(one.probabilities for one in parts)]),
    )


def placed_by_lists(batch: ScopeBatch, by_id: SortedItems, which: Int64) -> Placements:
    """Where lists without an exposure row put items, [n_lists] policies.

    `which` [n_lists] are their numbers: of fixed ranks, or of a last rank that was
    shuffled among what stands in none above.
    """
    lists, scopes = batch.lists, batch.list_scopes[which]
    first, lengths = lists.starts[which], np.diff(lists.starts)[which]
    owners = np.repeat(np.arange(len(which)), lengths)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    items = by_id.renumbered(scopes[owners], lists.items[first[owners] + within])
    is_tail = lists.rows[which] == -1 - TAIL_SHUFFLE
    is_above = within < lengths[owners] - 1
    # A chance for all, less those above, comes first: it is exactly 0 before what is
    # sure is added.
    n_items = np.where(is_tail, batch.n_items()[scopes], 0)
    drawn = np.repeat(np.arange(len(which)), n_items)
    place = np.arange(len(drawn)) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    chance = 1.0 / np.maximum(n_items - lengths + 1, 1)
    taken = is_tail[owners] & is_above
    sure = ~is_tail[owners] | is_above
    return Placements(
        np.concatenate((drawn, owners[taken], owners[sure])),
        np.concatenate((place, items[taken], items[sure])),
        np.concatenate((lengths[drawn], lengths[owners[taken]], within[sure] + 1)),
        np.concatenate(
            (chance[drawn], -chance[owners[taken]], np.ones(int(sure.sum())))
        ),
    )


class PolicyTable:
    """Distinct policies, numbered as they come.

    Parameters
    ----------
    curve
        Of bias; ranks that it does not have are left out, clicks and exposures alike.
    weights : [n_ranks]
        lambda by rank.
    """

    def __init__(self, curve: BiasCurve, weights: Floats) -> None:
        self._n_ranks = curve.n_ranks
        self._by_rank = np.zeros((3, max(curve.n_ranks, len(weights))))
        self._by_rank[0, : curve.n_ranks] = curve.alpha
        self._by_rank[1, : curve.n_ranks] = curve.beta
        self._by_rank[2, : len(weights)] = weights
        self._numbers: dict[tuple[int, int, bytes], int] = {}

    def numbers(
        self, sets: Int64, n_items: Int64, n_ranks: Int64, placed: Placements
    ) -> Int64:
        """The number of each policy, [n_policies].

        Parameters
        ----------
        sets, n_items, n_ranks : [n_policies]
            Number of its candidate set, items of it, and ranks of its lists.
        placed
            Where they put items.
        """
        ends = np.cumsum(n_items)
        starts, size = ends - n_items, int(n_items.sum())
        known = placed.ranks <= self._by_rank.shape[1]
        owners, items, ranks, chances = (column[known] for column in placed)
        at = starts[owners] + items
        expected = np.empty((size, 3))
        for column, of_rank in enumerate(self._by_rank):
            expected[:, column] = np.bincount(at, of_rank[ranks - 1] * chances, size)
        shown = np.minimum(n_ranks, self._n_ranks)
        keys = zip(
            sets.tolist(),
            shown.tolist(),
            (
                expected[start:end].tobytes()
                for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            ),
            strict=True,
        )
        numbers = self._numbers
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], int)

    def sorted(self, used: Int64) -> tuple[LoggingPolicies, Int64]:
        """Those that are used, by candidate set, and the new number of each of all.

        Parameters
        ----------
        used : [n]
            Numbers of policies; they may repeat.
        """
        keys = list(self._numbers)
        sets = np.array([key[0] for key in keys], np.int64)
        kept = np.unique(used)
        order = kept[np.argsort(sets[kept], kind="stable")]
        numbers = np.full(len(keys), -1)
        numbers[order] = np.arange(len(order))
        chosen = [keys[policy] for policy in order.tolist()]
        expected = np.frombuffer(b"".join(key[2] for key in chosen)).reshape(-1, 3)
        starts = np.cumsum([0, *(len(key[2]) // 24 for key in chosen)])
        alpha, beta, worths = np.ascontiguousarray(expected.T)
        lengths = np.array([key[1] for key in chosen], np.int64)
        policies = LoggingPolicies(sets[order], starts, alpha, beta, worths, lengths)
        return policies, numbers
