"""Lists by an order in which items are tied, drawn with exactly known probabilities."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.wire.events import DETERMINISTIC, LOGGED, POLICIES

Floats = npt.NDArray[np.float32]


class DrawnList(NamedTuple):
    """A list, and what has to be logged of its draw.

    `order` [n_ranks] are rows of the candidates, `exposures` [n_documents, n_ranks]
    P(row at rank); None where only one list was possible.
    """

    order: npt.NDArray[np.int64]
    policy: str
    exposures: Floats | None


class TiedList(NamedTuple):
    """Rows of candidates in the order that was decided, and places that are tied.

    `rows` [n_documents], `ties` first and last place of each block, from 0.
    """

    rows: Sequence[int]
    ties: Sequence[tuple[int, int]]

    def drawn(self, *, cutoff: int, seed: int) -> DrawnList:
        """The first ranks, ties uniform over their orders, from PCG64 of the seed.

            P(d at k) = 1 / size of the block of d, for each k among its places

        Parameters
        ----------
        cutoff
            Length of the list; fewer where there are fewer documents.

        Raises
        ------
        ValueError
            For a cutoff below 1.
        """
        if cutoff < 1:
            raise ValueError(f"cutoff must be at least 1; got {cutoff}")
        n, touched = min(cutoff, len(self.rows)), []
        for first, last in self.ties:
            if first >= n:
                break
            touched.append((first, last + 1))
        if not touched:
            alone = np.array(self.rows[:n], np.int64)
            return DrawnList(alone, POLICIES[DETERMINISTIC], None)
        rng = np.random.Generator(np.random.PCG64(seed))
        order = np.array(self.rows, np.int64)
        exposures = np.zeros((len(order), n), np.float32)
        exposures[order[:n], np.arange(n)] = 1.0
        for start, end in touched:
            tied = order[start:end]
            exposures[tied, start : min(end, n)] = 1.0 / (end - start)
            rng.shuffle(tied)
        return DrawnList(order[:n], POLICIES[LOGGED], exposures)
