"""The most that users can lose by a new policy, whatever they like.

With w(d) the expected weight of item d's rank under the Plackett-Luce policy of a
ranker,

    w(d) = sum over ranks k of  theta_k P(item d at rank k)

a list of items of relevance r in [0, 1] gets sum of r(d) w(d) clicks. Going from the
parent's policy to a new one costs at most

    max over r of  sum of r(d) (w_parent(d) - w_new(d))
        = sum over items of  max(0, w_parent(d) - w_new(d))

which is reached where users like what the new policy shows less, and nothing else. No
click has a part in it, so that it holds whatever is wrong with what was counted. Clicks
by trust bias (beta) are as many under either policy: each rank has one item.

References
----------
The maximum is elementary: a linear function on a box. Gupta, Oosterhuis & de Rijke
(CIKM 2024) clip the ratio of the same weights in a loss (`models.losses.proximal`).
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.plackett_luce.placement import placement_batch
from models.rankers.ranker import Scorer
from models.training.exploration import Placements
from models.training.query_chunk import ChunkSource, QueryChunk
from models.training.ranker_scores import linear_unless, spans

LEAST_WEIGHT = 1e-9
"""A weight below this is none: placements are exact to it."""


class Fall(NamedTuple):
    """How far a policy can fall behind its parent.

    Parameters
    ----------
    largest_loss
        Mean by weight over queries, of the most that a list can lose: at least 0, in
        expected looks for each list, hence in clicks on what all who look at it click.
    least_ratio
        The least over all items of w_new / w_parent, of those that the parent shows:
        how much of its exposure an item may have kept. Infinite where there are none.
    """

    largest_loss: float
    least_ratio: float


def fall_of(parent: Floats, new: Floats) -> Fall:
    """The most that a list can lose, of one query.

    Parameters
    ----------
    parent, new : [n_items]
        Expected weight of each item's rank under the two policies, at least 0.

    Examples
    --------
    >>> fall_of(np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    Fall(largest_loss=0.25, least_ratio=0.6666666666666666)
    """
    is_shown = parent > LEAST_WEIGHT
    ratios = new[is_shown] / parent[is_shown]
    return Fall(
        float(np.maximum(parent - new, 0.0).sum()), float(ratios.min(initial=np.inf))
    )


class Falls:
    """How far policies fall behind one parent, over many queries.

    Weights under the parent are held: 8 bytes for each item.

    Parameters
    ----------
    parent : [n_parameters]
        As served.
    chunks
        Queries, of which policies rank all items; those without weight have no part in
        the largest loss.
    by_rank : [n_ranks]
        Weights of the ranks that are shown, such as their examination, at least 0.
    placements
        Computes probabilities of ranks.
    ranker
        A linear one if not given.

    Raises
    ------
    ValueError
        Where there are no queries with weight and items, or a score is not finite.
    """

    def __init__(
        self,
        parent: Floats,
        chunks: ChunkSource,
        by_rank: Floats,
        *,
        placements: Placements = placement_batch,
        ranker: Scorer | None = None,
    ) -> None:
        self._chunks, self._by_rank, self._placements = chunks, by_rank, placements
        self._ranker = linear_unless(ranker, len(parent))
        self._parents: list[list[Floats]] = []
        self._total = 0.0
        for number in range(len(chunks)):
            chunk = chunks[number]
            self._parents.append(self._weights(parent, chunk))
            is_there = np.diff(chunk.offsets) > 0
            self._total += float(chunk.weights[is_there].sum())
        if not self._total > 0.0:
            raise ValueError("a policy needs queries to fall in; got none with lists")

    def of(self, new: Floats) -> Fall:
        """How far a policy falls; `new` [n_parameters] are as served.

        Raises
        ------
        ValueError
            Where a score is not finite.
        """
        lost, least = 0.0, np.inf
        for number, parents in enumerate(self._parents):
            chunk = self._chunks[number]
            found, shares = self._weights(new, chunk), chunk.weights.tolist()
            for share, before, after in zip(shares, parents, found, strict=True):
                fall = fall_of(before, after)
                lost += share * fall.largest_loss
                least = min(least, fall.least_ratio)
        return Fall(lost / self._total, least)

    def _weights(self, parameters: Floats, chunk: QueryChunk) -> list[Floats]:
        """Of each query's items, [n_items], in a chunk."""
        found = list[Floats]()
        scores = self._ranker.item_scores(parameters, chunk.features)
        for begin, end in spans(chunk):
            n = min(len(self._by_rank), end - begin)
            if not n:
                found.append(np.zeros(end - begin))
                continue
            placed = self._placements(scores[None, begin:end], n)[0]
            found.append(placed @ self._by_rank[:n])
        return found
