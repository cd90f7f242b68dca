"""Normalised discounted cumulative gain: gain 2^label - 1, discount log2(rank + 1).

Queries of a data set lie end to end: those of query i are at
`offsets[i] : offsets[i + 1]`.
"""

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers


def dcg(labels: npt.NDArray[np.integer], cutoff: int) -> float:
    """Discounted cumulative gain of `labels` [n] in ranked order.

    Examples
    --------
    >>> dcg(np.array([1, 0, 1]), 10)
    1.5
    """
    top = labels[:cutoff]
    return float(((2.0**top - 1.0) / np.log2(np.arange(2, len(top) + 2))).sum())


def ndcg_of_ranking(
    labels: npt.NDArray[np.integer], ranking: npt.NDArray[np.integer], cutoff: int
) -> float:
    """NDCG of a list: its gain over that of the best list; 0 where nothing is relevant.

    Parameters
    ----------
    labels : [n_documents]
        Of all candidates.
    ranking : [n_shown]
        Rows of the documents in displayed order.
    """
    best = dcg(np.sort(labels)[::-1], cutoff)
    return dcg(labels[ranking], cutoff) / best if best > 0.0 else 0.0


def mean_ndcg(
    labels: npt.NDArray[np.integer], scores: Floats, offsets: Integers, cutoff: int
) -> float:
    """Mean NDCG over the queries that have a relevant document.

    Equal scores are ranked by row, so a model that scores all alike is judged by the
    order of the file.

    Parameters
    ----------
    labels, scores : [n_rows]
    offsets : [n_queries + 1]

    Returns
    -------
    float
        NaN where no query has a relevant document.
    """
    values = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        of_query = labels[start:end]
        if of_query.max(initial=0) > 0:
            ranking = np.argsort(-scores[start:end], kind="stable")
            values.append(ndcg_of_ranking(of_query, ranking, cutoff))
    return float(np.mean(values)) if values else float("nan")
