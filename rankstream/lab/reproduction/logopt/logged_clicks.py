"""Clicks on lists that policies draw, counted by item and rank, and what they tell."""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.bias.examination import estimate_examination
from models.kernels.compilation import compiled
from models.plackett_luce.list_sampler import BLOCK, sample_list

PRIOR_LOOKS = 5.0
"""Looks at an item that count as much as what is known of all items."""

LEAST_THETA = 0.01
"""Estimates of P(looked at | rank) are no less, nor more than 1."""


class Counts(NamedTuple):
    """Lists that showed an item at a rank, and those on which it was clicked there.

    Parameters
    ----------
    shown, clicked : [n_items, n_ranks]
        They grow.
    """

    shown: Floats
    clicked: Floats

    def relevance(self, examination: Floats) -> Floats:
        """P(click | looked at) by clicks over looks, drawn to the mean, [n_items].

        `examination` [n_ranks] as it is known.
        """
        looks, clicks = self.shown @ examination, self.clicked.sum(axis=1)
        mean = clicks.sum() / max(float(looks.sum()), 1.0)
        found = (clicks + PRIOR_LOOKS * mean) / (looks + PRIOR_LOOKS)
        return np.asarray(np.minimum(found, 1.0))

    def examination(self, otherwise: Floats) -> Floats:
        """P(looked at | rank) over that of the first, [n_ranks].

        What clicks do not tell well enough for an interval is `otherwise` [n_ranks].
        """
        items, rows = np.nonzero(self.shown)
        curve = estimate_examination(
            items, rows + 1, self.shown[items, rows], self.clicked[items, rows],
            n_ranks=len(otherwise),
        )  # fmt: skip
        told = np.where(np.isfinite(curve.low), curve.ratios, otherwise)
        return np.clip(told, LEAST_THETA, 1.0)


@compiled
def add_clicks(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    relevance: Floats,
    offsets: Integers,
    examination: Floats,
    n_lists: int,
    shown: Floats,
    clicked: Floats,
    rng: np.random.Generator,
) -> None:
    """Count lists that a policy draws for any queries, and clicks on them.

    Parameters
    ----------
    scores, relevance : [n_items]
    offsets : [n_queries + 1]
    examination : [n_ranks]
    shown, clicked : [n_items, n_ranks]
        See `Counts`.
    """
    longest = np.diff(offsets).max()
    masses, blocks = np.empty(longest), np.empty((longest + BLOCK - 1) // BLOCK)
    rows = np.empty(examination.shape[0], np.int64)
    for _ in range(n_lists):
        query = int(rng.random() * (offsets.shape[0] - 1))
        begin, end = offsets[query], offsets[query + 1]
        k = min(end - begin, examination.shape[0])
        n_blocks = (end - begin + BLOCK - 1) // BLOCK
        sample_list(scores[begin:end], masses, blocks[:n_blocks], rows[:k], rng)
        for rank in range(k):
            item = begin + rows[rank]
            shown[item, rank] += 1.0
            if rng.random() < examination[rank] * relevance[item]:
                clicked[item, rank] += 1.0
