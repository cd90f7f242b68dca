"""The rivals of the evaluation benchmark: the same numbers in numpy."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def listing_preferences(rankings: Integers, shown: Integers, clicks: Flags) -> Floats:
    """Pairwise preference multileaving after its listing, with the equation's sign.

    Numpy after the listing: pairs of documents are looped over, each updates the whole
    matrix at once; nothing loops over rankers.

    Parameters
    ----------
    rankings : [n_rankers, n_documents]
        Whole rankings.
    shown, clicks : [k]
    """
    n_rankers, n_documents = rankings.shape
    ranks = np.empty_like(rankings)
    places = np.arange(1, n_documents + 1)
    np.put_along_axis(ranks, rankings, np.tile(places, (n_rankers, 1)), axis=1)
    first = ranks.min(axis=0)
    sizes = np.array([(first <= x).sum() for x in range(1, len(shown) + 1)])
    matrix = np.zeros((n_rankers, n_rankers))
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return matrix
    n_read = min(clicked[-1] + 2, len(shown))
    for i in clicked:
        for j in np.flatnonzero(~clicks[:n_read]):
            two = shown[[i, j]]
            low, high = np.sort(first[two])
            if min(i, j) + 1 < high:
                continue
            x = np.arange(low, high)
            weight = np.prod(1.0 - 1.0 / (sizes[x - 1] - x + 1))
            agrees = np.where(ranks[:, two[0]] < ranks[:, two[1]], 1.0, -1.0)
            matrix += (agrees[:, None] - agrees[None, :]) / weight
    return matrix


def vectorised_preferences(
    rankings: Integers, shown: Integers, clicks: Flags
) -> Floats:
    """The same, all pairs of documents at once as well: one product per list.

    A weight is a ratio of running products over the ranks, kept as logarithms; each
    ranker's credit is its orders of the pairs times their weights.

    Parameters
    ----------
    rankings : [n_rankers, n_documents]
        Whole rankings.
    shown, clicks : [k]
    """
    n_rankers, k = len(rankings), len(shown)
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return np.zeros((n_rankers, n_rankers))
    skipped = np.flatnonzero(~clicks[: clicked[-1] + 2])
    ranks = np.argsort(rankings, axis=1) + 1
    first = ranks.min(axis=0)
    sizes = np.searchsorted(np.sort(first), np.arange(1, k + 1), side="right")
    with np.errstate(divide="ignore"):  # a sole choice leaves nothing below it free
        left = np.log(1.0 - 1.0 / (sizes - np.arange(k)))
    survival = np.concatenate(([0.0], np.cumsum(np.maximum(left, -700.0))))
    one, other = first[shown[clicked], None], first[shown[skipped]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    are_free = np.minimum(clicked[:, None], skipped) + 1 >= high
    logarithms = survival[low - 1] - survival[np.minimum(high, k) - 1]
    weights = np.where(are_free, np.exp(np.where(are_free, logarithms, 0.0)), 0.0)
    agrees = ranks[:, shown[clicked], None] < ranks[:, None, shown[skipped]]
    credit = (2.0 * agrees - 1.0).reshape(n_rankers, -1) @ weights.ravel()
    return np.asarray(credit[:, None] - credit[None, :])


def sampled_preferences(
    shares: Floats, n_samples: int, rng: np.random.Generator
) -> Floats:
    """Mean sign over sampled assignments of the clicked places, all pairs at once.

    Parameters
    ----------
    shares : [n_clicks, n_rankers]
    """
    n_clicks, n_rankers = shares.shape
    bounds = np.cumsum(shares, axis=1)
    counts = np.zeros((n_samples, n_rankers), np.int8)
    rows = np.arange(n_samples)
    for click in range(n_clicks):
        owners = np.searchsorted(bounds[click], rng.random(n_samples), side="right")
        counts[rows, np.minimum(owners, n_rankers - 1)] += 1
    return np.asarray(
        [np.sign(counts[:, n, None] - counts).mean(axis=0) for n in range(n_rankers)]
    )
