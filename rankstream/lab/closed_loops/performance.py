"""How good lists were that users saw, and how good a ranker is on queries it never saw.

Two figures of a learner's life. *Online*: the discounted sum of the NDCG of the lists
that were shown. *Offline*: mean NDCG of its ranking of held-out queries, ties broken
at random.

References
----------
Hofmann, Whiteson & de Rijke (Information Retrieval 16, 2013), discounted online
performance; Oosterhuis & de Rijke (CIKM 2018), section 5.4.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from rankstream.lab.closed_loops.world import World

DISCOUNT = 0.9995
"""Per impression, in the discounted sum of shown NDCG."""


@dataclass(frozen=True)
class Conventions:
    """What NDCG means, as data sets and papers differ in it.

    Parameters
    ----------
    cutoff
        Ranks that count.
    gain
        "exponential": 2^label - 1; "linear": label.
    purge
        Leave held-out queries without a relevant document out, instead of counting
        them as 0. Shown lists of such queries always count 0.
    """

    cutoff: int = 10
    gain: str = "exponential"
    purge: bool = True

    def __post_init__(self) -> None:
        if self.cutoff < 1:
            raise ValueError(f"cutoff must be at least 1; got {self.cutoff}")
        if self.gain not in ("exponential", "linear"):
            raise ValueError(f"gain must be exponential or linear; got {self.gain!r}")


class Judge:
    """NDCG over one world."""

    def __init__(self, world: World, conventions: Conventions) -> None:
        labels = world.labels.astype(np.float64)
        is_linear = conventions.gain == "linear"
        self._gains = labels if is_linear else 2.0**labels - 1.0
        self._offsets = np.array(world.offsets, np.int64)
        self._cutoff = conventions.cutoff
        self._purge = conventions.purge
        self._ideals = ideals_of(self._gains, self._offsets, conventions.cutoff)

    def shown(self, lists: Integers) -> Floats:
        """NDCG of `lists` [n_impressions, 1 + cutoff], as a loop gives them.

        Returns
        -------
        [n_impressions]
        """
        return shown_ndcg(lists, self._gains, self._offsets, self._ideals, self._cutoff)

    def held_out(self, scores: Floats, *, rng: np.random.Generator) -> float:
        """Mean NDCG of the ranking by scores [n_documents]; NaN for no query."""
        values = ranked_ndcg(
            np.array(scores, np.float64),
            self._gains,
            self._offsets,
            self._ideals,
            self._cutoff,
            rng,
        )
        return self._mean(values)

    def policy(self, placed: Floats) -> float:
        """Mean expected NDCG of a policy that draws lists; NaN for no query.

        Parameters
        ----------
        placed : [n_documents, at least cutoff]
            P(document at rank).
        """
        ranks = np.arange(2.0, self._cutoff + 2.0)
        gained = (placed[:, : self._cutoff] / np.log2(ranks)).sum(axis=1) * self._gains
        expected = np.add.reduceat(gained, self._offsets[:-1])
        has_any = self._ideals > 0.0
        return self._mean(expected / np.where(has_any, self._ideals, 1.0))

    def _mean(self, values: Floats) -> float:
        counted = values[self._ideals > 0.0] if self._purge else values
        return float(counted.mean()) if len(counted) else float("nan")


@compiled
def ideals_of(gains: Floats, offsets: Integers, cutoff: int) -> Floats:
    """DCG of the best list of every query, [n_queries].

    Parameters
    ----------
    gains : [n_documents]
        Not negative.
    offsets : [n_queries + 1]
        Where the documents of each query begin, and the last ones end.
    """
    ideals = np.zeros(offsets.shape[0] - 1)
    for query in range(ideals.shape[0]):
        best = np.sort(gains[offsets[query] : offsets[query + 1]])
        for place in range(min(cutoff, best.shape[0])):
            gain = best[best.shape[0] - 1 - place]
            ideals[query] += gain / np.log2(place + 2.0)
    return ideals


@compiled
def shown_ndcg(
    lists: Integers, gains: Floats, offsets: Integers, ideals: Floats, cutoff: int
) -> Floats:
    """NDCG of every shown list; 0 where its query has nothing relevant.

    Parameters
    ----------
    lists : [n_impressions, 1 + length]
        The query, and the rows of its documents; -1 for none.
    gains : [n_documents]
    offsets : [n_queries + 1]
    ideals : [n_queries]
        As `ideals_of` returns them.

    Returns
    -------
    [n_impressions]
    """
    values = np.zeros(lists.shape[0])
    for i in range(lists.shape[0]):
        query = lists[i, 0]
        if ideals[query] <= 0.0:
            continue
        for place in range(min(cutoff, lists.shape[1] - 1)):
            row = lists[i, place + 1]
            if row >= 0:
                values[i] += gains[offsets[query] + row] / np.log2(place + 2.0)
        values[i] /= ideals[query]
    return values


@compiled
def ranked_ndcg(
    scores: Floats,
    gains: Floats,
    offsets: Integers,
    ideals: Floats,
    cutoff: int,
    rng: np.random.Generator,
) -> Floats:
    """NDCG of every query ranked by scores, equal ones at random.

    Parameters
    ----------
    scores, gains : [n_documents]
    offsets : [n_queries + 1]
    ideals : [n_queries]
        As `ideals_of` returns them.

    Returns
    -------
    [n_queries]
        0 where the query has nothing relevant.
    """
    values = np.zeros(ideals.shape[0])
    for query in range(ideals.shape[0]):
        first, n = offsets[query], offsets[query + 1] - offsets[query]
        if ideals[query] <= 0.0:
            continue
        order = np.arange(first, first + n)
        for d in range(n - 1, 0, -1):
            other = min(int(rng.random() * (d + 1)), d)
            order[d], order[other] = order[other], order[d]
        ranking = order[np.argsort(-scores[order], kind="mergesort")]
        for place in range(min(cutoff, n)):
            values[query] += gains[ranking[place]] / np.log2(place + 2.0)
        values[query] /= ideals[query]
    return values


def discounted_sum(values: Floats, *, already: int = 0) -> float:
    """Sum of values, each impression weighing less than the one before.

    Parameters
    ----------
    values : [n_impressions]
    already
        Impressions before the first of them.
    """
    return float(values @ DISCOUNT ** (already + np.arange(len(values))))
