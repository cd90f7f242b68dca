"""DCG and other metrics of rankings, by estimated values of items; losses bound them.

    worth of a ranking = sum over items of  value * worths[rank]

Items of equal scores share their ranks: each has the mean of their worths. An item
whose value is not known has its rank, and gains nothing: a ranker that shows what
nobody knows is not the better for it. Values are clicks over propensities of lists
that the ranker was not trained on, and the sum is then an unbiased estimate of the
metric; clipped or self-normalised values make it none.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), section 4.4: estimators of clicks evaluate any
metric of the first ranks, whatever loss a ranker was trained by.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.losses.discounts import discounts
from models.losses.loss_value import checked_cutoff
from models.losses.pair_kernel import fill_order


def precision_worths(cutoff: int) -> Floats:
    """Of Precision@k: 1 / k of each of the first k ranks, [cutoff]."""
    return np.full(cutoff, 1.0 / cutoff)


def position_worths(n_ranks: int) -> Floats:
    """Of the average relevant position: minus the rank, as more is better, [n_ranks].

    All ranks count: there must be as many as the longest query has items.
    """
    return -np.arange(1.0, n_ranks + 1.0)


METRICS: Mapping[str, Callable[[int], Floats]] = MappingProxyType(
    {"dcg": discounts, "precision": precision_worths, "arp": position_worths}
)
"""Name -> worths of so many ranks."""


def worths_of(metric: str, n_ranks: int) -> Floats:
    """Worths of the first ranks, [n_ranks]; more is better.

    Raises
    ------
    ValueError
        Where there is no such metric, or no rank.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
    return METRICS[metric](checked_cutoff(n_ranks))


@compiled
def ranking_worth(
    scores: Floats, values: Floats, is_kept: Flags, worths: Floats, order: Integers
) -> float:
    """The worth of one query's ranking.

    Parameters
    ----------
    scores, values, is_kept : [n_items]
        Values are finite where they are kept.
    worths : [n_ranks]
        Ranks beyond are worth nothing.
    order : [at least n_items]
        Scratch.
    """
    n, n_ranks = scores.shape[0], worths.shape[0]
    fill_order(scores, order)
    first, found = 0, 0.0
    while first < min(n, n_ranks):
        last, gain = first, 0.0
        while last < n and scores[order[last]] == scores[order[first]]:
            if is_kept[order[last]]:
                gain += values[order[last]]
            last += 1
        share = 0.0
        for rank in range(first, min(last, n_ranks)):
            share += worths[rank]
        found += gain * share / (last - first)
        first = last
    return found


def query_worths(
    scores: Floats, values: Floats, is_kept: Flags, offsets: Integers, worths: Floats
) -> Floats:
    """The worth of each query's ranking, [n_queries].

    Parameters
    ----------
    scores, values, is_kept : [n_items]
        Of queries end to end; values are finite where they are kept.
    offsets : [n_queries + 1]
        From 0, rising.
    worths : [n_ranks]
        See `worths_of`.

    Raises
    ------
    ValueError
        Where a score is not finite.

    Examples
    --------
    >>> query_worths(
    ...     np.array([1.0, 2.0]), np.array([0.0, 4.0]), np.ones(2, bool),
    ...     np.array([0, 2]), worths_of("dcg", 1),
    ... ).tolist()
    [4.0]
    """
    if not np.isfinite(scores).all():
        raise ValueError(
            "scores of rankings must be finite; got "
            f"{scores[~np.isfinite(scores)][0]}: leave this ranker out"
        )
    lengths = np.diff(offsets)
    order = np.empty(int(lengths.max(initial=0)), np.int64)
    found = np.empty(len(lengths))
    for query, (begin, n) in enumerate(
        zip(offsets[:-1].tolist(), lengths.tolist(), strict=True)
    ):
        span = slice(begin, begin + n)
        found[query] = ranking_worth(
            scores[span], values[span], is_kept[span], worths, order
        )
    return found
