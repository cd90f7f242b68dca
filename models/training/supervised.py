"""Rankers trained from labels: the same losses, with gains of labels as values.

What clicks are measured by: trained on all labels a ranker shows how far any number of
clicks may lead (full information), trained on those of a few queries it stands for the
ranker that is in production before there are any clicks.

References
----------
Joachims, Swaminathan & Schnabel (WSDM 2017), section 6, for rankers of 1 % of the
queries that log clicks; Oosterhuis (PhD thesis, 2020), section 4.6.2, for full
information as the skyline.
"""

import itertools
import math

import numpy as np
import numpy.typing as npt

from models.losses.gains import gains_of
from models.rankers.ranker import Ranker
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import Trained, TrainingPlan, train_ranker

Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]


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


def train_on_labels(
    ranker: Ranker,
    training: QueryChunk,
    held_out: QueryChunk,
    plan: TrainingPlan,
    *,
    rng: np.random.Generator,
) -> Trained:
    """Train a ranker from its first parameters on labelled queries.

    Parameters
    ----------
    training, held_out
        As `labelled_queries` gives them.
    rng
        Of the first parameters; the order of queries is the plan's.

    Raises
    ------
    ValueError
        Where no query tells one item from another, or as `train_ranker`.
    """
    if not _telling(training).size:
        raise ValueError(
            "labelled queries must have items of different gains; got none with any: "
            "lower the label from which a document is relevant"
        )
    start = ranker.initial_parameters(rng=rng)
    return train_ranker(ranker, start, [training], [held_out], plan)


def production_ranker(
    ranker: Ranker,
    training: QueryChunk,
    held_out: QueryChunk,
    plan: TrainingPlan,
    *,
    share: float = 0.01,
    rng: np.random.Generator,
) -> Trained:
    """Train a ranker on the labels of a few queries of either side.

    Parameters
    ----------
    share
        Of the queries of each side, in (0, 1]; at least one of each.
    rng
        Draws them, and the first parameters.

    Raises
    ------
    ValueError
        As `drawn_queries` and `train_on_labels`.
    """
    few, stops = (drawn_queries(one, share, rng=rng) for one in (training, held_out))
    return train_on_labels(ranker, few, stops, plan, rng=rng)


def drawn_queries(
    queries: QueryChunk, share: float, *, rng: np.random.Generator
) -> QueryChunk:
    """A share of the queries, of those whose items differ in value.

    Others say nothing of an order. The share is of all queries, rounded up.

    Raises
    ------
    ValueError
        Where the share is outside (0, 1], or no query tells anything.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must lie in (0, 1]; got {share}")
    telling = _telling(queries)
    if not telling.size:
        raise ValueError(
            "queries must have items of different values to draw from; got none with "
            "any: lower the label from which a document is relevant"
        )
    # A product such as 0.07 * 100 is a little too large.
    n = min(math.ceil(share * queries.n_queries - 1e-9), len(telling))
    chosen = np.sort(rng.choice(telling, max(n, 1), replace=False))
    spans = [np.arange(*queries.offsets[i : i + 2]) for i in chosen]
    rows = np.concatenate(spans)
    weights = queries.weights[chosen]
    return QueryChunk(
        np.cumsum([0, *map(len, spans)]),
        queries.features[rows],
        queries.values[rows],
        queries.is_kept[rows],
        weights / weights.sum(),
    )


def _telling(queries: QueryChunk) -> Integers:
    """Queries with two known items of different values, [n]."""
    spans = itertools.pairwise(queries.offsets.tolist())
    known = [queries.values[a:b][queries.is_kept[a:b]] for a, b in spans]
    return np.flatnonzero([len(x) > 0 and x.min() < x.max() for x in known])
