"""Labels as values of items: what rankers are trained from where relevance is known.

All losses take them as they take estimates from clicks. On all labels a ranker shows
how far any number of clicks may lead (full information), on those of a few queries it
stands for the ranker that is in production before there are any clicks.

References
----------
Joachims, Swaminathan & Schnabel (WSDM 2017), section 6, for rankers of 1 % of the
queries that log clicks; Oosterhuis (PhD thesis, 2020), section 4.6.2, for full
information as the skyline.
"""

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.losses.gains import gains_of
from models.training.query_chunk import QueryChunk

Features = npt.NDArray[np.floating]


def labelled_queries(
    features: Features, labels: Integers, offsets: Integers, *, gains: Floats
) -> QueryChunk:
    """Queries whose items are worth what their labels gain; all weigh the same.

    Parameters
    ----------
    features : [n_items, n_features]
        Normalised as the ranker's are.
    labels : [n_items]
        Grades from 0.
    offsets : [n_queries + 1]
        Items of query i are at offsets[i] : offsets[i + 1].
    gains : [n_grades]
        Of each label; `models.losses.gains` has the usual ones.

    Raises
    ------
    ValueError
        Where a label has no gain, a gain is not finite, rows and offsets differ, or
        there is no query.

    Examples
    --------
    >>> one = np.zeros((2, 1), np.float32)
    >>> labelled_queries(one, np.array([0, 2]), np.array([0, 2]),
    ...                  gains=np.array([0.0, 1.0, 3.0])).values.tolist()
    [0.0, 3.0]
    """
    offsets = np.asarray(offsets, np.int64)
    if len(offsets) < 2 or {len(features), len(labels)} != {int(offsets[-1])}:
        raise ValueError(
            "features, labels and offsets must be of the same items, of one query or "
            f"more; got {len(features)} rows of features, {len(labels)} labels and "
            f"{len(offsets) - 1} queries"
        )
    n_queries = len(offsets) - 1
    return QueryChunk(
        offsets,
        np.ascontiguousarray(features, np.float32),
        gains_of(np.asarray(labels), gains),
        np.ones(len(labels), np.bool_),
        np.full(n_queries, 1.0 / n_queries),
    )
