"""Lists of users who click more or less as a whole: clicks of a list go together."""

import numpy as np

from models.bias.logged_views import Views
from tests.planted_bias import Planted


def lists_of(
    planted: Planted,
    rng: np.random.Generator,
    *,
    n_queries: int = 60,
    n_lists: int = 200,
    least: float = 0.3,
) -> Views:
    """Each query has as many documents as ranks, in an order near that of relevance.

    Of each list the user clicks all that is shown `least` to 1 times as often.
    """
    k = len(planted.alpha)
    relevance = np.sort(rng.uniform(0.05, 0.95, (n_queries, k)), axis=1)[:, ::-1]
    noise = rng.gumbel(size=(n_queries, n_lists, k))
    order = np.argsort(-(2.0 * relevance[:, None, :] + noise), axis=2)
    shown = np.take_along_axis(relevance[:, None, :], order, axis=2)
    how_much = rng.choice([least, 1.0], (n_queries, n_lists, 1))
    is_clicked = rng.random(shown.shape) < how_much * (
        planted.alpha * shown + planted.beta
    )
    items = np.arange(n_queries)[:, None, None] * k + order
    keys = (items * k + np.arange(k)).ravel()
    n_keys = n_queries * k * k
    views = np.bincount(keys, minlength=n_keys)
    clicks = np.bincount(keys, is_clicked.ravel(), n_keys).astype(np.int64)
    at = np.flatnonzero(views)
    item = at // k
    return Views(item // k, 0 * at, item, at % k + 1, views[at], clicks[at])
