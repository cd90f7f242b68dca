"""Expectation maximisation of trust bias on raw sessions: a row for each view.

The same model, steps and end as `models.bias.trust`, on what a session log holds: an
item, its rank, and whether it was clicked. The rival of the benchmark, compiled too,
and an independent check: it must end at the same curve.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.expectation_maximisation import Ascent, Turn, ascend
from models.bias.logged_views import Views
from models.kernels.compilation import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class RawViews(NamedTuple):
    """One row each time that an item was shown.

    Parameters
    ----------
    items, rows : [n_views]
        Numbers of items, and ranks, from 0.
    clicked : [n_views]
    """

    items: Integers
    rows: Integers
    clicked: Flags


def raw_views(views: Views, rng: np.random.Generator) -> RawViews:
    """Views one by one, in any order, that add up to sums of items from 0."""
    times = np.stack([views.clicked, views.shown - views.clicked], axis=1).ravel()
    order = rng.permutation(np.repeat(np.arange(len(times)), times))
    of_sums = order // 2
    return RawViews(views.items[of_sums], views.ranks[of_sums] - 1, order % 2 == 0)


def fit_raw(views: RawViews, n_items: int, n_ranks: int) -> tuple[Floats, Ascent]:
    """Alpha in units of the first rank, [n_ranks], and the way there."""
    shown_of = np.bincount(views.items, minlength=n_items)
    shown_at = np.bincount(views.rows, minlength=n_ranks)
    clicks_of = np.bincount(views.items, views.clicked, n_items)
    clicks_at = np.bincount(views.rows, views.clicked, n_ranks)

    def turn(point: Floats) -> Turn:
        sums = np.zeros((2, n_items + n_ranks))
        total = raw_turn(*views, point, sums)
        if not np.isfinite(total):
            return Turn(point, -np.inf)
        relevant, clicked = sums
        at = relevant[n_items:], clicked[n_items:]
        moved = (
            relevant[:n_items] / shown_of,
            at[1] / at[0],
            (clicks_at - at[1]) / (shown_at - at[0]),
        )
        return Turn(np.clip(np.concatenate(moved), 0.0, 1.0), total)

    def alpha_of(point: Floats) -> Floats:
        if_relevant, if_not = np.split(point[n_items:], 2)
        alpha = if_relevant - if_not
        return np.asarray(alpha / alpha[0])

    rates = clicks_at / shown_at
    usual = np.bincount(views.items, rates[views.rows], n_items)
    relevance = (clicks_of + 1.0) / (clicks_of + usual + 2.0)
    found = ascend(
        np.concatenate([relevance, np.minimum(1.5 * rates, 0.9), 0.5 * rates]),
        turn,
        lambda point: np.clip(point, 0.0, 1.0),
        alpha_of,
    )
    return alpha_of(found.point), found


@compiled
def raw_turn(
    items: Integers, rows: Integers, clicked: Flags, point: Floats, sums: Floats
) -> float:
    """Log likelihood of a point; adds up who was relevant, and clicked for it.

    Parameters
    ----------
    items, rows, clicked : [n_views]
    point : [n_items + 2 * n_ranks]
        Relevance of items, and chances of a click by rank on what is relevant and on
        what is not.
    sums : [2, n_items + n_ranks]
        Views of something relevant, and clicks among them; by item, and by rank.
    """
    n_ranks = len(point) - sums.shape[1]
    n_items = sums.shape[1] - n_ranks
    total = 0.0
    for i in range(len(items)):
        item, row = items[i], n_items + rows[i]
        relevance = point[item]
        if_relevant = relevance * point[row]
        p = if_relevant + (1.0 - relevance) * point[row + n_ranks]
        if clicked[i]:
            if p <= 0.0:
                return -np.inf
            total += np.log(p)
            share = if_relevant / p
            sums[1, row] += share
        else:
            if p >= 1.0:
                return -np.inf
            total += np.log1p(-p)
            share = (relevance - if_relevant) / (1.0 - p)
        sums[0, item] += share
        sums[0, row] += share
    return total
