"""Lists of PDGD that learns from their clicks, of users whose bias is known.

A feature for each document, so that what was clicked by luck is shown further up.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.logged_views import Views
from models.learners.pdgd import Interactions, PdgdConfig, PdgdLearner
from tests.planted_bias import Planted

Integers = npt.NDArray[np.int64]

PDGD, FIXED = "m", "fixed"
"""Who made a list: the learner, or luck alone."""


class ShownLists(NamedTuple):
    """Lists in their order, and which of their ranks were clicked.

    Parameters
    ----------
    is_fixed : [n_lists]
        Whether luck alone made the list.
    queries : [n_lists]
    orders : [n_lists, n_ranks]
        Rows of the query's documents.
    clicked : [n_lists, n_ranks]
    """

    is_fixed: npt.NDArray[np.bool_]
    queries: Integers
    orders: Integers
    clicked: npt.NDArray[np.bool_]

    def views(self, is_wanted: npt.NDArray[np.bool_]) -> Views:
        """What some of them say of bias; `is_wanted` [n_lists]."""
        n_ranks = self.orders.shape[1]
        queries = np.repeat(self.queries[is_wanted], n_ranks)
        items = queries * n_ranks + self.orders[is_wanted].ravel()
        ranks = np.tile(np.arange(1, n_ranks + 1), int(is_wanted.sum()))
        clicked = self.clicked[is_wanted].ravel().astype(np.int64)
        nobody, once = np.zeros_like(queries), np.ones_like(queries)
        return Views(queries, nobody, items, ranks, once, clicked)


def online_lists(  # noqa: PLR0913  a world and who lives in it
    planted: Planted,
    n_rounds: int,
    rng: np.random.Generator,
    *,
    n_queries: int = 10,
    share_fixed: float = 0.0,
    rate: float = 0.1,
    spread: float = 0.4,
) -> ShownLists:
    """A closed loop: show, click, learn; a list of each query in each round.

    Parameters
    ----------
    share_fixed
        Of lists that are in any order; PDGD learns from its own alone.
    rate
        By which it learns.
    spread
        Relevance lies in .5 -+ this.
    """
    n_ranks = len(planted.alpha)
    shape = n_queries, n_ranks
    alike = np.tile(np.linspace(0.5 - spread, 0.5 + spread, n_ranks), (n_queries, 1))
    relevance = rng.permuted(alike, axis=1)
    n = n_queries * n_ranks
    learner = PdgdLearner(PdgdConfig(n_features=n, learning_rate=rate))
    features = np.eye(n).reshape(*shape, n)
    queries = np.arange(n_queries)
    rounds = []
    for _ in range(n_rounds):
        is_fixed = rng.random(n_queries) < share_fixed
        own = learner.parameters().reshape(shape)
        scores = np.where(is_fixed[:, None], 0.0, own)
        orders = np.argsort(-scores - rng.gumbel(size=shape), axis=1)
        liked = np.take_along_axis(relevance, orders, 1)
        clicked = rng.random(shape) < planted.alpha * liked + planted.beta
        # A query's documents are its own: together is one after another.
        kept = ~is_fixed
        ends = np.arange(int(kept.sum()) + 1) * n_ranks
        shown = orders[kept].ravel()
        rows = np.repeat(queries[kept], n_ranks)
        learner.learn_batch(
            Interactions(
                scores[kept].ravel(), ends, shown, clicked[kept].ravel(),
                features[rows, shown], ends,
            )
        )  # fmt: skip
        rounds.append((is_fixed, queries, orders, clicked))
    return ShownLists(*(np.concatenate(each) for each in zip(*rounds, strict=True)))
