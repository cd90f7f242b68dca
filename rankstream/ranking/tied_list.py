"""Lists by an order in which items are tied, drawn with exactly known probabilities."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.wire.events import DETERMINISTIC, LOGGED, POLICIES

Floats = npt.NDArray[np.float32]


class TiedList(NamedTuple):
    """Rows of candidates in the order that was decided, and places that are tied.

    `rows` [n_documents], `ties` first and last place of each block, from 0.
    """

    rows: Sequence[int]
    ties: Sequence[tuple[int, int]]

    def drawn(self, *, cutoff: int, seed: int) -> tuple[npt.NDArray[np.int64], str]:
        """The first ranks, ties uniform over their orders, drawn from the seed.

        By the uniforms of MT19937, which is made in half the time of PCG64.

        Parameters
        ----------
        cutoff
            Length of the list; fewer where there are fewer documents.

        Returns
        -------
        [n_ranks], str
            Rows of the candidates, and the policy that is logged: `logged` where a tie
            reaches into the list.

        Raises
        ------
        ValueError
            For a cutoff below 1.
        """
        if cutoff < 1:
            raise ValueError(f"cutoff must be at least 1; got {cutoff}")
        if not self.ties or self.ties[0][0] >= cutoff:
            return np.array(self.rows[:cutoff], np.int64), POLICIES[DETERMINISTIC]
        order, uniform = list(self.rows), random.Random(seed).random  # noqa: S311
        for first, last in self.ties:
            for place in range(first, min(last, cutoff)):
                other = place + int(uniform() * (last + 1 - place))
                order[place], order[other] = order[other], order[place]
        return np.array(order[:cutoff], np.int64), POLICIES[LOGGED]

    def exposures(self, n_ranks: int) -> Floats:
        """P(row at rank) [n_documents, n_ranks] of lists of this length.

        P(d at k) = 1 / size of the block of d, for each k among its places
        """
        exposures = np.zeros((len(self.rows), n_ranks), np.float32)
        order = np.array(self.rows)
        exposures[order[:n_ranks], np.arange(n_ranks)] = 1.0
        for first, last in self.ties:
            places = slice(first, min(last + 1, n_ranks))
            exposures[order[first : last + 1], places] = 1.0 / (last + 1 - first)
        return exposures
