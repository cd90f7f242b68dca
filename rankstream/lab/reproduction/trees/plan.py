"""Which rankers learn from what, and how trees are grown.

Folds, users, production rankers and clicks are those of the table `top-k`.

Trees are of 8 leaves of 10 items, as `rankstream train` takes them with fewer than
1,000 queries. All that stop are stopped by held-out queries, by what they learn from.
LightGBM on clicks is not: held-out lists are in the order of what logged, and by them
the first tree is the best one. It has the rounds that were best by labels of validation
queries, of other draws than those of the table.
"""

from models.training.boosting_plan import BoostingPlan
from rankstream.lab.reproduction.top_k.plan import (
    DISPLAYED,
    LABELS,
    NOTHING,
    PRODUCTION,
    TRUNCATED,
    Cell,
    Logging,
)

TABLE = "trees"

N_RUNS = 5
"""Of each fold, where nothing else is asked for."""

CUTOFF = 10
"""Ranks that DCG and NDCG count."""

PLAN = BoostingPlan(
    cutoff=CUTOFF, rounds=300, patience=30, loss=TRUNCATED, leaves=8,
    learning_rate=0.05, least_items=10,
)  # fmt: skip
"""Of all trees by our loss, and as far as it has them, of LightGBM's."""

ROUNDS_ON_CLICKS = 100
"""Of LightGBM on clicks."""

VALUES, RATES, LISTS = "policy-aware", "click rates", "lists"
"""What is learned from, beside labels: our values, clicks by impressions of a document,
and lists with positions, as LightGBM corrects them."""

OURS, LINEAR, SELECTED = "trees on values", "linear on values", "selected"
OF_RATES = "trees on click rates"
OF_LISTS = "lambdarank on clicks"
OF_LABELS, OURS_OF_LABELS = "lambdarank on labels", "trees on labels"
LINEAR_OF_LABELS = "linear on labels"

LINES = {
    OURS: VALUES,
    LINEAR: VALUES,
    SELECTED: VALUES,
    OF_RATES: RATES,
    OF_LISTS: LISTS,
    OF_LABELS: LABELS,
    OURS_OF_LABELS: LABELS,
    LINEAR_OF_LABELS: LABELS,
    PRODUCTION: PRODUCTION,
}
"""Rankers, and what they learn from."""


def cell_of(source: str, n_clicks: int) -> Cell:
    """The rankers of a source; labels and the production ranker have no clicks."""
    has_clicks = source not in (LABELS, PRODUCTION)
    logging = Logging(DISPLAYED, True, n_clicks) if has_clicks else NOTHING
    return Cell(source, TRUNCATED, logging)


def cells_over(n_clicks: tuple[int, ...]) -> list[Cell]:
    """All of them, by the number of clicks."""
    sources = dict.fromkeys(LINES.values())
    return [*dict.fromkeys(cell_of(each, n) for n in n_clicks for each in sources)]
