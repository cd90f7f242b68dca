"""Where a policy puts all documents of a world, query by query."""

import numpy as np

from models.plackett_luce.placement import placement_batch
from models.training.exploration import Placements
from rankstream.lab.closed_loops.world import Floats, Integers


class WorldPlacements:
    """Exact probabilities of ranks for many queries at once.

    Queries of one length go together, so that few calls do for all of them.

    Parameters
    ----------
    offsets : [n_queries + 1]
        As those of a `World`.
    cutoff
        Ranks that are shown.
    placements
        Computes probabilities of ranks for lists of one length.
    """

    def __init__(
        self,
        offsets: Integers,
        cutoff: int,
        placements: Placements = placement_batch,
    ) -> None:
        sizes = np.diff(offsets)
        self._rows = [
            offsets[:-1][sizes == size][:, None] + np.arange(size)
            for size in np.unique(sizes).tolist()
        ]
        self._n_documents = int(offsets[-1])
        self._cutoff, self._placements = cutoff, placements

    def of(self, scores: Floats) -> Floats:
        """P(document at rank) of the Plackett-Luce policy of `scores` [n_documents].

        [n_documents, cutoff]; 0 at ranks that a query is too short for.
        """
        placed = np.zeros((self._n_documents, self._cutoff))
        for rows in self._rows:
            shown = min(self._cutoff, rows.shape[1])
            placed[rows, :shown] = self._placements(scores[rows], shown)
        return placed
