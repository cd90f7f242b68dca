"""The rivals of the evaluation benchmark: the same numbers in vectorised numpy."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def listing_preferences(rankings: Integers, shown: Integers, clicks: Flags) -> Floats:
    """Pairwise preference multileaving after its listing, with the equation's sign.

    Every pair updates the whole matrix at once; nothing loops over rankers.

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
