"""Tables of somebody's own clicks, whose curve and relevance are known.

Lists are random orders of some items of a query, so that clicks tell the curve: users
look at rank r with probability 1 / r, and click there by the item's relevance.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

START_MS = 1_750_000_000_000
N_QUERIES, N_ITEMS, N_RANKS = 12, 6, 4


class Shop(NamedTuple):
    """Clicks with a row for each shown item, and features of the items.

    `relevance` is by item, P(click | looked at).
    """

    clicks: pa.Table
    products: pa.Table
    relevance: dict[str, float]


def shop(*, n_lists: int = 1_250, seed: int = 1) -> Shop:
    """The tables of a shop, of which `n_lists` times `N_RANKS` are rows of clicks."""
    rng = np.random.default_rng(seed)
    features = rng.random((N_QUERIES * N_ITEMS, 2)).round(3)
    chances = 0.1 + 0.4 * features[:, 0] + 0.4 * features[:, 1]
    names = [f"item {number}" for number in range(len(features))]
    columns: dict[str, list[object]] = {
        name: []
        for name in ("impression", "at", "query", "item", "position", "clicked")
    }
    for number in range(n_lists):
        query = int(rng.integers(N_QUERIES))
        shown = query * N_ITEMS + rng.permutation(N_ITEMS)[:N_RANKS]
        looks = rng.random(N_RANKS) < 1.0 / np.arange(1, N_RANKS + 1)
        clicked = looks & (rng.random(N_RANKS) < chances[shown])
        columns["impression"] += [f"list {number}"] * N_RANKS
        columns["at"] += [START_MS + 1_000 * number] * N_RANKS
        columns["query"] += [f"query {query}"] * N_RANKS
        columns["item"] += [names[item] for item in shown]
        columns["position"] += range(1, N_RANKS + 1)
        columns["clicked"] += clicked.tolist()
    table = pa.table(columns)
    times = table["at"].cast(pa.timestamp("ms", "UTC"))
    return Shop(
        table.set_column(1, "at", times),
        pa.table({"item": names, "price": features[:, 0], "stars": features[:, 1]}),
        dict(zip(names, chances.tolist(), strict=True)),
    )
