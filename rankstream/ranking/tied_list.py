"""Lists by an order in which items are tied, drawn with exactly known probabilities."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.wire.decision_shards import Slot
from rankstream.wire.events import DETERMINISTIC, LOGGED, POLICIES

Floats = npt.NDArray[np.float32]


class TiedList(NamedTuple):
    """Rows of candidates in the order that was decided, and places that are tied.

    `rows` [n_documents], `ties` first and last place of each block, from 0. `slot` is
    what the last rank of lists of its length tries, by row; None where there is none.
    """

    rows: Sequence[int]
    ties: Sequence[tuple[int, int]]
    slot: Slot | None = None

    def drawn(self, *, cutoff: int, seed: int) -> tuple[npt.NDArray[np.int64], str]:
        """The first ranks, ties uniform over their orders, drawn from the seed.

        Behind them, in lists of its length, what the slot tries.
        By the uniforms of MT19937, which is made in half the time of PCG64.

        Parameters
        ----------
        cutoff
            Length of the list; fewer where there are fewer documents.

        Returns
        -------
        [n_ranks], str
            Rows of the candidates, and the policy that is logged: `logged` where a tie
            reaches into the list, or a slot may change it.

        Raises
        ------
        ValueError
            For a cutoff below 1.
        """
        if cutoff < 1:
            raise ValueError(f"cutoff must be at least 1; got {cutoff}")
        slot = self._slot_of(cutoff)
        if slot is None and (not self.ties or self.ties[0][0] >= cutoff):
            return np.array(self.rows[:cutoff], np.int64), POLICIES[DETERMINISTIC]
        order, uniform = list(self.rows), random.Random(seed).random  # noqa: S311
        for first, last in self.ties:
            for place in range(first, min(last, cutoff)):
                other = place + int(uniform() * (last + 1 - place))
                order[place], order[other] = order[other], order[place]
        if slot is not None and uniform() < slot.share:
            end = self._block_at(cutoff - 1)[1]
            tried = [*order[cutoff:end], *slot.tried]
            order[cutoff - 1] = tried[int(uniform() * len(tried))]
        return np.array(order[:cutoff], np.int64), POLICIES[LOGGED]

    def exposures(self, n_ranks: int) -> Floats:
        """P(row at rank) [n_documents, n_ranks] of lists of this length.

        P(d at k) = 1 / size of the block of d, for each k among its places

        At the rank of a slot it is (1 - share) times as often the item of the order.
        Each of n_tried items is there with share / n_tried, if it is not in the list;
        of a block of n items that ends behind the list, that is a chance of
        (end - n_ranks) / n.
        """
        exposures = np.zeros((len(self.rows), n_ranks), np.float32)
        order = np.array(self.rows)
        exposures[order[:n_ranks], np.arange(n_ranks)] = 1.0
        for first, last in self.ties:
            places = slice(first, min(last + 1, n_ranks))
            exposures[order[first : last + 1], places] = 1.0 / (last + 1 - first)
        slot = self._slot_of(n_ranks)
        if slot is not None:
            first, end = self._block_at(n_ranks - 1)
            n_tried, size = end - n_ranks + len(slot.tried), end - first
            beyond = (end - n_ranks) / size
            own = (1.0 - slot.share) / size + slot.share * beyond / n_tried
            exposures[order[first:end], -1] = own
            exposures[[*slot.tried], -1] = slot.share / n_tried
        return exposures

    def _slot_of(self, n_ranks: int) -> Slot | None:
        """The slot of lists of this length."""
        slot = self.slot
        return slot if slot is not None and slot.n_ranks == n_ranks else None

    def _block_at(self, place: int) -> tuple[int, int]:
        """Where the block of a place begins, and the place behind its end."""
        blocks = ((x, y + 1) for x, y in self.ties if x <= place <= y)
        return next(blocks, (place, place + 1))
