"""Average relevant position: the mean rank of what is relevant; less is better."""

import numpy as np

from models.arrays import Flags, Floats, Integers


def expected_ranks(scores: Floats, offsets: Integers) -> Floats:
    """Ranks within queries from 1, equal scores in random order, [n_documents].

    `scores` [n_documents], all finite; `offsets` [n_queries + 1].

    Examples
    --------
    >>> expected_ranks(np.array([0.5, 2.0, 0.5]), np.array([0, 3])).tolist()
    [2.5, 1.0, 2.5]
    """
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, queries))
    ordered = scores[order]
    is_first = np.ones(len(scores), np.bool_)
    is_first[1:] = (np.diff(ordered) != 0.0) | (np.diff(queries) != 0)
    tie = np.cumsum(is_first) - 1
    places = np.arange(len(scores)) - offsets[queries] + 1.0
    means = np.bincount(tie, places) / np.bincount(tie)
    ranks = np.empty(len(scores))
    ranks[order] = means[tie]
    return ranks


def average_relevant_position(
    is_relevant: Flags, scores: Floats, offsets: Integers
) -> float:
    """Mean rank of the relevant documents of all queries together.

    Equal scores are in random order; queries without a relevant document count
    nothing.

    Parameters
    ----------
    is_relevant, scores : [n_documents]
    offsets : [n_queries + 1]

    Returns
    -------
    float
        NaN where nothing is relevant.

    References
    ----------
    Joachims, Swaminathan & Schnabel (WSDM 2017), section 3, for the sum of ranks of
    what is relevant; Oosterhuis (PhD thesis, 2020), section 7.2.

    Examples
    --------
    >>> average_relevant_position(np.array([True, False]), np.array([0.1, 0.9]),
    ...                           np.array([0, 2]))
    2.0
    """
    ranks = expected_ranks(scores, offsets)[is_relevant]
    return float(ranks.mean()) if len(ranks) else float("nan")
